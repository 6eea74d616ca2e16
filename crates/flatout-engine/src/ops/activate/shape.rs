//! Sizes of an activation.

use crate::EngineError;
use crate::activation::Activation;
use crate::model::{Model, Tensor};
use crate::ops::Operation;
use crate::plan::DataType;

#[derive(Clone, Debug)]
pub struct Activate {
    pub activation: Activation,
}

impl Operation for Activate {
    fn name(&self) -> &'static str {
        "activate"
    }
}

impl Model {
    /// `activation(x)` element by element.
    pub fn activate(&mut self, input: Tensor, activation: Activation) -> Result<Tensor, EngineError> {
        self.require(input, DataType::Real)?;
        if activation == Activation::None {
            return Ok(input);
        }
        let shape = self.shape(input).to_vec();
        Ok(self.add(Activate { activation }, &[input], Vec::new(), &shape))
    }
}
