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
        // An annotation needs a line of the file, which a cell does not have.
        let (line, column, inside) = match place.cell {
            Some(cell) => (1, 1, format!("cell {cell}, line {}: ", place.line)),
            None => (place.line, place.column.unwrap_or(1), String::new()),
        };
        let _ = writeln!(
            out,
            "::{level} file={},line={},col={},title={}::{}",
            property(&place.file.to_string_lossy()),
            line,
            column,
            property(&format!("flatout {}", finding.rule)),
            data(&(inside + finding.title.get(language)))
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
