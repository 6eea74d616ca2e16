//! A rule's entry and its page. Diagnosis and lint rules share one namespace of ids; an id never changes.

use crate::{Language, Message, Severity};

/// A rule's entry in its crate's registry.
#[derive(Clone, Copy, Debug)]
pub struct RuleInfo {
    /// `loader-without-workers`: named after the bad pattern, not the fix.
    pub id: &'static str,
    /// `input`, `sync`, `precision` …: the folder of the rule's file.
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

/// Code sections: what triggers the rule, and what to write instead. They are written once, in the English page, and contain
/// nothing but code; the Chinese page shows the same code under its own headings.
pub const CODE_HEADINGS: [(&str, &str); 2] = [("Example", "示例"), ("Use instead", "改为")];

/// The section of lint rules with an edit: what `--fix` writes, and whether results stay the same.
pub const FIX_SAFETY: (&str, &str) = ("Fix safety", "修改是否安全");

/// The Chinese section that the code sections follow; "Why it is slow" in English.
const CODE_FOLLOWS: &str = "为什么慢";

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
            Language::Chinese if !own.is_empty() => {
                let page = format!("# {}\n\n{}\n", self.id, own.join("\n"));
                self.with_code(page)
            }
            _ => self.page(),
        }
    }

    /// The fenced code below one of [`CODE_HEADINGS`]; `None` where the page does not have it.
    pub fn code(&self, heading: &str) -> Option<String> {
        let page = self.page();
        let (_, rest) = page.split_once(&format!("\n## {heading}\n"))?;
        let text = rest.split("\n## ").next()?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// The Chinese page with the code sections of the English one.
    fn with_code(&self, page: String) -> String {
        let code: String = CODE_HEADINGS
            .iter()
            .filter_map(|(english, chinese)| Some(format!("## {chinese}\n{}\n", self.code(english)?)))
            .collect();
        let Some(at) = page
            .find(&format!("## {CODE_FOLLOWS}\n"))
            .filter(|_| !code.is_empty())
        else {
            return page;
        };
        let next = page[at + 3..]
            .find("\n## ")
            .map_or(page.len(), |end| at + 3 + end + 1);
        format!("{}{code}{}", &page[..next], &page[next..])
    }

    /// The text below one of [`HEADINGS`] or [`FIX_SAFETY`] on one line, in both languages; `None` where the page does not have it.
    pub fn section(&self, heading: &str) -> Option<Message> {
        let mut known = HEADINGS.into_iter().zip(CHINESE_HEADINGS).chain([FIX_SAFETY]);
        let (_, chinese) = known.find(|(english, _)| *english == heading)?;
        let below = |page: &str, heading: &str| {
            let (_, rest) = page.split_once(&format!("## {heading}\n"))?;
            let text = rest.split("\n## ").next()?;
            Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        Some(Message {
            en: below(&self.page(), heading)?,
            zh: below(&self.page_in(Language::Chinese), chinese)?,
        })
    }

    fn head(&self) -> impl Iterator<Item = &str> {
        let lines = self.source.lines().map_while(|line| line.strip_prefix("//!"));
        lines.map(|line| line.strip_prefix(' ').unwrap_or(line))
    }

    /// The code sections that are missing, empty, or contain more than code; a registry test wants none.
    pub fn wrong_code(&self) -> Vec<&'static str> {
        let is_code = |text: String| {
            let fences = text.matches("```").count();
            text.starts_with("```") && text.ends_with("\n```") && fences == 2
        };
        let headings = CODE_HEADINGS.iter().map(|(english, _)| *english);
        headings
            .filter(|heading| !self.code(heading).is_some_and(is_code))
            .collect()
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
    fn both_languages_show_the_same_code() {
        let rule = RuleInfo {
            id: "x",
            domain: "input",
            severity: Severity::Warning,
            source: "//! # x\n//!\n//! ## Example\n//! ```python\n//! a = 1\n//! ```\n//!\n//! ## Use instead\n//! ```python\n//! a = 2\n//! ```\n//!\n//! ---\n//! ## 为什么慢\n//! 慢。\n//! ## 怎么改\n//! 改。\n",
        };
        assert_eq!(rule.code("Example").unwrap(), "```python\na = 1\n```");
        assert!(rule.wrong_code().is_empty());
        assert_eq!(
            rule.page_in(Language::Chinese),
            "# x\n\n## 为什么慢\n慢。\n## 示例\n```python\na = 1\n```\n## 改为\n```python\na = 2\n```\n## 怎么改\n改。\n"
        );
        let words = RuleInfo {
            source: "//! # x\n//!\n//! ## Example\n//! Words.\n",
            ..rule
        };
        assert_eq!(words.wrong_code(), ["Example", "Use instead"]);
    }

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
