//! # source-not-parsed
//!
//! ## What it detects
//! A file is not valid Python, YAML, JSON or TOML, is not UTF-8, or cannot be read. The parts that could be parsed were linted.
//!
//! ## Why it is slow
//! It is not slow, but other findings may be missing from this file.
//!
//! ## Example
//! ```python
//! print "epoch", epoch
//! ```
//!
//! ## Use instead
//! ```python
//! print("epoch", epoch)
//! ```
//!
//! ## Evidence
//! The parser's message and the location.
//!
//! ## Fix
//! Fix the syntax. Exclude files of another kind (Python 2, templates) with `exclude` in the settings.
//!
//! ## When it is wrong
//! The file uses syntax newer than the parser supports.
//!
//! ## References
//! The Python language reference, "Full Grammar specification".
//! <https://docs.python.org/3/reference/grammar.html>
//!
//! ---
//! ## 检测什么
//! 不是有效的 Python、YAML、JSON 或 TOML、不是 UTF-8，或无法读取的文件。能解析的部分已经检查。
//! ## 为什么慢
//! 它并不慢；只是说明该文件可能缺少其他发现。
//! ## 证据
//! 解析器的信息和位置。
//! ## 怎么改
//! 修正语法；其他类型的文件（Python 2、模板）用设置中的 `exclude` 排除。
//! ## 何时不成立
//! 语法比解析器所知的更新。
//! ## 参考
//! Python 语言参考“Full grammar specification”。
//! <https://docs.python.org/3/reference/grammar.html>

use crate::rules::prelude::*;

pub const ID: &str = "source-not-parsed";
pub const SEVERITY: Severity = Severity::Warning;
pub const CHECK: Check = Check::Project(check);

fn check(project: &Project, report: &mut Report<'_>) {
    for module in &project.modules {
        // One is enough: what follows a syntax error is often its echo.
        if let Some(error) = module.parsed.errors.first() {
            let (what, more) = (&error.text, module.parsed.errors.len() - 1);
            report
                .in_source(
                    &module.source,
                    error.at,
                    message!(en: "not valid Python: {what}", zh: "不是有效的 Python：{what}"),
                )
                .because(if more == 0 {
                    message!(en: "The rest of the file was linted.", zh: "文件的其余部分已检查。")
                } else {
                    message!(en: "{more} more errors follow; the rest of the file was linted.", zh: "后面还有 {more} 处错误；文件的其余部分已检查。")
                });
        }
    }
    for document in &project.documents {
        if let Some(error) = &document.error {
            let what = &error.text;
            let title = message!(en: "cannot be parsed: {what}", zh: "无法解析：{what}");
            report.in_source(&document.source, error.at, title);
        }
    }
    for file in &project.unreadable {
        report.about_file(&file.path, file.why.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fires() {
        let files = [
            ("old.py", "import torch\nprint 'x'\n"),
            ("config.yaml", "a: [1,\nb: {\n"),
        ];
        let found = findings_of(ID, &files);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].place().line, 2);
    }

    #[test]
    fn quiet() {
        assert!(
            findings_of(
                ID,
                &[
                    ("a.py", "\tx = 1\r\n".trim_start()),
                    ("c.yaml", "a: &x 1\nb: *x\n")
                ]
            )
            .is_empty()
        );
    }

    #[test]
    fn look_alike() {
        assert!(findings_of(ID, &[("a.py", "print('x')\nmatch = 1\nasync_ = 2\n")]).is_empty());
    }
}
