//! What a training program printed: the time of its epochs and phases in the shapes that people and libraries use, and what went
//! wrong (tracebacks, out of memory, NaN, warnings), each told once with its count.
//!
//! One pass, constant memory, any bytes. What a line does not say is not guessed: a log without times has no times.

mod bar;
mod duration;
mod feed;
mod keywords;
mod problems;
mod stamp;
mod times;

pub use problems::{Problem, ProblemKind, Problems};
pub use times::{EpochTime, Measured, Part, PartTime, Times};

use feed::Line;
use flatout_core::error::FileError;
use serde::Serialize;
use stamp::Stamps;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Everything a log told.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TrainingLog {
    pub bytes: u64,
    pub lines: u64,
    /// Lines that are not UTF-8: another encoding, or binary. They are read all the same; what is shown of them is not exact.
    pub foreign_lines: u64,
    /// Seconds between the first and the last time stamp, where lines have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stamped_s: Option<f64>,
    /// How often a time stamp was before the one above it. No time is measured across such a jump.
    pub backward_steps: u64,
    #[serde(flatten)]
    pub times: Times,
    pub problems: Problems,
    /// Why the file could not be read to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken_off: Option<String>,
}

impl TrainingLog {
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let file = File::open(path).map_err(|source| FileError::reading(path, source))?;
        if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
            return Err(FileError::reading(path, std::io::ErrorKind::IsADirectory.into()));
        }
        Ok(Self::from_reader(Box::new(file)))
    }

    pub fn from_reader(reader: Box<dyn Read + Send>) -> Self {
        let mut state = State::default();
        let tally = feed::each_line(reader, |line| state.line(line));
        Self {
            bytes: tally.bytes,
            lines: tally.lines,
            foreign_lines: tally.foreign_lines,
            broken_off: tally.broken_off,
            ..state.finish()
        }
    }
}

#[derive(Default)]
struct State {
    log: TrainingLog,
    stamps: Stamps,
    times: times::Collector,
    problems: problems::Collector,
}

impl State {
    fn line(&mut self, line: &Line) {
        if let Some(at_ms) = line.stamp_ms {
            self.stamps.tell(at_ms);
        }
        if self.problems.in_traceback() || line.found.any_problem() {
            self.problems.see(line.text, line.found, line.number);
        }
        self.times
            .see(line.text, line.told, line.durations, self.stamps.now());
    }

    fn finish(mut self) -> TrainingLog {
        self.log.stamped_s = self.stamps.span_s();
        self.log.backward_steps = self.stamps.backward_steps;
        self.log.times = self.times.finish();
        self.log.problems = self.problems.finish();
        self.log
    }
}

#[cfg(test)]
mod tests;
