//! Sizes of what goes from rows to sequences and back.

use crate::EngineError;
use crate::model::{Model, Tensor};
use crate::ops::Operation;
use crate::plan::DataType;

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// `[batch, width]` to `[steps, batch, width]`: the same at every step.
    Repeat,
    /// `[steps, batch, width]` to `[batch, width]`: the mean over the steps.
    Mean,
}

#[derive(Clone, Debug)]
pub struct Steps {
    pub way: Way,
    pub steps: usize,
    /// Values of one step.
    pub values: usize,
}

impl Operation for Steps {
    fn name(&self) -> &'static str {
        match self.way {
            Way::Repeat => "repeat_steps",
            Way::Mean => "mean_steps",
        }
    }
}

impl Model {
    /// `[batch, width]` to `[steps, batch, width]`: an input that does not change with time, at every step.
    pub fn repeat_steps(&mut self, input: Tensor, steps: usize) -> Result<Tensor, EngineError> {
        self.require(input, DataType::Real)?;
        let [batch, width] = self.dimensions("repeat_steps", input, "rows of shape [batch, width]")?;
        let op = Steps {
            way: Way::Repeat,
            steps,
            values: batch * width,
        };
        Ok(self.add(op, &[input], Vec::new(), &[steps, batch, width]))
    }

    /// `[steps, batch, width]` to `[batch, width]`: the mean over the time steps.
    pub fn mean_steps(&mut self, input: Tensor) -> Result<Tensor, EngineError> {
        let [steps, batch, width] = self.sequence("mean_steps", input)?;
        let op = Steps {
            way: Way::Mean,
            steps,
            values: batch * width,
        };
        Ok(self.add(op, &[input], Vec::new(), &[batch, width]))
    }

    /// The sizes of a tensor that must be a batch of sequences.
    pub(crate) fn sequence(&self, operation: &'static str, input: Tensor) -> Result<[usize; 3], EngineError> {
        self.require(input, DataType::Real)?;
        self.dimensions(operation, input, "a sequence of shape [steps, batch, width]")
    }
}
