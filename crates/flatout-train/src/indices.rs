//! From a place in the order to the indices that name the samples of a batch to the session.

use crate::TrainError;
use crate::data::TrainingData;
use flatout_data::{EpochOrder, Position, random};
use flatout_engine::{Plan, Session};

/// The indices of one batch, in buffers that are used again and again.
pub struct BatchIndices {
    pub samples: Vec<u32>,
    count: usize,
    values: Vec<i32>,
    /// Whether the model asks which entity a sample is of, and for the last row of its window.
    with_entity: bool,
    with_last: bool,
    hidden: Option<Hidden>,
}

/// Samples whose entity the model does not get to know: a function of (seed, epoch, sample).
#[derive(Clone, Copy)]
pub struct Hidden {
    pub seed: u64,
    pub epoch: u64,
    pub share: f64,
    /// What they have instead.
    pub unknown: i32,
}

impl Hidden {
    fn entity(&self, sample: u32, entity: i32) -> i32 {
        let drawn = random::key(self.seed, &[0xe7, self.epoch, u64::from(sample)]) >> 11;
        let below = drawn as f64 / (1u64 << 53) as f64;
        if below < self.share { self.unknown } else { entity }
    }
}

impl BatchIndices {
    /// For batches of `size` samples, of which `micro` go through the model at once.
    pub fn new(size: usize, micro: usize, plan: &Plan) -> Self {
        Self {
            samples: vec![0; size],
            count: 0,
            values: vec![0; micro],
            with_entity: plan.find("entity").is_ok(),
            with_last: plan.find("last").is_ok(),
            hidden: None,
        }
    }

    /// From here on the entities of some samples are hidden.
    pub fn hide(&mut self, hidden: Option<Hidden>) {
        self.hidden = hidden;
    }

    /// Looks up the samples of a batch; returns how many there are.
    pub fn name_samples(&mut self, order: &EpochOrder, position: Position) -> usize {
        self.count = order.fill(position, &mut self.samples);
        self.count
    }

    /// A batch that goes through the model at once.
    pub fn fill(
        &mut self,
        data: &TrainingData,
        order: &EpochOrder,
        position: Position,
        session: &mut dyn Session,
    ) -> Result<usize, TrainError> {
        self.name_samples(order, position);
        self.set_part(0, data, session)
    }

    /// Tells a part of the batch to the session; what a short part leaves over is filled with its first sample and does not count.
    /// Returns how many do.
    pub fn set_part(
        &mut self,
        part: usize,
        data: &TrainingData,
        session: &mut dyn Session,
    ) -> Result<usize, TrainError> {
        let first = (part * self.values.len()).min(self.count);
        let rows = (self.count - first).min(self.values.len());
        self.set(session, "start", first, rows, |sample| sample as i32)?;
        self.set(session, "label_row", first, rows, |sample| {
            data.label_row(sample) as i32
        })?;
        if self.with_entity {
            let hidden = self.hidden;
            self.set(session, "entity", first, rows, |sample| {
                let entity = data.entity(sample);
                hidden.map_or(entity, |hidden| hidden.entity(sample, entity))
            })?;
        }
        if self.with_last {
            self.set(session, "last", first, rows, |sample| {
                data.last_row(sample) as i32
            })?;
        }
        session.set_valid_rows(rows);
        Ok(rows)
    }

    fn set(
        &mut self,
        session: &mut dyn Session,
        name: &str,
        first: usize,
        rows: usize,
        value: impl Fn(u32) -> i32,
    ) -> Result<(), TrainError> {
        let samples = &self.samples[first..first + rows];
        let (filled, rest) = self.values.split_at_mut(rows);
        for (target, &sample) in filled.iter_mut().zip(samples) {
            *target = value(sample);
        }
        rest.fill(samples.first().map_or(0, |&sample| value(sample)));
        Ok(session.set_indices(name, &self.values)?)
    }
}
