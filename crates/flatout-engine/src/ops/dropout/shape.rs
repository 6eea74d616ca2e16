//! Sizes of a dropout.

use crate::EngineError;
use crate::model::{Model, Tensor};
use crate::ops::Operation;
use crate::plan::DataType;

#[derive(Clone, Debug)]
pub struct Dropout {
    pub rate: f64,
}

impl Operation for Dropout {
    fn name(&self) -> &'static str {
        "dropout"
    }
}

impl Model {
    /// Zeroes a share `rate` of the values in training and scales the rest; nothing in evaluation, nothing at rate 0.
    pub fn dropout(&mut self, input: Tensor, rate: f64) -> Result<Tensor, EngineError> {
        self.require(input, DataType::Real)?;
        if !(0.0..1.0).contains(&rate) {
            return Err(EngineError::Setting {
                operation: "dropout",
                setting: "rate",
                value: rate,
                allowed: "0 to below 1",
            });
        }
        if rate == 0.0 {
            return Ok(input);
        }
        let shape = self.shape(input).to_vec();
        Ok(self.add(Dropout { rate }, &[input], Vec::new(), &shape))
    }
}
