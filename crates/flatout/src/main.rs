//! The command line: reads arguments, calls a library, prints. No logic lives here.

#[macro_use]
mod output;

mod color;
mod commands;
mod context;
mod demo;
mod help;
mod linted;
mod logging;
mod questions;
mod tracking;
mod training;
mod usage;
mod watching;

use clap::{CommandFactory, FromArgMatches, Parser};
use color::Color;
use context::Context;
use flatout_core::{Language, message};
use std::path::PathBuf;
use std::process::ExitCode;

/// Exit status when flatout itself failed; 1 is kept for findings and failed checks.
const EXIT_FAILED: u8 = 2;

#[derive(Parser)]
#[command(name = "flatout", version = env!("FLATOUT_VERSION"), disable_help_subcommand = true)]
/// Keeps GPUs busy while models train.
pub struct Cli {
    /// Language of the output: en or zh-CN [default: from the environment]
    #[arg(long, global = true, value_name = "LANG", value_parser = parse_language)]
    lang: Option<Language>,
    /// Print more; repeat for details
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Write a detailed log to this file
    #[arg(long, global = true, value_name = "FILE")]
    log_file: Option<PathBuf>,
    /// When to use color
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t = Color::Auto)]
    color: Color,
    #[command(subcommand)]
    command: Option<commands::Command>,
}

fn parse_language(tag: &str) -> Result<Language, usage::Invalid> {
    let expected = || message!(en: "expected en or zh-CN", zh: "应为 en 或 zh-CN");
    Language::parse(tag).ok_or_else(|| usage::Invalid(expected()))
}

/// The command line. Arguments of the program may be anything; what is no UTF-8 is shown with replacement characters.
fn words() -> impl Iterator<Item = String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned())
}

/// The whole command tree, with the page of questions as its help.
pub fn command() -> clap::Command {
    command_of_width(help::language(words()), help::columns())
}

/// The same for another reader than this terminal.
pub fn command_of_width(language: Language, columns: usize) -> clap::Command {
    help::localise(Cli::command(), language, columns)
        .color(Color::given(words()).of_clap())
        .override_help(questions::help(language))
}

/// A command between two lines of the log: what was started where, and how it ended.
fn logged(run: impl FnOnce() -> flatout_core::Result<ExitCode>) -> flatout_core::Result<ExitCode> {
    let began = std::time::Instant::now();
    let words: Vec<String> = flatout_core::secrets::own_command()
        .iter()
        .map(|word| flatout_core::shell::word(word))
        .collect();
    let folder = std::env::current_dir().unwrap_or_default();
    log::info!(
        "flatout {}, process {}, in {}: {}",
        env!("FLATOUT_VERSION"),
        std::process::id(),
        folder.display(),
        words.join(" ")
    );
    let result = run();
    let seconds = began.elapsed().as_secs_f64();
    match &result {
        Ok(code) if *code == ExitCode::SUCCESS => log::info!("ended after {seconds:.3} s"),
        Ok(_) => log::info!("ended after {seconds:.3} s with a status that is not 0"),
        Err(_) => log::info!("failed after {seconds:.3} s"),
    }
    result
}

fn main() -> ExitCode {
    let parsed = command().try_get_matches();
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return usage::refused(error),
    };
    let context = Context {
        language: cli.lang.unwrap_or_else(Language::from_environment),
        verbose: cli.verbose,
        color: cli.color,
    };
    let result = match logging::start(cli.verbose, cli.log_file.as_deref()) {
        Err(failure) => Err(failure),
        Ok(()) => match cli.command {
            Some(command) => logged(|| command.run(&context)),
            None => {
                output::write_stdout(questions::page(context.language).as_bytes());
                Ok(ExitCode::SUCCESS)
            }
        },
    };
    result.unwrap_or_else(|failure| {
        eprint!("{}", failure.render(context.language));
        ExitCode::from(EXIT_FAILED)
    })
}
