//! What every command receives in addition to its arguments.

use crate::color::Color;
use flatout_core::{Language, Message};
use std::io::IsTerminal;

#[derive(Clone, Copy, Debug)]
pub struct Context {
    pub language: Language,
    /// How often `-v` was given.
    pub verbose: u8,
    pub color: Color,
}

impl Context {
    /// The message in the language chosen.
    pub fn say<'a>(&self, message: &'a Message) -> &'a str {
        message.get(self.language)
    }

    /// Whether color may be written to stdout.
    pub fn colour_on_stdout(&self) -> bool {
        self.color.allowed(std::io::stdout().is_terminal())
    }

    /// The same for stderr.
    pub fn colour_on_stderr(&self) -> bool {
        self.color.allowed(std::io::stderr().is_terminal())
    }
}
