//! A command line that clap does not understand. clap repeats arguments as they are, and a terminal obeys control characters; and it
//! speaks English only, so in Chinese the reason is written here.

use clap::builder::Styles;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use flatout_core::Language;
use std::error::Error;
use std::fmt::Write;
use std::process::ExitCode;

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
            let why = error.source().map_or_else(String::new, |why| format!("：{why}"));
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
        _ => return None,
    })
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
            ("flatout monitor --pid x", ["的值 `x` 无效", "更多信息"]),
        ] {
            let text = refusal(line);
            for part in expected {
                assert!(text.contains(part), "{line}: {part} in\n{text}");
            }
            for english in ["error", "Usage", "tip", "OPTIONS"] {
                assert!(!text.contains(english), "{line}: {english} in\n{text}");
            }
        }
    }
}
