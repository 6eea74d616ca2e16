//! The GELU as the plan knows it. Its slope does not follow from its result, so it is an operation of its own and not an
//! [`Activation`](crate::Activation).

use crate::EngineError;
use crate::model::{Model, Tensor};
use crate::ops::Operation;
use crate::plan::DataType;

#[derive(Clone, Debug)]
pub struct Gelu;

impl Operation for Gelu {
    fn name(&self) -> &'static str {
        "gelu"
    }
}

impl Model {
    /// `x · Φ(x)`, PyTorch's `nn.GELU()`.
    pub fn gelu(&mut self, input: Tensor) -> Result<Tensor, EngineError> {
        self.require(input, DataType::Real)?;
        let shape = self.shape(input).to_vec();
        Ok(self.add(Gelu, &[input], Vec::new(), &shape))
    }
}
