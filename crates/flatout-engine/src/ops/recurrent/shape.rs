//! Sizes of a recurrent stack. An input that is the same at every time step (an entity's embedding) comes as `constant`: it
//! counts as the last columns of the first layer's input, as if it had been concatenated at each step, but is projected once.

use crate::EngineError;
use crate::initialise::Initialiser;
use crate::model::{Model, Tensor};
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

/// A recurrent stack with all its sizes.
#[derive(Clone, Debug)]
pub struct Layers {
    pub steps: usize,
    pub batch: usize,
    /// Columns of the input that change with time.
    pub inputs: usize,
    /// Columns that do not.
    pub constants: usize,
    /// Gates of a unit: 4 in an LSTM, 3 in a GRU.
    pub gates: usize,
    pub stack: Recurrent,
}

impl Layers {
    /// Values of one row of gates.
    pub fn gate_width(&self) -> usize {
        self.gates * self.stack.hidden
    }

    pub fn forward_flops(&self) -> f64 {
        let (hidden, width) = (self.stack.hidden as f64, 2.0 * self.gate_width() as f64);
        let samples = (self.steps * self.batch) as f64;
        let first = width * (samples * (self.inputs as f64 + hidden) + (self.batch * self.constants) as f64);
        first + width * samples * 2.0 * hidden * (self.stack.layers - 1) as f64
    }

    pub(crate) fn output_shape(&self) -> Vec<usize> {
        match self.stack.output {
            SequenceOutput::Last => vec![self.batch, self.stack.hidden],
            SequenceOutput::All => vec![self.steps, self.batch, self.stack.hidden],
        }
    }
}

impl Model {
    /// Checks the shapes of a recurrent stack and makes its parameters.
    pub(crate) fn recurrent(
        &mut self,
        operation: &'static str,
        name: &str,
        gates: usize,
        (input, constant): (Tensor, Option<Tensor>),
        stack: Recurrent,
    ) -> Result<(Layers, Vec<Tensor>), EngineError> {
        self.recurrent_from(operation, (name, 0, ""), gates, (input, constant), stack)
    }

    /// The same from a layer's number on, with a suffix behind each parameter's name.
    pub(super) fn recurrent_from(
        &mut self,
        operation: &'static str,
        names: (&str, usize, &str),
        gates: usize,
        (input, constant): (Tensor, Option<Tensor>),
        stack: Recurrent,
    ) -> Result<(Layers, Vec<Tensor>), EngineError> {
        self.require(input, DataType::Real)?;
        let [steps, batch, inputs] =
            self.dimensions(operation, input, "an input of shape [steps, batch, inputs]")?;
        let constants = match constant {
            Some(constant) => self.constant_width(operation, constant, batch)?,
            None => 0,
        };
        let refuse = |setting, value, allowed| EngineError::Setting {
            operation,
            setting,
            value,
            allowed,
        };
        if stack.hidden == 0 || stack.layers == 0 || steps == 0 {
            return Err(refuse("hidden size, layers or steps", 0.0, "1 or more"));
        }
        if !(0.0..1.0).contains(&stack.dropout) {
            return Err(refuse("dropout", stack.dropout, "0 to below 1"));
        }
        let layers = Layers {
            steps,
            batch,
            inputs,
            constants,
            gates,
            stack,
        };
        let parameters = self.recurrent_parameters(names, &layers)?;
        Ok((layers, parameters))
    }

    fn constant_width(
        &self,
        operation: &'static str,
        constant: Tensor,
        batch: usize,
    ) -> Result<usize, EngineError> {
        self.require(constant, DataType::Real)?;
        let [rows, width] = self.dimensions(operation, constant, "a constant of shape [batch, width]")?;
        if rows == batch {
            return Ok(width);
        }
        Err(EngineError::Shape {
            operation,
            expected: format!("a constant of {batch} rows"),
            found: vec![rows, width],
        })
    }

    fn recurrent_parameters(
        &mut self,
        (name, first, suffix): (&str, usize, &str),
        layers: &Layers,
    ) -> Result<Vec<Tensor>, EngineError> {
        let (hidden, rows) = (layers.stack.hidden, layers.gate_width());
        let mut parameters = Vec::new();
        for layer in 0..layers.stack.layers {
            let width = if layer == 0 {
                layers.inputs + layers.constants
            } else {
                hidden
            };
            let shapes: [(&str, &[usize]); 4] = [
                ("weight_ih", &[rows, width]),
                ("weight_hh", &[rows, hidden]),
                ("bias_ih", &[rows]),
                ("bias_hh", &[rows]),
            ];
            for (part, shape) in shapes {
                let name = format!("{name}.{part}_l{}{suffix}", first + layer);
                parameters.push(self.parameter(&name, shape, Initialiser::fan(hidden))?);
            }
        }
        Ok(parameters)
    }
}
