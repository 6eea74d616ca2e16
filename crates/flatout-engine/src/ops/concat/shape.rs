//! Sizes of a concatenation.

use crate::EngineError;
use crate::model::{Model, Tensor};
use crate::ops::Operation;
use crate::plan::DataType;

#[derive(Clone, Debug)]
pub struct Concat {
    pub rows: usize,
    /// The last dimension of each input.
    pub widths: Vec<usize>,
}

impl Operation for Concat {
    fn name(&self) -> &'static str {
        "concat"
    }
}

impl Model {
    /// Joins tensors that agree in all dimensions but the last.
    pub fn concat(&mut self, parts: &[Tensor]) -> Result<Tensor, EngineError> {
        let mut widths = Vec::new();
        let mut leading: Option<Vec<usize>> = None;
        for &part in parts {
            self.require(part, DataType::Real)?;
            let shape = self.shape(part).to_vec();
            let (Some((&width, rest)), known) = (shape.split_last(), leading.as_deref()) else {
                return Err(refused(shape));
            };
            if known.is_some_and(|known| known != rest) {
                return Err(refused(shape));
            }
            leading = Some(rest.to_vec());
            widths.push(width);
        }
        let Some(mut shape) = leading else {
            return Err(refused(Vec::new()));
        };
        let rows = shape.iter().product();
        shape.push(widths.iter().sum());
        Ok(self.add(Concat { rows, widths }, parts, Vec::new(), &shape))
    }
}

fn refused(found: Vec<usize>) -> EngineError {
    EngineError::Shape {
        operation: "concat",
        expected: "tensors that agree in all dimensions but the last".to_owned(),
        found,
    }
}
