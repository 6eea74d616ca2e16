//! Sizes of a self-attention. Sequences are time-major; the last dimension holds queries, keys and values one after the other, each
//! divided among the heads, as PyTorch's `MultiheadAttention` projects them.

use crate::EngineError;
use crate::activation::Activation;
use crate::initialise::Initialiser;
use crate::model::{Model, Tensor};
use crate::ops::Operation;

#[derive(Clone, Debug)]
pub struct Attention {
    pub steps: usize,
    pub batch: usize,
    pub heads: usize,
    /// Values of a head.
    pub size: usize,
}

impl Attention {
    /// Values of a row of queries, of keys, of values or of the output.
    pub fn width(&self) -> usize {
        self.heads * self.size
    }

    /// Rows of attention weights: one per sample, head and step.
    pub(crate) fn rows(&self) -> usize {
        self.batch * self.heads * self.steps
    }

    pub(crate) fn scale(&self) -> f64 {
        1.0 / (self.size as f64).sqrt()
    }
}

impl Operation for Attention {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn forward_flops(&self) -> f64 {
        4.0 * self.rows() as f64 * self.steps as f64 * self.size as f64
    }
}

impl Model {
    /// `softmax(Q·Kᵀ / √size)·V` per sample and head: `[steps, batch, 3 · width]` to `[steps, batch, width]`.
    pub fn attention(&mut self, input: Tensor, heads: usize) -> Result<Tensor, EngineError> {
        let [steps, batch, three] = self.sequence("attention", input)?;
        let width = three / 3;
        if heads == 0 || !three.is_multiple_of(3) || !width.is_multiple_of(heads) {
            return Err(EngineError::Shape {
                operation: "attention",
                expected: format!("queries, keys and values, each divisible among {heads} heads"),
                found: vec![steps, batch, three],
            });
        }
        let op = Attention {
            steps,
            batch,
            heads,
            size: width / heads,
        };
        Ok(self.add(op, &[input], Vec::new(), &[steps, batch, width]))
    }

    /// `nn.MultiheadAttention` of a sequence with itself: `{name}.in_proj_weight`, `{name}.in_proj_bias`,
    /// `{name}.out_proj.weight` and `{name}.out_proj.bias`.
    pub fn self_attention(&mut self, name: &str, input: Tensor, heads: usize) -> Result<Tensor, EngineError> {
        let [.., width] = self.sequence("attention", input)?;
        // PyTorch's start: Xavier over the three projections together, biases of zero.
        let xavier = Initialiser::Uniform((6.0 / (4 * width.max(1)) as f64).sqrt());
        let weight = self.parameter(&format!("{name}.in_proj_weight"), &[3 * width, width], xavier)?;
        let zero = Initialiser::Constant(0.0);
        let bias = self.parameter(&format!("{name}.in_proj_bias"), &[3 * width], zero)?;
        let projected = self.linear_with(input, (weight, bias), Activation::None)?;
        let attended = self.attention(projected, heads)?;
        let initialiser = Initialiser::fan(width);
        let weight = self.parameter(&format!("{name}.out_proj.weight"), &[width, width], initialiser)?;
        let bias = self.parameter(&format!("{name}.out_proj.bias"), &[width], zero)?;
        self.linear_with(attended, (weight, bias), Activation::None)
    }
}
