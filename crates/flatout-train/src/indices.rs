//! From a place in the order to the indices that name the samples of a batch to the session.

use crate::TrainError;
use crate::data::TrainingData;
use flatout_data::{EpochOrder, Position};
use flatout_engine::{Plan, Session};

/// The indices of one batch, in buffers that are used again and again.
pub struct BatchIndices {
    pub samples: Vec<u32>,
    count: usize,
    values: Vec<i32>,
    /// Whether the model asks which entity a sample is of.
    with_entity: bool,
}

impl BatchIndices {
    /// For batches of `size` samples, of which `micro` go through the model at once.
    pub fn new(size: usize, micro: usize, plan: &Plan) -> Self {
        Self {
            samples: vec![0; size],
            count: 0,
            values: vec![0; micro],
            with_entity: plan.find("entity").is_ok(),
        }
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
            self.set(session, "entity", first, rows, |sample| data.entity(sample))?;
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
