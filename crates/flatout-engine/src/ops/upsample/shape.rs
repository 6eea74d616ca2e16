//! Sizes of an upsampling. Images are channels-last.

use crate::EngineError;
use crate::model::{Model, Tensor};
use crate::ops::Operation;

#[derive(Clone, Debug)]
pub struct Upsample {
    pub batch: usize,
    pub height: usize,
    pub width: usize,
    pub channels: usize,
    pub output_height: usize,
    pub output_width: usize,
}

impl Upsample {
    /// Output pixels that copy input pixel `at` of a side: the first, and the first that does not.
    pub(crate) fn copies(at: usize, side: usize, output: usize) -> std::ops::Range<usize> {
        (at * output).div_ceil(side)..((at + 1) * output).div_ceil(side)
    }
}

impl Operation for Upsample {
    fn name(&self) -> &'static str {
        "upsample"
    }
}

impl Model {
    /// `[batch, height′, width′, channels]`, PyTorch's `interpolate(mode="nearest")`: pixel y of the output is pixel
    /// `y · height / height′` of the input, rounded down.
    pub fn upsample(
        &mut self,
        input: Tensor,
        (output_height, output_width): (usize, usize),
    ) -> Result<Tensor, EngineError> {
        let [batch, height, width, channels] = self.image("upsample", input)?;
        if output_height < height || output_width < width {
            return Err(EngineError::Shape {
                operation: "upsample",
                expected: format!("images of at most {output_height} × {output_width} pixels"),
                found: vec![batch, height, width, channels],
            });
        }
        let op = Upsample {
            batch,
            height,
            width,
            channels,
            output_height,
            output_width,
        };
        let shape = [batch, output_height, output_width, channels];
        Ok(self.add(op, &[input], Vec::new(), &shape))
    }
}
