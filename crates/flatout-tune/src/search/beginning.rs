//! The first trial: the program as it is.

use super::report::{Row, Verdict};
use super::{Best, Search, load};
use crate::TuneError;
use crate::trial::{Outcome, Settings};
use flatout_core::Result;

impl Search<'_> {
    /// The program as it is. Out of memory is mended by halving the batch and keeping what a step adds up to.
    pub(super) fn baseline(&mut self) -> Result<Option<Best>> {
        let mut settings = self.options.start.clone();
        let mut parts = 1u64;
        loop {
            let plan = self.first_plan();
            let halved = if parts > 1 {
                settings.clone()
            } else {
                Settings::default()
            };
            let outcome = self.trials.measure(&settings, &plan, &halved, None)?;
            match outcome {
                Outcome::Measured(measured) => {
                    let measured = *measured;
                    let score = self
                        .options
                        .objective
                        .score(&measured)
                        .ok_or(TuneError::NoEnergy)?;
                    let data = load(&measured)?;
                    self.lessons
                        .dead
                        .extend(measured.not_in_force.iter().map(|(key, _)| key.clone()));
                    let row = Row::new(&settings, &settings, Verdict::Start);
                    self.trials.row(row, Some(measured.clone()), None);
                    return Ok(Some(Best {
                        settings,
                        measured,
                        scores: vec![score],
                        data,
                    }));
                }
                Outcome::OutOfMemory {
                    batch: Some(batch),
                    message,
                } if batch > 1 && self.trials.left() > 0 => {
                    let row = Row::new(&settings, &settings, Verdict::OutOfMemory { message });
                    self.trials.row(row, None, None);
                    parts *= 2;
                    settings.set("loader.batch_size", batch.div_ceil(2));
                    settings.set("step.accumulation", parts);
                }
                Outcome::Interrupted => return Ok(None),
                other => return Err(TuneError::Start(Box::new(other)).into()),
            }
        }
    }
}
