//! Sizes of a max pooling: square windows side by side, as PyTorch's `MaxPool2d(size)`; what is left over at the edge is
//! not looked at.

use crate::EngineError;
use crate::model::{Model, Tensor};
use crate::ops::Operation;
use crate::ops::conv2d::Window;

#[derive(Clone, Debug)]
pub struct MaxPool {
    pub batch: usize,
    pub height: usize,
    pub width: usize,
    pub channels: usize,
    pub size: usize,
}

impl Operation for MaxPool {
    fn name(&self) -> &'static str {
        "max_pool"
    }
}

impl Model {
    /// `[batch, height / size, width / size, channels]`.
    pub fn max_pool(&mut self, input: Tensor, size: usize) -> Result<Tensor, EngineError> {
        let [batch, height, width, channels] = self.image("max_pool", input)?;
        let window = Window {
            size,
            stride: size,
            padding: 0,
        };
        self.window_fits("max_pool", &window, [batch, height, width, channels])?;
        let op = MaxPool {
            batch,
            height,
            width,
            channels,
            size,
        };
        let shape = [batch, window.count(height), window.count(width), channels];
        Ok(self.add(op, &[input], Vec::new(), &shape))
    }
}
