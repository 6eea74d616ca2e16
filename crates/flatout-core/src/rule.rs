//! What is known of a rule beside its check. Diagnosis and lint rules share one namespace of ids; an id never changes.

use crate::{Language, Message, Severity};

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

/// The same in Chinese.
pub const CHINESE_HEADINGS: [&str; 6] = ["检测什么", "为什么慢", "证据", "怎么改", "何时不成立", "参考"];

/// Between the English and the Chinese page.
const NEXT_LANGUAGE: &str = "---";

impl RuleInfo {
    /// The page: the `//!` lines at the head of the rule's file, as Markdown.
    pub fn page(&self) -> String {
        let lines: Vec<&str> = self.head().take_while(|line| *line != NEXT_LANGUAGE).collect();
        lines.join("\n").trim_end().to_owned() + "\n"
    }

    /// The page in a language: what follows a line of its own in the head, under the same title.
    pub fn page_in(&self, language: Language) -> String {
        let own: Vec<&str> = self
            .head()
            .skip_while(|line| *line != NEXT_LANGUAGE)
            .skip(1)
            .collect();
        match language {
            Language::Chinese if !own.is_empty() => format!("# {}\n\n{}\n", self.id, own.join("\n")),
            _ => self.page(),
        }
    }

    /// The text below one of [`HEADINGS`] on one line, in both languages; `None` where the page does not have it.
    pub fn section(&self, heading: &str) -> Option<Message> {
        let at = HEADINGS.iter().position(|known| *known == heading)?;
        let below = |page: &str, heading: &str| {
            let (_, rest) = page.split_once(&format!("## {heading}\n"))?;
            let text = rest.split("\n## ").next()?;
            Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        Some(Message {
            en: below(&self.page(), heading)?,
            zh: below(&self.page_in(Language::Chinese), CHINESE_HEADINGS[at])?,
        })
    }

    fn head(&self) -> impl Iterator<Item = &str> {
        let lines = self.source.lines().map_while(|line| line.strip_prefix("//!"));
        lines.map(|line| line.strip_prefix(' ').unwrap_or(line))
    }

    /// The page's headings that are missing or empty; a registry test wants none.
    pub fn missing_headings(&self) -> Vec<&'static str> {
        missing_in(&self.page(), HEADINGS)
    }

    /// Those of the Chinese page.
    pub fn missing_chinese_headings(&self) -> Vec<&'static str> {
        missing_in(&self.page_in(Language::Chinese), CHINESE_HEADINGS)
    }
}

fn missing_in(page: &str, headings: [&'static str; 6]) -> Vec<&'static str> {
    let has_text = |heading: &&str| {
        let mark = format!("## {heading}\n");
        page.split(&mark)
            .nth(1)
            .and_then(|rest| rest.split("## ").next())
            .is_some_and(|t| !t.trim().is_empty())
    };
    headings
        .into_iter()
        .filter(|heading| !has_text(heading))
        .collect()
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
            source: "//! # x\n//!\n//! ## Fix\n//! Do it.\n//! ## Evidence\n//!\n//! ---\n//! ## 怎么改\n//! 改。\n\nuse std::fmt;\n//! not this\n",
        };
        assert_eq!(rule.page_in(Language::Chinese), "# x\n\n## 怎么改\n改。\n");
        let missing = rule.missing_chinese_headings();
        assert!(!missing.contains(&"怎么改") && missing.contains(&"证据"));
        assert_eq!(rule.page(), "# x\n\n## Fix\nDo it.\n## Evidence\n");
        assert!(!rule.missing_headings().contains(&"Fix"));
        let fix = rule.section("Fix").unwrap();
        assert_eq!((fix.en.as_str(), fix.zh.as_str()), ("Do it.", "改。"));
        assert!(rule.section("Evidence").is_none());
        assert!(rule.missing_headings().contains(&"Evidence"));
    }
}
