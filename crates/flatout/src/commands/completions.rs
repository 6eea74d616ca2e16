//! `flatout completions SHELL`

use crate::context::Context;
use clap::Args;
use flatout_core::{Message, Result, message};
use std::process::ExitCode;

pub const EXAMPLES: &str = "Examples:
  flatout completions bash > ~/.local/share/bash-completion/completions/flatout
  flatout completions fish > ~/.config/fish/completions/flatout.fish";

#[derive(Args)]
pub struct Arguments {
    /// The shell to generate completions for
    shell: clap_complete::Shell,
}

pub fn about() -> Message {
    message!(en: "Print the completion script of a shell", zh: "输出 shell 的补全脚本")
}

pub fn run(arguments: Arguments, _: &Context) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut crate::command(), "flatout", &mut script);
    crate::output::write_stdout(&script);
    Ok(ExitCode::SUCCESS)
}
