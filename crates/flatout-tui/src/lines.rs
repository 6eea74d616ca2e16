//! A tick as a line: plain for people in a pipe, JSON and CSV for programs.

mod csv;
mod json;
mod plain;

pub use csv::Csv;
pub use json::{Json, verdict_line};
pub use plain::{Plain, gib, memory, memory_total, power};

use crate::watch::{Moment, View, Wish};
use flatout_core::Language;
use flatout_core::interrupt::Interrupt;
use flatout_core::text::visible;
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
    language: Language,
    closed: bool,
}

impl<W: Write, F: Format> Lines<W, F> {
    pub fn new(out: W, format: F, interrupt: Interrupt, language: Language) -> Self {
        Self {
            out,
            format,
            interrupt,
            language,
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
        say_notices(moment, self.language);
        let text = self.format.tick(moment);
        let written = self
            .out
            .write_all(visible(&text).as_bytes())
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

/// Lines are data; what is only meant for people goes to stderr.
fn say_notices(moment: &Moment, language: Language) {
    for notice in &moment.tick.notices {
        eprintln!("{}", visible(notice.get(language)));
    }
}

/// Shows nothing: for a daemon.
pub struct Silent {
    pub interrupt: Interrupt,
    pub language: Language,
}

impl View for Silent {
    fn show(&mut self, moment: &Moment) {
        say_notices(moment, self.language);
    }

    fn wait(&mut self, at_most: Duration) -> Wish {
        if self.interrupt.wait(at_most) {
            Wish::Quit
        } else {
            Wish::GoOn
        }
    }
}
