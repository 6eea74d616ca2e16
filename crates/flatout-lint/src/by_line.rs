//! What the lint reports of one file, by line: for a record that stores it with the sampled lines.

use crate::Settings;
use crate::lint::lint;
use std::collections::BTreeMap;
use std::path::Path;

/// A finding over more lines than this (a loop, a class) is not about each of them.
const MOST_LINES: u32 = 6;

/// Ids of rules by the lines they report. Nothing for a file that cannot be linted.
pub fn by_line(path: &Path) -> BTreeMap<u32, Vec<String>> {
    let mut lines: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    let settings = Settings::discover(path).unwrap_or_default();
    let Ok(outcome) = lint(&[path.to_owned()], &settings) else {
        return lines;
    };
    for one in &outcome.found {
        let first = one.place().line;
        let source = outcome.source(&one.place().file);
        let last = source.map_or(first, |source| {
            source
                .position(one.span.end.saturating_sub(1).max(one.span.start))
                .0
        });
        let last = if last < first + MOST_LINES { last } else { first };
        for line in first..=last.max(first) {
            lines.entry(line).or_default().push(one.finding.rule.clone());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_a_short_statement_has_its_rules() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.py");
        let code = "import torch\nfrom torch.utils.data import Dataset\n\n\nclass Rows(Dataset):\n    def __getitem__(self, index):\n        table = torch.load(\n            self.path\n        )\n        return table[index]\n";
        std::fs::write(&path, code).unwrap();
        let lines = by_line(&path);
        let rule = vec!["file-reopened-in-getitem".to_owned()];
        assert_eq!(
            (lines.get(&7), lines.get(&8), lines.get(&10)),
            (Some(&rule), Some(&rule), None)
        );
        assert!(by_line(&folder.path().join("gone.py")).is_empty());
    }
}
