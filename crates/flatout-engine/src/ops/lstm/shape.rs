//! Sizes of a recurrent stack. An input that is the same at every time step (an entity's embedding) comes as `constant`: it
//! counts as the last columns of the first layer's input, as if it had been concatenated at each step, but is projected once.

use crate::EngineError;
use crate::initialise::Initialiser;
use crate::model::{Model, Tensor};
use crate::ops::Operation;
use crate::plan::DataType;

/// What comes out of a recurrent stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SequenceOutput {
    /// `[batch, hidden]`: the last time step of the last layer.
    #[default]
    Last,
    /// `[steps, batch, hidden]`: every time step of the last layer.
    All,
}

/// What the caller chooses of a recurrent stack.
#[derive(Clone, Copy, Debug)]
pub struct Recurrent {
    pub hidden: usize,
    pub layers: usize,
    /// Between layers, as PyTorch's.
    pub dropout: f64,
    pub output: SequenceOutput,
}

#[derive(Clone, Debug)]
pub struct Lstm {
    pub steps: usize,
    pub batch: usize,
    /// Columns of the input that change with time.
    pub inputs: usize,
    /// Columns that do not.
    pub constants: usize,
    pub stack: Recurrent,
}

impl Operation for Lstm {
    fn name(&self) -> &'static str {
        "lstm"
    }

    fn forward_flops(&self) -> f64 {
        let hidden = self.stack.hidden as f64;
        let samples = (self.steps * self.batch) as f64;
        let first = 2.0 * 4.0 * hidden * (samples * (self.inputs as f64 + hidden) + (self.batch * self.constants) as f64);
        first + 2.0 * 4.0 * hidden * samples * 2.0 * hidden * (self.stack.layers - 1) as f64
    }
}

impl Model {
    /// `nn.LSTM` over `[steps, batch, inputs]`, and a `constant` `[batch, width]` beside every step.
    pub fn lstm(
        &mut self,
        name: &str,
        input: Tensor,
        constant: Option<Tensor>,
        stack: Recurrent,
    ) -> Result<Tensor, EngineError> {
        let sizes = self.recurrent_sizes("lstm", input, constant, &stack)?;
        let parameters = self.recurrent_parameters(name, 4, &sizes, &stack)?;
        let op = Lstm {
            steps: sizes.steps,
            batch: sizes.batch,
            inputs: sizes.inputs,
            constants: sizes.constants,
            stack,
        };
        let inputs: Vec<Tensor> = std::iter::once(input).chain(constant).collect();
        Ok(self.add(op, &inputs, parameters, &sizes.output_shape(&stack)))
    }

    pub(crate) fn recurrent_sizes(
        &self,
        operation: &'static str,
        input: Tensor,
        constant: Option<Tensor>,
        stack: &Recurrent,
    ) -> Result<Sizes, EngineError> {
        self.require(input, DataType::Real)?;
        let [steps, batch, inputs] = self.dimensions(operation, input, "an input of shape [steps, batch, inputs]")?;
        let mut constants = 0;
        if let Some(constant) = constant {
            self.require(constant, DataType::Real)?;
            let [rows, width] = self.dimensions(operation, constant, "a constant of shape [batch, width]")?;
            if rows != batch {
                return Err(EngineError::Shape {
                    operation,
                    expected: format!("a constant of {batch} rows"),
                    found: vec![rows, width],
                });
            }
            constants = width;
        }
        let refuse = |setting, value, allowed| EngineError::Setting {
            operation,
            setting,
            value,
            allowed,
        };
        if stack.hidden == 0 || stack.layers == 0 {
            return Err(refuse("hidden size or layers", 0.0, "1 or more"));
        }
        if !(0.0..1.0).contains(&stack.dropout) {
            return Err(refuse("dropout", stack.dropout, "0 to below 1"));
        }
        Ok(Sizes {
            steps,
            batch,
            inputs,
            constants,
        })
    }

    /// Weights and biases of each layer under PyTorch's names.
    pub(crate) fn recurrent_parameters(
        &mut self,
        name: &str,
        gates: usize,
        sizes: &Sizes,
        stack: &Recurrent,
    ) -> Result<Vec<Tensor>, EngineError> {
        let (hidden, initialiser) = (stack.hidden, Initialiser::fan(stack.hidden));
        let mut parameters = Vec::new();
        for layer in 0..stack.layers {
            let width = if layer == 0 { sizes.inputs + sizes.constants } else { hidden };
            let rows = gates * hidden;
            let shapes: [(&str, &[usize]); 4] = [
                ("weight_ih", &[rows, width]),
                ("weight_hh", &[rows, hidden]),
                ("bias_ih", &[rows]),
                ("bias_hh", &[rows]),
            ];
            for (part, shape) in shapes {
                parameters.push(self.parameter(&format!("{name}.{part}_l{layer}"), shape, initialiser)?);
            }
        }
        Ok(parameters)
    }
}

pub(crate) struct Sizes {
    pub steps: usize,
    pub batch: usize,
    pub inputs: usize,
    pub constants: usize,
}

impl Sizes {
    pub fn output_shape(&self, stack: &Recurrent) -> Vec<usize> {
        match stack.output {
            SequenceOutput::Last => vec![self.batch, stack.hidden],
            SequenceOutput::All => vec![self.steps, self.batch, stack.hidden],
        }
    }
}
