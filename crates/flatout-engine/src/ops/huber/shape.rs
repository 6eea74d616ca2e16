//! Sizes of the Huber loss.

use crate::EngineError;
use crate::model::{Model, Tensor};
use crate::ops::Operation;

#[derive(Clone, Debug)]
pub struct Huber {
    pub rows: usize,
    pub width: usize,
    pub delta: f64,
}

impl Operation for Huber {
    fn name(&self) -> &'static str {
        "huber"
    }
}

impl Model {
    /// PyTorch's `HuberLoss`: the mean of e²/2 where |e| ≤ delta, of delta · (|e| − delta/2) elsewhere.
    pub fn huber(&mut self, prediction: Tensor, target: Tensor, delta: f64) -> Result<Tensor, EngineError> {
        let (rows, width) = self.same_rows("huber", prediction, target)?;
        if delta.is_nan() || delta <= 0.0 {
            return Err(EngineError::Setting {
                operation: "huber",
                setting: "delta",
                value: delta,
                allowed: "above 0",
            });
        }
        Ok(self.add(
            Huber { rows, width, delta },
            &[prediction, target],
            Vec::new(),
            &[1],
        ))
    }
}
