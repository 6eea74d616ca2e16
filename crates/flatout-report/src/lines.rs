//! A tick as a line: plain for people in a pipe, JSON and CSV for programs.

mod csv;
mod json;
mod plain;

pub use csv::Csv;
pub use json::{Json, verdict_line};
pub use plain::Plain;

use crate::watch::interrupt::Interrupt;
use crate::watch::{Moment, View, Wish};
use std::io::Write;
use std::time::Duration;

/// How a tick becomes text; each ends with a newline or is empty.
pub trait Format {
    fn tick(&mut self, moment: &Moment) -> String;
}

/// Writes a format's lines as they come. When the reader has gone, watching ends.
pub struct Lines<W, F> {
    out: W,
    format: F,
    interrupt: Interrupt,
    closed: bool,
}

impl<W: Write, F: Format> Lines<W, F> {
    pub fn new(out: W, format: F, interrupt: Interrupt) -> Self {
        Self {
            out,
            format,
            interrupt,
            closed: false,
        }
    }

    /// Whether the reader has gone.
    pub fn is_closed(&self) -> bool {
        self.closed
    }
}

impl<W: Write, F: Format> View for Lines<W, F> {
    fn show(&mut self, moment: &Moment) {
        let text = self.format.tick(moment);
        let written = self
            .out
            .write_all(text.as_bytes())
            .and_then(|()| self.out.flush());
        self.closed |= written.is_err();
    }

    fn wait(&mut self, at_most: Duration) -> Wish {
        if self.closed || self.interrupt.wait(at_most) {
            Wish::Quit
        } else {
            Wish::GoOn
        }
    }
}

/// Shows nothing: for a daemon.
pub struct Silent {
    pub interrupt: Interrupt,
}

impl View for Silent {
    fn show(&mut self, _: &Moment) {}

    fn wait(&mut self, at_most: Duration) -> Wish {
        if self.interrupt.wait(at_most) {
            Wish::Quit
        } else {
            Wish::GoOn
        }
    }
}
