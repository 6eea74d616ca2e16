//! Sizes of a linear layer. Every dimension but the last is a row.

use crate::EngineError;
use crate::activation::Activation;
use crate::initialise::Initialiser;
use crate::model::{Model, Tensor};
use crate::ops::{Op, Operation};
use crate::plan::DataType;

#[derive(Clone, Debug)]
pub struct Linear {
    pub rows: usize,
    pub inputs: usize,
    pub outputs: usize,
    pub activation: Activation,
    /// A GELU follows instead of an activation.
    pub gelu: bool,
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
        let inputs = self.linear_inputs(input)?;
        let initialiser = Initialiser::fan(inputs);
        let weight = self.parameter(&format!("{name}.weight"), &[outputs, inputs], initialiser)?;
        let bias = self.parameter(&format!("{name}.bias"), &[outputs], initialiser)?;
        self.linear_with(input, (weight, bias), activation)
    }

    /// `gelu(x · Wᵀ + b)`, as [`Model::linear`].
    pub fn linear_gelu(&mut self, name: &str, input: Tensor, outputs: usize) -> Result<Tensor, EngineError> {
        let output = self.linear(name, input, outputs, Activation::None)?;
        if let Some(Op::Linear(linear)) = self.drafts.last_mut().map(|draft| &mut draft.op) {
            linear.gelu = true;
        }
        Ok(output)
    }

    /// A linear layer over a weight `[outputs, inputs]` and a bias `[outputs]` that are there already.
    pub(crate) fn linear_with(
        &mut self,
        input: Tensor,
        (weight, bias): (Tensor, Tensor),
        activation: Activation,
    ) -> Result<Tensor, EngineError> {
        let inputs = self.linear_inputs(input)?;
        let [outputs, columns] = self.dimensions("linear", weight, "a weight of shape [outputs, inputs]")?;
        if columns != inputs {
            return Err(EngineError::Shape {
                operation: "linear",
                expected: format!("rows of {columns} values"),
                found: self.shape(input).to_vec(),
            });
        }
        let mut shape = self.shape(input).to_vec();
        shape.pop();
        let op = Linear {
            rows: shape.iter().product(),
            inputs,
            outputs,
            activation,
            gelu: false,
        };
        shape.push(outputs);
        Ok(self.add(op, &[input], vec![weight, bias], &shape))
    }

    /// The last dimension of a linear layer's input.
    fn linear_inputs(&self, input: Tensor) -> Result<usize, EngineError> {
        self.require(input, DataType::Real)?;
        let shape = self.shape(input);
        shape.last().copied().ok_or_else(|| EngineError::Shape {
            operation: "linear",
            expected: "a shape [batch, inputs]".to_owned(),
            found: shape.to_vec(),
        })
    }
}
