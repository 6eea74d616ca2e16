//! Sizes of a choice of time steps.

use crate::EngineError;
use crate::model::{Model, Tensor};
use crate::ops::Operation;

/// Output step j, counted from the last, is input step `j · stride`, counted from the last; reversed, the last input step is
/// the first output step.
#[derive(Clone, Debug)]
pub struct SelectSteps {
    pub steps: usize,
    /// Values of one step.
    pub values: usize,
    pub stride: usize,
    pub outputs: usize,
    pub reversed: bool,
}

impl SelectSteps {
    /// The input step of an output step.
    pub(crate) fn source(&self, output: usize) -> usize {
        let back = if self.reversed {
            output
        } else {
            self.outputs - 1 - output
        };
        self.steps - 1 - back * self.stride
    }
}

impl Operation for SelectSteps {
    fn name(&self) -> &'static str {
        "select_steps"
    }
}

impl Model {
    /// `[outputs, batch, width]`: the last step, and every `stride`-th before it.
    pub fn select_steps(
        &mut self,
        input: Tensor,
        stride: usize,
        outputs: usize,
    ) -> Result<Tensor, EngineError> {
        self.choose_steps(input, stride, outputs, false)
    }

    /// The same steps, the last one first.
    pub fn reverse_steps(&mut self, input: Tensor) -> Result<Tensor, EngineError> {
        let [steps, ..] = self.sequence("select_steps", input)?;
        self.choose_steps(input, 1, steps, true)
    }

    /// `[batch, width]`: the last step.
    pub fn last_step(&mut self, input: Tensor) -> Result<Tensor, EngineError> {
        let last = self.choose_steps(input, 1, 1, false)?;
        // One step of rows is the rows.
        self.buffers[last.index()].shape.remove(0);
        Ok(last)
    }

    fn choose_steps(
        &mut self,
        input: Tensor,
        stride: usize,
        outputs: usize,
        reversed: bool,
    ) -> Result<Tensor, EngineError> {
        let [steps, batch, width] = self.sequence("select_steps", input)?;
        let reach = outputs
            .checked_sub(1)
            .and_then(|more| more.checked_mul(stride))
            .filter(|reach| *reach < steps && stride > 0);
        if reach.is_none() {
            return Err(EngineError::Shape {
                operation: "select_steps",
                expected: format!("a sequence with {outputs} steps at a distance of {stride}"),
                found: vec![steps, batch, width],
            });
        }
        let op = SelectSteps {
            steps,
            values: batch * width,
            stride,
            outputs,
            reversed,
        };
        Ok(self.add(op, &[input], Vec::new(), &[outputs, batch, width]))
    }
}
