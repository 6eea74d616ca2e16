//! Sizes of a convolution. Images are channels-last, `[batch, height, width, channels]`; the weight has PyTorch's shape.

use crate::EngineError;
use crate::activation::Activation;
use crate::initialise::Initialiser;
use crate::model::{Model, Tensor};
use crate::ops::Operation;
use crate::plan::DataType;

/// A window that slides over an image: square, the same step and padding in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub size: usize,
    pub stride: usize,
    pub padding: usize,
}

impl Window {
    /// How many windows fit along a side.
    pub fn count(&self, side: usize) -> usize {
        let padded = side + 2 * self.padding;
        if self.stride == 0 || self.size == 0 || padded < self.size {
            return 0;
        }
        (padded - self.size) / self.stride + 1
    }
}

#[derive(Clone, Debug)]
pub struct Conv2d {
    pub batch: usize,
    pub height: usize,
    pub width: usize,
    pub channels: usize,
    pub filters: usize,
    pub window: Window,
    /// Whether a bias is added: pointless right before a batch normalization.
    pub bias: bool,
    pub activation: Activation,
}

impl Conv2d {
    pub fn output_height(&self) -> usize {
        self.window.count(self.height)
    }

    pub fn output_width(&self) -> usize {
        self.window.count(self.width)
    }

    /// Pixels of all outputs.
    pub fn pixels(&self) -> usize {
        self.batch * self.output_height() * self.output_width()
    }

    /// Values under the window.
    pub fn patch(&self) -> usize {
        self.window.size * self.window.size * self.channels
    }
}

impl Operation for Conv2d {
    fn name(&self) -> &'static str {
        "conv2d"
    }

    fn forward_flops(&self) -> f64 {
        2.0 * self.pixels() as f64 * self.patch() as f64 * self.filters as f64
    }
}

impl Model {
    /// `activation(conv(x) + b)`: `[batch, height, width, channels]` to `[batch, height′, width′, filters]`, with
    /// `{name}.weight` `[filters, channels, size, size]` and `{name}.bias` as PyTorch's `Conv2d`.
    pub fn conv2d(
        &mut self,
        name: &str,
        input: Tensor,
        filters: usize,
        window: Window,
        activation: Activation,
    ) -> Result<Tensor, EngineError> {
        self.convolution(name, input, filters, window, true, activation)
    }

    /// The same without a bias and an activation, for a batch normalization behind it: PyTorch's `Conv2d(bias=False)`.
    pub fn conv2d_plain(
        &mut self,
        name: &str,
        input: Tensor,
        filters: usize,
        window: Window,
    ) -> Result<Tensor, EngineError> {
        self.convolution(name, input, filters, window, false, Activation::None)
    }

    fn convolution(
        &mut self,
        name: &str,
        input: Tensor,
        filters: usize,
        window: Window,
        bias: bool,
        activation: Activation,
    ) -> Result<Tensor, EngineError> {
        let [batch, height, width, channels] = self.image("conv2d", input)?;
        let op = Conv2d {
            batch,
            height,
            width,
            channels,
            filters,
            window,
            bias,
            activation,
        };
        self.window_fits("conv2d", &window, [batch, height, width, channels])?;
        let initialiser = Initialiser::fan(op.patch());
        let shape = [filters, channels, window.size, window.size];
        let weight = self.parameter(&format!("{name}.weight"), &shape, initialiser)?;
        let mut parameters = vec![weight];
        if bias {
            parameters.push(self.parameter(&format!("{name}.bias"), &[filters], initialiser)?);
        }
        let shape = [batch, op.output_height(), op.output_width(), filters];
        Ok(self.add(op, &[input], parameters, &shape))
    }

    /// The sizes of a tensor that must be a batch of images.
    pub(crate) fn image(&self, operation: &'static str, input: Tensor) -> Result<[usize; 4], EngineError> {
        self.require(input, DataType::Real)?;
        self.dimensions(
            operation,
            input,
            "images of shape [batch, height, width, channels]",
        )
    }

    pub(crate) fn window_fits(
        &self,
        operation: &'static str,
        window: &Window,
        [batch, height, width, channels]: [usize; 4],
    ) -> Result<(), EngineError> {
        let fits = window.count(height) > 0 && window.count(width) > 0 && window.padding < window.size;
        if fits {
            return Ok(());
        }
        Err(EngineError::Shape {
            operation,
            expected: format!("images that a window of size {} fits into", window.size),
            found: vec![batch, height, width, channels],
        })
    }
}
