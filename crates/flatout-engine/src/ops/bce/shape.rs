//! Sizes of the binary cross-entropy.

use crate::EngineError;
use crate::model::{Model, Tensor};
use crate::ops::Operation;

#[derive(Clone, Debug)]
pub struct Bce {
    pub rows: usize,
    pub width: usize,
}

impl Operation for Bce {
    fn name(&self) -> &'static str {
        "bce"
    }
}

impl Model {
    /// PyTorch's `BCEWithLogitsLoss`: targets from 0 to 1.
    pub fn bce_with_logits(&mut self, logits: Tensor, target: Tensor) -> Result<Tensor, EngineError> {
        let (rows, width) = self.same_rows("bce", logits, target)?;
        Ok(self.add(Bce { rows, width }, &[logits, target], Vec::new(), &[1]))
    }
}
