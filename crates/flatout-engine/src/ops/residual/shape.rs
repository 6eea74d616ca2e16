//! Sizes of a residual sum.

use crate::EngineError;
use crate::activation::Activation;
use crate::model::{Model, Tensor};
use crate::ops::Operation;
use crate::plan::DataType;

#[derive(Clone, Debug)]
pub struct Residual {
    pub activation: Activation,
}

impl Operation for Residual {
    fn name(&self) -> &'static str {
        "residual"
    }

    fn passes_gradient(&self) -> bool {
        self.activation == Activation::None
    }
}

impl Model {
    /// `activation(a + b)` of two tensors of one shape.
    pub fn residual(&mut self, a: Tensor, b: Tensor, activation: Activation) -> Result<Tensor, EngineError> {
        self.require(a, DataType::Real)?;
        self.require(b, DataType::Real)?;
        let shape = self.shape(a).to_vec();
        if self.shape(b) != shape {
            return Err(EngineError::Shape {
                operation: "residual",
                expected: format!("two tensors of shape {shape:?}"),
                found: self.shape(b).to_vec(),
            });
        }
        Ok(self.add(Residual { activation }, &[a, b], Vec::new(), &shape))
    }
}
