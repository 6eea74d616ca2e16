//! From a place in the order to the indices that name the samples of a batch to the session.

use crate::TrainError;
use crate::data::TrainingData;
use flatout_data::{EpochOrder, Position};
use flatout_engine::{Plan, Session};

/// The indices of one batch, in buffers that are used again and again.
pub(super) struct BatchIndices {
    pub(super) samples: Vec<u32>,
    values: Vec<i32>,
    /// Whether the model asks which entity a sample is of.
    with_entity: bool,
}

impl BatchIndices {
    pub(super) fn new(size: usize, plan: &Plan) -> Self {
        Self {
            samples: vec![0; size],
            values: vec![0; size],
            with_entity: plan.find("entity").is_ok(),
        }
    }

    /// Names the samples of a batch to the session; a short batch is filled up with its first sample. Returns how many count.
    pub(super) fn fill(
        &mut self,
        data: &TrainingData,
        order: &EpochOrder,
        position: Position,
        session: &mut dyn Session,
    ) -> Result<usize, TrainError> {
        let count = order.fill(position, &mut self.samples);
        let first = self.samples.first().copied().unwrap_or(0);
        self.samples[count..].fill(first);
        self.set(session, "start", |sample| sample as i32)?;
        self.set(session, "label_row", |sample| data.label_row(sample) as i32)?;
        if self.with_entity {
            self.set(session, "entity", |sample| data.entity(sample))?;
        }
        Ok(count)
    }

    fn set(
        &mut self,
        session: &mut dyn Session,
        name: &str,
        value: impl Fn(u32) -> i32,
    ) -> Result<(), TrainError> {
        for (target, &sample) in self.values.iter_mut().zip(&self.samples) {
            *target = value(sample);
        }
        Ok(session.set_indices(name, &self.values)?)
    }
}
