//! The help of every command in the reader's language. English is next to the arguments; Chinese is looked up by the English
//! text in one table, and a test fails when one is missing there.

mod chinese;
mod examples;

use clap::{Arg, ArgAction, Command};
use flatout_core::Language;
use flatout_train::SETTINGS;

/// Options of every command are listed together, after its own.
const EVERYWHERE_EN: &str = "Options of every command";
const EVERYWHERE_ZH: &str = "所有命令的选项";

/// The language asked for on the command line, before anything is parsed: `--help` ends the parsing.
pub fn language(arguments: impl Iterator<Item = String>) -> Language {
    value_of("--lang", arguments)
        .as_deref()
        .and_then(Language::parse)
        .unwrap_or_else(Language::from_environment)
}

/// The value of a flag of flatout's own, as `--flag value` or `--flag=value`.
pub fn value_of(flag: &str, arguments: impl Iterator<Item = String>) -> Option<String> {
    let mut arguments = arguments.take_while(|argument| argument != "--");
    while let Some(argument) = arguments.next() {
        match argument.strip_prefix(flag) {
            Some("") => return arguments.next(),
            Some(rest) => {
                if let Some(value) = rest.strip_prefix('=') {
                    return Some(value.to_owned());
                }
            }
            None => {}
        }
    }
    None
}

/// The width that clap writes help at: the terminal's, else `COLUMNS`, else 100.
pub fn columns() -> usize {
    let terminal = flatout_report::text::terminal_columns(&std::io::stdout()).map(usize::from);
    let variable = || std::env::var("COLUMNS").ok()?.parse().ok();
    terminal
        .or_else(variable)
        .filter(|columns| *columns > 0)
        .unwrap_or(100)
}

/// The whole tree with its help in a language.
pub fn localise(command: Command, language: Language, columns: usize) -> Command {
    let path = command.get_name().to_owned();
    below(command, language, columns, &path)
}

/// A command and those below it; `path` is what a person types for it.
fn below(command: Command, language: Language, columns: usize, path: &str) -> Command {
    let chinese = language == Language::Chinese;
    let names: Vec<String> = command
        .get_subcommands()
        .map(|sub| sub.get_name().to_owned())
        .collect();
    let mut command = command.mut_args(|argument| {
        let heading = match (argument.is_global_set(), chinese) {
            (true, false) => EVERYWHERE_EN,
            (true, true) => EVERYWHERE_ZH,
            (false, false) => return argument,
            (false, true) if argument.is_positional() => "参数",
            (false, true) => "选项",
        };
        let argument = argument.help_heading(heading);
        if chinese { in_chinese(argument) } else { argument }
    });
    if let Some(examples) = command.get_after_help().map(ToString::to_string) {
        command = command.after_help(examples::laid_out(&examples, language, columns));
    }
    if chinese {
        command = chinese_page(command, path);
    }
    for name in names {
        let path = format!("{path} {name}");
        command = command.mut_subcommand(name, |sub| below(sub, language, columns, &path));
    }
    command
}

/// About, usage, headings and `--help` itself.
fn chinese_page(command: Command, path: &str) -> Command {
    let about = command.get_about().map(ToString::to_string);
    let mut command = command
        .subcommand_help_heading("命令")
        .subcommand_value_name("命令")
        .disable_help_flag(true)
        .arg(
            Arg::new("help")
                .short('h')
                .long("help")
                .action(ArgAction::Help)
                .help("显示帮助")
                .help_heading("选项"),
        )
        .help_template("{about-with-newline}\n用法: {usage}\n\n{all-args}{after-help}");
    let usage = chinese_usage(&command, path);
    command = command.override_usage(usage);
    if let Some(about) = about.as_deref().and_then(translate) {
        command = command.about(about);
    }
    command
}

/// clap's own line, with its one English word translated.
fn chinese_usage(command: &Command, path: &str) -> String {
    let usage = command.clone().bin_name(path).render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    // Options of every command are added later.
    let rest = usage.strip_prefix(path).unwrap_or(usage);
    let rest = rest.replacen("[OPTIONS]", "[选项]", 1);
    if rest.contains("[选项]") {
        format!("{path}{rest}")
    } else {
        format!("{path} [选项]{rest}")
    }
}

fn in_chinese(argument: Arg) -> Arg {
    let id = argument.get_id().as_str().to_owned();
    let Some(english) = argument.get_help().map(ToString::to_string) else {
        return argument;
    };
    let setting = SETTINGS
        .iter()
        .find(|setting| setting.name == id && english.starts_with(&(setting.help)().en));
    let text = match setting {
        Some(setting) => {
            let mut text = (setting.help)().zh;
            if !setting.default.is_empty() {
                text += &format!(" [默认：{}]", setting.default);
            }
            if setting.pointless.is_some() {
                text += "（接受，但不需要）";
            }
            text
        }
        None => match translate(&english) {
            Some(text) => text.to_owned(),
            None => return argument,
        },
    };
    with_values(argument, text)
}

/// Defaults and choices, which clap would name in English.
fn with_values(argument: Arg, mut text: String) -> Arg {
    let takes_value = matches!(argument.get_action(), ArgAction::Set | ArgAction::Append);
    let defaults: Vec<String> = argument
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy().into_owned())
        .collect();
    if takes_value && !defaults.is_empty() && !argument.is_hide_default_value_set() {
        text += &format!(" [默认：{}]", defaults.join(", "));
    }
    let choices: Vec<String> = argument
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| value.get_name().to_owned())
        .collect();
    if takes_value && !choices.is_empty() {
        text += &format!(" [可选：{}]", choices.join(", "));
    }
    let argument = argument.help(text);
    if takes_value {
        argument.hide_default_value(true).hide_possible_values(true)
    } else {
        argument
    }
}

/// The comment of an example line.
fn comment(line: &str) -> Option<&str> {
    let example = line.trim_start();
    if example.len() == line.len() && !line.is_empty() && line != "Examples:" {
        return Some(line);
    }
    let at = example.find("  ")?;
    Some(example[at..].trim())
}

fn translate(english: &str) -> Option<&'static str> {
    let found = chinese::CHINESE.iter().find(|(en, _)| *en == english);
    found.map(|(_, zh)| *zh)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// Every English text of a command's help that the table must know.
    fn texts(command: &Command, found: &mut Vec<String>) {
        found.extend(command.get_about().map(ToString::to_string));
        let examples = command
            .get_after_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        found.extend(examples.lines().filter_map(comment).map(str::to_owned));
        for argument in command.get_arguments() {
            let help = argument.get_help().map(ToString::to_string);
            let help =
                help.unwrap_or_else(|| panic!("{} {} has no help", command.get_name(), argument.get_id()));
            let is_setting = SETTINGS.iter().any(|setting| {
                setting.name == argument.get_id().as_str() && help.starts_with(&(setting.help)().en)
            });
            if !is_setting {
                found.push(help);
            }
        }
        command.get_subcommands().for_each(|sub| texts(sub, found));
    }

    #[test]
    fn every_text_has_a_translation_and_no_translation_is_left_over() {
        let mut found = Vec::new();
        texts(&crate::Cli::command(), &mut found);
        let missing: Vec<&String> = found.iter().filter(|text| translate(text).is_none()).collect();
        assert!(missing.is_empty(), "no Chinese for: {missing:#?}");
        let unused: Vec<&str> = chinese::CHINESE
            .iter()
            .map(|(en, _)| *en)
            .filter(|en| !found.iter().any(|text| text == en))
            .collect();
        assert!(unused.is_empty(), "translations of nothing: {unused:#?}");
    }

    #[test]
    fn help_in_chinese_has_no_english_sentence_left() {
        let mut command = localise(crate::Cli::command(), Language::Chinese, 100);
        let monitor = command
            .find_subcommand_mut("monitor")
            .expect("monitor is a command");
        let help = monitor.render_help().to_string();
        for english in [
            "Options:",
            "Usage:",
            "Print help",
            "[default:",
            "[possible values:",
            "Examples:",
            "[OPTIONS]",
        ] {
            assert!(!help.contains(english), "{english} in\n{help}");
        }
        assert!(help.contains("[默认：1]"), "{help}");
    }

    #[test]
    fn the_tree_is_sound_in_both_languages() {
        for language in [Language::English, Language::Chinese] {
            localise(crate::Cli::command(), language, 100).debug_assert();
        }
    }

    #[test]
    fn the_flag_wins_over_the_environment() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>().into_iter();
        assert_eq!(
            language(words("flatout --lang zh-CN monitor --help")),
            Language::Chinese
        );
        assert_eq!(
            language(words("flatout monitor --lang=en --help")),
            Language::English
        );
        assert_eq!(
            language(words("flatout run -- x --lang zh-CN")),
            Language::from_environment()
        );
    }
}
