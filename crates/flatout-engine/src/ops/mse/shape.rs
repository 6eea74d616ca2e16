//! Sizes of the mean squared error.

use crate::EngineError;
use crate::model::{Model, Tensor};
use crate::ops::Operation;
use crate::plan::DataType;

#[derive(Clone, Debug)]
pub struct Mse {
    pub rows: usize,
    pub width: usize,
}

impl Operation for Mse {
    fn name(&self) -> &'static str {
        "mse"
    }
}

impl Model {
    /// The mean of `(prediction − target)²` over all values of the valid rows.
    pub fn mse(&mut self, prediction: Tensor, target: Tensor) -> Result<Tensor, EngineError> {
        let (rows, width) = self.same_rows("mse", prediction, target)?;
        Ok(self.add(Mse { rows, width }, &[prediction, target], Vec::new(), &[1]))
    }

    /// Rows and values a row of two tensors that must agree.
    pub(crate) fn same_rows(
        &self,
        operation: &'static str,
        prediction: Tensor,
        target: Tensor,
    ) -> Result<(usize, usize), EngineError> {
        self.require(prediction, DataType::Real)?;
        self.require(target, DataType::Real)?;
        let (shape, other) = (self.shape(prediction), self.shape(target));
        let length = |shape: &[usize]| shape.iter().product::<usize>();
        if shape.first() != Some(&self.batch)
            || other.first() != Some(&self.batch)
            || length(shape) != length(other)
        {
            return Err(EngineError::Shape {
                operation,
                expected: format!("a target like the prediction, {shape:?}"),
                found: other.to_vec(),
            });
        }
        Ok((self.batch, length(shape) / self.batch.max(1)))
    }
}
