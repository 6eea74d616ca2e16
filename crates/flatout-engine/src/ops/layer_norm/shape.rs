//! Sizes of a layer normalization, PyTorch's `LayerNorm` over the last dimension with its defaults.

use crate::EngineError;
use crate::initialise::Initialiser;
use crate::model::{Model, Tensor};
use crate::ops::Operation;
use crate::plan::DataType;

#[derive(Clone, Debug)]
pub struct LayerNorm {
    /// Everything but the last dimension.
    pub rows: usize,
    pub width: usize,
    pub epsilon: f64,
}

impl Operation for LayerNorm {
    fn name(&self) -> &'static str {
        "layer_norm"
    }
}

impl Model {
    /// `(x − mean) / deviation · weight + bias` of each row, with `{name}.weight` and `{name}.bias`.
    pub fn layer_norm(&mut self, name: &str, input: Tensor) -> Result<Tensor, EngineError> {
        self.require(input, DataType::Real)?;
        let shape = self.shape(input).to_vec();
        let Some((&width, leading)) = shape.split_last() else {
            return Err(EngineError::Shape {
                operation: "layer_norm",
                expected: "a shape [batch, …, width]".to_owned(),
                found: shape,
            });
        };
        let weight = self.parameter(&format!("{name}.weight"), &[width], Initialiser::Constant(1.0))?;
        let bias = self.parameter(&format!("{name}.bias"), &[width], Initialiser::Constant(0.0))?;
        let op = LayerNorm {
            rows: leading.iter().product(),
            width,
            epsilon: 1e-5,
        };
        Ok(self.add(op, &[input], vec![weight, bias], &shape))
    }
}
