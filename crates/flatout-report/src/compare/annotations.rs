//! A comparison as GitHub workflow commands: a pull request shows them next to its lines.

use super::{Comparison, Fate};
use crate::digest::Digest;
use flatout_core::{Language, Message, message};
use std::fmt::Write;
use std::path::Path;

/// GitHub shows ten of a kind per step.
const MOST: usize = 10;

/// `failures` are the limits that were broken. A finding that only the last run has is a warning at its line.
pub fn github(
    comparison: &Comparison,
    digests: &[Digest],
    failures: &[Message],
    language: Language,
) -> String {
    let mut text = String::new();
    let title = message!(en: "Slower than the baseline", zh: "比基线慢");
    for failure in failures {
        let _ = writeln!(
            text,
            "::error title={}::{}",
            property(title.get(language)),
            data(failure.get(language))
        );
    }
    let new = comparison.findings.iter().filter(|row| row.fate == Fate::New);
    let last = digests.last();
    for row in new.take(MOST) {
        let finding =
            last.and_then(|digest| digest.diagnosis.findings.iter().find(|one| one.rule == row.rule));
        let folder = last.and_then(|digest| digest.info.folder.as_deref());
        let place = finding.and_then(|finding| finding.places.first());
        let at = place.map_or_else(String::new, |place| {
            format!(
                "file={},line={},",
                property(&relative(&place.file, folder)),
                place.line
            )
        });
        let title = message!(en: "New: {}", zh: "新问题：{}", row.rule);
        let _ = writeln!(
            text,
            "::warning {at}title={}::{}",
            property(title.get(language)),
            data(row.title.get(language))
        );
    }
    text
}

/// Annotations attach to paths within the checkout.
fn relative(file: &Path, folder: Option<&Path>) -> String {
    let below = folder.and_then(|folder| file.strip_prefix(folder).ok());
    below.unwrap_or(file).display().to_string()
}

/// A message may not end the line that carries it.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Nor may a property end at a character of its own.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn run_names_cannot_inject_github_commands() {
        let mut slow = Digest::of(testing::training(40, 0.6));
        let rule = slow
            .diagnosis
            .findings
            .first()
            .map(|finding| finding.rule.clone())
            .unwrap();
        for finding in &mut slow.diagnosis.findings {
            finding.title = Message::verbatim("bad\n::error::forged %0A");
            finding.places = vec![flatout_core::Place::new("/src/a,b:c.py", 7)];
        }
        slow.info.folder = Some("/src".into());
        let digests = [Digest::of(testing::training(40, 0.0)), slow];
        let comparison = Comparison::of(&digests);
        let failures = [Message::verbatim("B is 30% slower\nthan A")];
        let text = github(&comparison, &digests, &failures, Language::English);
        assert!(
            text.starts_with("::error title=Slower than the baseline::B is 30%25 slower%0Athan A\n"),
            "{text}"
        );
        assert!(text.contains(&format!("title=New%3A {rule}::")), "{rule}: {text}");
        assert!(text.contains("file=a%2Cb%3Ac.py,line=7,"), "{text}");
        assert!(text.contains("bad%0A::error::forged %250A\n"), "{text}");
        assert!(
            text.lines()
                .all(|line| line.starts_with("::error title=") || line.starts_with("::warning "))
        );
    }
}
