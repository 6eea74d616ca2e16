//! Workflow commands of GitHub Actions: each finding becomes a note at its line of the pull request.

use crate::lint::Outcome;
use flatout_core::{Language, Severity};
use std::fmt::Write;

pub fn github(outcome: &Outcome, language: Language) -> String {
    let mut out = String::new();
    for one in &outcome.found {
        let finding = &one.finding;
        let level = match finding.severity {
            Severity::Information => "notice",
            Severity::Warning => "warning",
            Severity::Critical => "error",
        };
        let place = one.place();
        let _ = writeln!(
            out,
            "::{level} file={},line={},col={},title={}::{}",
            property(&place.file.to_string_lossy()),
            place.line,
            place.column.unwrap_or(1),
            property(&format!("flatout {}", finding.rule)),
            data(finding.title.get(language))
        );
    }
    out
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
