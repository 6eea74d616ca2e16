//! # option-never-used
//!
//! ## What it detects
//! A command-line option is parsed with argparse, but its value is never read: `--num-workers 8` changes nothing.
//!
//! ## Why it is slow
//! A performance option without effect looks like one that works.
//!
//! ## Example
//! ```python
//! parser.add_argument("--num-workers", type=int, default=8)
//! args = parser.parse_args()
//! loader = DataLoader(dataset)
//! ```
//!
//! ## Use instead
//! ```python
//! parser.add_argument("--num-workers", type=int, default=8)
//! args = parser.parse_args()
//! loader = DataLoader(dataset, num_workers=args.num_workers)
//! ```
//!
//! ## Evidence
//! The option's name occurs nowhere in the linted files as an attribute, string or keyword, and the parsed arguments are never passed
//! on as a whole (`vars(args)`, `**`, to a function outside the project).
//!
//! ## Fix
//! Use the value, or remove the option.
//!
//! ## When it is wrong
//! A program outside the linted folder uses the parser: lint the folder that contains both.
//!
//! ## References
//! Python documentation of `argparse`.
//! <https://docs.python.org/3/library/argparse.html>
//!
//! ---
//! ## 检测什么
//! 用 argparse 解析、却没有任何地方读取其值的命令行选项：`--num-workers 8` 什么都没改变。
//! ## 为什么慢
//! 没有接到任何东西的加速开关看起来像是已经打开。
//! ## 证据
//! 该选项的名字在被检查的文件中从未作为属性、字符串或关键字出现，解析结果也没有作为整体传递（`vars(args)`、`**`、传给项目之外的函数）。
//! ## 怎么改
//! 使用这个值，或删除该选项。
//! ## 何时不成立
//! 使用该解析器的程序不在被检查的目录中：请检查同时包含两者的目录。
//! ## 参考
//! Python 文档中的 `argparse`。
//! <https://docs.python.org/3/library/argparse.html>

use crate::rules::prelude::*;

pub const ID: &str = "option-never-used";
pub const SEVERITY: Severity = Severity::Warning;
pub const CHECK: Check = Check::Project(check);

/// Options about speed; others are informational.
const SPEED_WORDS: [&str; 16] = [
    "amp",
    "fp16",
    "bf16",
    "half",
    "precision",
    "compile",
    "workers",
    "pin",
    "prefetch",
    "batch",
    "accumulation",
    "channels",
    "benchmark",
    "fused",
    "cache",
    "tf32",
];

fn check(project: &Project, report: &mut Report<'_>) {
    if project.options().is_empty() {
        return;
    }
    let whole: Vec<ModuleId> = project
        .module_ids()
        .filter(|module| hands_on_whole(project, *module))
        .collect();
    for option in project.options() {
        let call = project.code(option.module, option.id);
        let kind = call.keyword("action").and_then(Code::as_text);
        let acts = matches!(kind, Some("help" | "version"))
            || call
                .keyword("action")
                .is_some_and(|action| action.as_text().is_none());
        let positional = !option.flag.starts_with('-');
        if acts
            || positional
            || option.name.len() < 3
            || !parses_here(project, option.module)
            || project.mentions().has(&option.name)
        {
            continue;
        }
        if project
            .program(option.module)
            .iter()
            .any(|module| whole.contains(module))
        {
            continue;
        }
        let flag = &option.flag;
        let about_speed =
            crate::words(&option.name).any(|word| SPEED_WORDS.contains(&word.to_ascii_lowercase().as_str()));
        report
            .at(call, message!(en: "`{flag}` is parsed but never read", zh: "`{flag}` 会被解析，但没有任何代码读取"))
            .severity(if about_speed { SEVERITY } else { Severity::Information })
            .advice(message!(en: "use its value, or remove the option", zh: "使用它的值，或者删除该选项"));
    }
}

/// The file also calls `parse_args`, or a file of its program does.
fn parses_here(project: &Project, module: ModuleId) -> bool {
    project
        .program_calls(module)
        .any(|call| call.is_method("parse_args") || call.is_method("parse_known_args"))
}

/// Somewhere all arguments are handed on, printed as a dictionary or passed to a stranger.
fn hands_on_whole(project: &Project, module: ModuleId) -> bool {
    let is_arguments = |code: Code<'_>| {
        let name = code.as_attribute().map_or(code.text(), |(_, name)| name);
        matches!(
            name,
            "args"
                | "opt"
                | "opts"
                | "options"
                | "config"
                | "cfg"
                | "hparams"
                | "params"
                | "flags"
                | "FLAGS"
                | "arguments"
        )
    };
    project.calls(module).any(|call| {
        let harmless = call
            .call_name()
            .is_some_and(|name| matches!(name, "print" | "str" | "repr" | "getattr" | "hasattr" | "len"))
            || call
                .method_call()
                .is_some_and(|(_, method)| matches!(method, "info" | "debug" | "warning"));
        let known = call.target().is_some();
        let Some(arguments) = call.arguments() else {
            return false;
        };
        let mut passed = arguments
            .positional
            .iter()
            .chain(arguments.keywords.iter().map(|(_, id)| id));
        let vars = call.call_name() == Some("vars");
        let unpacks = arguments
            .keywords
            .iter()
            .any(|(name, id)| name.is_none() && call.at(*id).text().contains("vars"));
        !harmless && (unpacks || passed.any(|id| is_arguments(call.at(*id))) && (vars || !known))
    }) || project.module(module).source.text.contains("__dict__")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--num-workers', type=int, default=8)\nparser.add_argument('--epochs', type=int)\nargs = parser.parse_args()\nrun(args.epochs)\n";

    #[test]
    fn fires() {
        let found = findings_of(ID, &[("train.py", FIRES)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place().line, 3);
    }

    #[test]
    fn quiet() {
        assert!(findings_of(ID, &[("train.py", &format!("{FIRES}loader(args.num_workers)\n"))]).is_empty());
        let files = [
            ("train.py", FIRES),
            ("other.py", "def f(args):\n    return args.num_workers\n"),
        ];
        assert!(findings_of(ID, &files).is_empty());
    }

    #[test]
    fn look_alike() {
        for line in ["config = vars(args)", "train(**vars(args))", "library.run(args)"] {
            assert!(
                findings_of(ID, &[("train.py", &format!("{FIRES}{line}\n"))]).is_empty(),
                "{line}"
            );
        }
    }
}
