//! Sizes of a flattening. PyTorch flattens channels first; so does this, so that a linear layer's weight behind it means the
//! same in both.

use crate::EngineError;
use crate::model::{Model, Tensor};
use crate::ops::Operation;

#[derive(Clone, Debug)]
pub struct Flatten {
    pub batch: usize,
    pub pixels: usize,
    pub channels: usize,
}

impl Operation for Flatten {
    fn name(&self) -> &'static str {
        "flatten"
    }
}

impl Model {
    /// `[batch, height, width, channels]` to `[batch, channels · height · width]`.
    pub fn flatten(&mut self, input: Tensor) -> Result<Tensor, EngineError> {
        let [batch, height, width, channels] = self.image("flatten", input)?;
        let pixels = height * width;
        let op = Flatten {
            batch,
            pixels,
            channels,
        };
        Ok(self.add(op, &[input], Vec::new(), &[batch, channels * pixels]))
    }
}
