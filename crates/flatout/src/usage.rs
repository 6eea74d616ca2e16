//! A command line that clap does not understand. clap repeats arguments as they are, and a terminal obeys control characters; and it
//! speaks English only, so in Chinese the reason is written here.

use clap::builder::Styles;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use flatout_core::{Language, Message};
use std::error::Error;
use std::fmt;
use std::fmt::Write;
use std::process::ExitCode;

/// Why a value of an argument is refused, in both languages: what a value parser returns as its error.
#[derive(Debug, PartialEq)]
pub struct Invalid(pub Message);

impl fmt::Display for Invalid {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        // clap prints this one; in Chinese `in_chinese` takes the other.
        to.write_str(&self.0.en)
    }
}

impl Error for Invalid {}

pub fn refused(error: clap::Error) -> ExitCode {
    if error.use_stderr()
        && crate::help::language(crate::words()) == Language::Chinese
        && let Some(text) = in_chinese(&error)
    {
        eprint!("{text}");
        return ExitCode::from(crate::EXIT_FAILED);
    }
    let has_control = |argument: std::ffi::OsString| argument.to_string_lossy().chars().any(char::is_control);
    if !error.use_stderr() || !std::env::args_os().any(has_control) {
        error.exit();
    }
    // Again without clap's own colors, which cannot be told from an argument's escape sequences.
    let plain = crate::command().styles(Styles::plain()).try_get_matches();
    let text = plain.err().unwrap_or(error).render().ansi().to_string();
    eprint!("{text}");
    ExitCode::from(crate::EXIT_FAILED)
}

/// The error in Chinese, or nothing if clap does not give the kind of error.
fn in_chinese(error: &clap::Error) -> Option<String> {
    let mut text = format!("错误：{}\n", reason(error)?);
    for kind in [
        ContextKind::SuggestedArg,
        ContextKind::SuggestedValue,
        ContextKind::SuggestedSubcommand,
    ] {
        if let Some(near) = value(error, kind) {
            let near = near.replace(", ", "` 或 `");
            let _ = writeln!(text, "提示：是不是 `{near}`？");
        }
    }
    if let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) {
        let usage = usage.to_string();
        let usage = usage.trim_start_matches("Usage: ").replace("[OPTIONS]", "[选项]");
        let _ = writeln!(text, "\n用法: {usage}");
    }
    text += "\n更多信息见 `--help`。\n";
    Some(text)
}

fn reason(error: &clap::Error) -> Option<String> {
    let argument = value(error, ContextKind::InvalidArg);
    let given = value(error, ContextKind::InvalidValue).filter(|given| !given.is_empty());
    Some(match error.kind() {
        ErrorKind::UnknownArgument => format!("没有参数 `{}`", argument?),
        ErrorKind::InvalidSubcommand => {
            format!("没有命令 `{}`", value(error, ContextKind::InvalidSubcommand)?)
        }
        ErrorKind::InvalidValue => {
            let valid = value(error, ContextKind::ValidValue).filter(|valid| !valid.is_empty());
            let choices = valid.map_or_else(String::new, |valid| format!("\n  [可选：{valid}]"));
            match given {
                Some(given) => format!("`{}` 的值 `{given}` 无效{choices}", argument?),
                None => format!("`{}` 需要一个值{choices}", argument?),
            }
        }
        ErrorKind::ValueValidation => {
            let why = error.source().and_then(why_invalid);
            let why = why.map_or_else(String::new, |why| format!("：{why}"));
            format!("`{}` 的值 `{}` 无效{why}", argument?, given.unwrap_or_default())
        }
        ErrorKind::MissingRequiredArgument => format!("缺少必需的参数：{}", argument?),
        ErrorKind::MissingSubcommand => {
            format!("需要一个命令：{}", value(error, ContextKind::ValidSubcommand)?)
        }
        ErrorKind::ArgumentConflict => match value(error, ContextKind::PriorArg) {
            Some(other) if Some(&other) != argument.as_ref() => {
                format!("`{}` 不能与 `{other}` 同时使用", argument?)
            }
            _ => format!("`{}` 只能给出一次", argument?),
        },
        ErrorKind::NoEquals => format!("`{}` 的值要用等号给出", argument?),
        ErrorKind::TooManyValues => format!("`{}` 不接受多余的值 `{}`", argument?, given?),
        ErrorKind::TooFewValues | ErrorKind::WrongNumberOfValues => {
            let wanted =
                value(error, ContextKind::ExpectedNumValues).or(value(error, ContextKind::MinValues))?;
            let actual = value(error, ContextKind::ActualNumValues)?;
            format!("`{}` 需要 {wanted} 个值，只有 {actual} 个", argument?)
        }
        ErrorKind::InvalidUtf8 => "有一个参数不是 UTF-8 文本".to_owned(),
        _ => return None,
    })
}

/// A parser's reason in Chinese: one of ours, or one of the few of clap and the standard library. Nothing where it is another.
fn why_invalid(why: &(dyn Error + 'static)) -> Option<String> {
    if let Some(Invalid(why)) = why.downcast_ref() {
        return Some(why.zh.clone());
    }
    let why = why.to_string();
    if let Some((_, range)) = why.split_once(" is not in ") {
        let (low, high) = range.split_once("..")?;
        return Some(match high.trim_start_matches('=') {
            "" => format!("应不小于 {low}"),
            high => format!("应在 {low} 到 {high} 之间"),
        });
    }
    let known = [
        ("invalid digit", "不是整数"),
        ("invalid float", "不是数字"),
        ("empty", "值为空"),
        ("too large", "数值太大"),
        ("too small", "数值太小"),
    ];
    let (_, chinese) = known.iter().find(|(part, _)| why.contains(part))?;
    Some((*chinese).to_owned())
}

fn value(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(texts) => Some(texts.join(", ")),
        ContextValue::Number(number) => Some(number.to_string()),
        ContextValue::StyledStr(text) => Some(text.to_string()),
        ContextValue::StyledStrs(texts) => {
            let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
            Some(texts.join(", "))
        }
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    fn refusal(line: &str) -> String {
        let command = crate::command_of_width(Language::Chinese, 100);
        let error = command.try_get_matches_from(line.split(' ')).unwrap_err();
        in_chinese(&error).unwrap_or_else(|| panic!("{line} is not refused in Chinese: {error}"))
    }

    #[test]
    fn mistakes_are_named_in_chinese() {
        for (line, expected) in [
            (
                "flatout monitor --intervall 1",
                ["没有参数 `--intervall`", "是不是 `--interval`？"],
            ),
            ("flatout monitr", ["没有命令 `monitr`", "是不是 `monitor`？"]),
            (
                "flatout monitor --interval",
                ["`--interval <SECONDS>` 需要一个值", "更多信息见 `--help`"],
            ),
            ("flatout evaluate", ["缺少必需的参数", "用法: flatout evaluate"]),
            (
                "flatout monitor --color blue",
                ["`--color <WHEN>` 的值 `blue` 无效", "[可选：auto, always, never]"],
            ),
            ("flatout monitor --pid x", ["的值 `x` 无效：不是整数", "更多信息"]),
            (
                "flatout attach 1 --seconds 1",
                ["的值 `1` 无效：应在 2 到 86400 之间", "更多信息"],
            ),
            (
                "flatout tune --max-trials 900 -- true",
                ["应在 1 到 200 之间", "更多信息"],
            ),
            ("flatout tune --budget 5x -- true", ["时间单位 `x`", "更多信息"]),
            ("flatout run --patience soon -- true", ["应为时间", "更多信息"]),
            ("flatout fleet --since 7", ["需要单位", "更多信息"]),
            ("flatout --lang de runs", ["en 或 zh-CN", "更多信息"]),
        ] {
            let text = refusal(line);
            for part in expected {
                assert!(text.contains(part), "{line}: {part} in\n{text}");
            }
            for english in ["error", "Usage", "tip", "OPTIONS", " is ", "invalid", "expected"] {
                assert!(!text.contains(english), "{line}: {english} in\n{text}");
            }
        }
    }
}
