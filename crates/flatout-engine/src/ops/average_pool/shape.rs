//! Sizes of a global average pooling.

use crate::EngineError;
use crate::model::{Model, Tensor};
use crate::ops::Operation;

#[derive(Clone, Debug)]
pub struct AveragePool {
    pub batch: usize,
    pub pixels: usize,
    pub channels: usize,
}

impl Operation for AveragePool {
    fn name(&self) -> &'static str {
        "average_pool"
    }
}

impl Model {
    /// `[batch, channels]`: each channel's mean over the image.
    pub fn global_average_pool(&mut self, input: Tensor) -> Result<Tensor, EngineError> {
        let [batch, height, width, channels] = self.image("average_pool", input)?;
        let op = AveragePool {
            batch,
            pixels: height * width,
            channels,
        };
        Ok(self.add(op, &[input], Vec::new(), &[batch, channels]))
    }
}
