//! How long the card has worked, by marks around each piece of work. Marks are read when they have been reached, never waited
//! for; where more work is in the queue than there are marks, the pieces between go uncounted and the rest stands for them.

use crate::cuda::driver::{Event, Stream};
use crate::cuda::error::CudaError;
use std::collections::VecDeque;

/// Pieces of work that may be in the queue with marks around them.
const MARKS: usize = 64;

/// Pieces after which their mean means something.
const ENOUGH: u64 = 16;

struct Marks {
    start: Event,
    end: Event,
    /// Steps between the marks.
    pieces: usize,
}

#[derive(Default)]
pub(super) struct Busy {
    free: Vec<Marks>,
    waiting: VecDeque<Marks>,
    made: usize,
    measured_ms: f64,
    measured: u64,
    uncounted: u64,
}

impl Busy {
    /// Runs a piece of work with marks around it.
    pub fn around(
        &mut self,
        stream: &Stream,
        pieces: usize,
        work: impl FnOnce() -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        self.harvest();
        let marks = match self.free.pop() {
            Some(marks) => Some(marks),
            None if self.made < MARKS => {
                self.made += 1;
                let (start, end) = (Event::new()?, Event::new()?);
                Some(Marks { start, end, pieces })
            }
            None => None,
        };
        let Some(mut marks) = marks else {
            self.uncounted += pieces as u64;
            return work();
        };
        marks.pieces = pieces;
        marks.start.record(stream)?;
        work()?;
        marks.end.record(stream)?;
        self.waiting.push_back(marks);
        Ok(())
    }

    /// Adds up what has been reached.
    fn harvest(&mut self) {
        while self.waiting.front().is_some_and(|marks| marks.end.is_reached()) {
            let Some(marks) = self.waiting.pop_front() else {
                return;
            };
            if let Ok(time) = marks.end.since(&marks.start) {
                self.measured_ms += time;
                self.measured += marks.pieces as u64;
            }
            self.free.push(marks);
        }
    }

    /// Whether the card has something to do that was given to it here.
    pub fn is_working(&self) -> bool {
        self.waiting.back().is_some_and(|marks| !marks.end.is_reached())
    }

    /// Milliseconds of a piece, once enough of them have been seen.
    pub fn mean_ms(&self) -> Option<f64> {
        (self.measured >= ENOUGH).then(|| self.measured_ms / self.measured as f64)
    }

    /// Milliseconds so far.
    pub fn total_ms(&mut self) -> f64 {
        self.harvest();
        let each = self.measured_ms / self.measured.max(1) as f64;
        self.measured_ms + each * self.uncounted as f64
    }
}
