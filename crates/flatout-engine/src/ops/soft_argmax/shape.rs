//! Sizes of a soft argmax: with p the softmax of a map over its pixels, `x = Σ p · x(pixel)` and `y = Σ p · y(pixel)`. Pixel centers run
//! from −1 to 1 across the map: `x(column) = (2 · column + 1) / width − 1`.

use crate::EngineError;
use crate::model::{Model, Tensor};
use crate::ops::Operation;

#[derive(Clone, Debug)]
pub struct SoftArgmax {
    pub batch: usize,
    pub height: usize,
    pub width: usize,
    pub maps: usize,
}

impl Operation for SoftArgmax {
    fn name(&self) -> &'static str {
        "soft_argmax"
    }
}

impl Model {
    /// `[batch, 2 · maps]`: x and y of the first map's peak, then of the second's, …
    pub fn soft_argmax(&mut self, input: Tensor) -> Result<Tensor, EngineError> {
        let [batch, height, width, maps] = self.image("soft_argmax", input)?;
        let op = SoftArgmax {
            batch,
            height,
            width,
            maps,
        };
        Ok(self.add(op, &[input], Vec::new(), &[batch, 2 * maps]))
    }
}
