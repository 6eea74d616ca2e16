//! Sizes of a causal convolution over time. Sequences are time-major, `[steps, batch, channels]`; the weight has PyTorch's shape.
//!
//! Output step j, counted from the last, reads the input steps `j · stride + place · dilation`, counted from the last, for place 0
//! (the weight's last) to `taps − 1`; what lies before the sequence counts as zero. A model that only needs its last step asks for
//! few outputs and skips the rest of the work.

use crate::EngineError;
use crate::activation::Activation;
use crate::initialise::Initialiser;
use crate::model::{Model, Tensor};
use crate::ops::Operation;

/// What the caller chooses of a causal convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Causal {
    /// Places of the weight.
    pub taps: usize,
    /// Steps between two places.
    pub dilation: usize,
    /// Steps between two outputs.
    pub stride: usize,
    /// Steps that come out; the last of them is the sequence's last.
    pub outputs: usize,
}

impl Causal {
    /// Every step of a sequence, with places that lie next to each other.
    pub fn every(taps: usize, steps: usize) -> Self {
        Self {
            taps,
            dilation: 1,
            stride: 1,
            outputs: steps,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Conv1d {
    pub steps: usize,
    pub batch: usize,
    pub channels: usize,
    pub filters: usize,
    pub causal: Causal,
    pub activation: Activation,
}

impl Conv1d {
    /// Rows of the output.
    pub fn rows(&self) -> usize {
        self.causal.outputs * self.batch
    }

    /// Values that one output is made of.
    pub fn patch(&self) -> usize {
        self.causal.taps * self.channels
    }

    /// Whether an output is made of the input's row as it is.
    pub(crate) fn is_plain(&self) -> bool {
        self.causal.taps == 1 && self.causal.outputs == self.steps
    }

    /// The input step of a place of an output step; `None` before the sequence.
    pub(crate) fn source(&self, output: usize, place: usize) -> Option<usize> {
        let causal = &self.causal;
        let back =
            (causal.outputs - 1 - output) * causal.stride + (causal.taps - 1 - place) * causal.dilation;
        (self.steps - 1).checked_sub(back)
    }
}

impl Operation for Conv1d {
    fn name(&self) -> &'static str {
        "conv1d"
    }

    fn forward_flops(&self) -> f64 {
        2.0 * self.rows() as f64 * self.patch() as f64 * self.filters as f64
    }
}

impl Model {
    /// `activation(conv(x) + b)`: `[steps, batch, channels]` to `[outputs, batch, filters]`, with `{name}.weight`
    /// `[filters, channels, taps]` and `{name}.bias` as PyTorch's `Conv1d`.
    pub fn conv1d(
        &mut self,
        name: &str,
        input: Tensor,
        filters: usize,
        causal: Causal,
        activation: Activation,
    ) -> Result<Tensor, EngineError> {
        let [steps, batch, channels] = self.sequence("conv1d", input)?;
        let reach = causal
            .outputs
            .checked_sub(1)
            .and_then(|more| more.checked_mul(causal.stride));
        let fits = reach.is_some_and(|reach| reach < steps);
        if !fits || causal.stride == 0 || causal.taps == 0 || causal.dilation == 0 || filters == 0 {
            return Err(EngineError::Shape {
                operation: "conv1d",
                expected: format!(
                    "a sequence with {} steps at a distance of {}, and 1 or more taps and filters",
                    causal.outputs, causal.stride
                ),
                found: vec![steps, batch, channels],
            });
        }
        let op = Conv1d {
            steps,
            batch,
            channels,
            filters,
            causal,
            activation,
        };
        let initialiser = Initialiser::fan(op.patch());
        let shape = [filters, channels, causal.taps];
        let weight = self.parameter(&format!("{name}.weight"), &shape, initialiser)?;
        let bias = self.parameter(&format!("{name}.bias"), &[filters], initialiser)?;
        let shape = [causal.outputs, batch, filters];
        Ok(self.add(op, &[input], vec![weight, bias], &shape))
    }
}
