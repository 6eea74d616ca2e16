//! What every command is told beside its own arguments.

use flatout_core::{Language, Message};
use std::io::IsTerminal;

#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "waits for the commands that print")]
pub struct Context {
    pub language: Language,
    /// How often `-v` was given.
    pub verbose: u8,
}

#[allow(dead_code, reason = "waits for the commands that print")]
impl Context {
    /// The message in the language chosen.
    pub fn say<'a>(&self, message: &'a Message) -> &'a str {
        message.get(self.language)
    }

    /// Whether colour may be written to stdout: a terminal, and `NO_COLOR` not set.
    pub fn colour_on_stdout(&self) -> bool {
        std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
    }

    /// The same for stderr.
    pub fn colour_on_stderr(&self) -> bool {
        std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
    }
}
