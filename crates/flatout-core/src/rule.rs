//! What is known of a rule beside its check. Diagnosis and lint rules share one namespace of ids; an id never changes.

use crate::Severity;

/// A rule's entry in its crate's registry.
#[derive(Clone, Copy, Debug)]
pub struct RuleInfo {
    /// `loader-without-workers`: named after the bad pattern, not the fix.
    pub id: &'static str,
    /// `input`, `sync`, `precision` …: the folder the rule's file lies in.
    pub domain: &'static str,
    /// The worst severity it reports.
    pub severity: Severity,
    /// The rule file's own source, by `include_str!`: its head comment is the page.
    pub source: &'static str,
}

/// The headings that every rule's page has, in this order.
pub const HEADINGS: [&str; 6] = [
    "What it detects",
    "Why it is slow",
    "Evidence",
    "Fix",
    "When it is wrong",
    "References",
];

impl RuleInfo {
    /// The page: the `//!` lines at the head of the rule's file, as Markdown.
    pub fn page(&self) -> String {
        let lines = self.source.lines().map_while(|line| line.strip_prefix("//!"));
        lines
            .map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line)))
            .collect()
    }

    /// The page's headings that are missing or empty; a registry test wants none.
    pub fn missing_headings(&self) -> Vec<&'static str> {
        let page = self.page();
        let has_text = |heading: &&str| {
            let mark = format!("## {heading}\n");
            page.split(&mark)
                .nth(1)
                .and_then(|rest| rest.split("## ").next())
                .is_some_and(|t| !t.trim().is_empty())
        };
        HEADINGS
            .into_iter()
            .filter(|heading| !has_text(heading))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_the_head_comment() {
        let rule = RuleInfo {
            id: "x",
            domain: "input",
            severity: Severity::Warning,
            source: "//! # x\n//!\n//! ## Fix\n//! Do it.\n//! ## Evidence\n\nuse std::fmt;\n//! not this\n",
        };
        assert_eq!(rule.page(), "# x\n\n## Fix\nDo it.\n## Evidence\n");
        assert!(!rule.missing_headings().contains(&"Fix"));
        assert!(rule.missing_headings().contains(&"Evidence"));
    }
}
