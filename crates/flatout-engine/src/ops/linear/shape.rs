//! Sizes of a linear layer. Every dimension but the last is a row.

use crate::EngineError;
use crate::activation::Activation;
use crate::initialise::Initialiser;
use crate::model::{Model, Tensor};
use crate::ops::Operation;
use crate::plan::DataType;

#[derive(Clone, Debug)]
pub struct Linear {
    pub rows: usize,
    pub inputs: usize,
    pub outputs: usize,
    pub activation: Activation,
}

impl Operation for Linear {
    fn name(&self) -> &'static str {
        "linear"
    }

    fn forward_flops(&self) -> f64 {
        2.0 * self.rows as f64 * self.inputs as f64 * self.outputs as f64
    }
}

impl Model {
    /// `activation(x · Wᵀ + b)` with `{name}.weight` `[outputs, inputs]` and `{name}.bias` `[outputs]`.
    pub fn linear(
        &mut self,
        name: &str,
        input: Tensor,
        outputs: usize,
        activation: Activation,
    ) -> Result<Tensor, EngineError> {
        self.require(input, DataType::Real)?;
        let mut shape = self.shape(input).to_vec();
        let Some(inputs) = shape.pop() else {
            return Err(EngineError::Shape {
                operation: "linear",
                expected: "a shape [batch, inputs]".to_owned(),
                found: shape,
            });
        };
        let initialiser = Initialiser::fan(inputs);
        let weight = self.parameter(&format!("{name}.weight"), &[outputs, inputs], initialiser)?;
        let bias = self.parameter(&format!("{name}.bias"), &[outputs], initialiser)?;
        let op = Linear {
            rows: shape.iter().product(),
            inputs,
            outputs,
            activation,
        };
        shape.push(outputs);
        Ok(self.add(op, &[input], vec![weight, bias], &shape))
    }
}
