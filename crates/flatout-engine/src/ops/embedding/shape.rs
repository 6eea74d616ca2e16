//! Sizes of an embedding.

use crate::EngineError;
use crate::initialise::Initialiser;
use crate::model::{Model, Tensor};
use crate::ops::Operation;
use crate::plan::DataType;

#[derive(Clone, Debug)]
pub struct Embedding {
    pub batch: usize,
    pub entries: usize,
    pub width: usize,
}

impl Operation for Embedding {
    fn name(&self) -> &'static str {
        "embedding"
    }
}

impl Model {
    /// `[batch, width]`: rows of the trained table `{name}.weight`.
    pub fn embedding(
        &mut self,
        name: &str,
        index: Tensor,
        entries: usize,
        width: usize,
    ) -> Result<Tensor, EngineError> {
        self.embedding_from(name, index, entries, width, Initialiser::Normal(1.0))
    }

    /// The same, starting otherwise than PyTorch's `Embedding`.
    pub fn embedding_from(
        &mut self,
        name: &str,
        index: Tensor,
        entries: usize,
        width: usize,
        initialiser: Initialiser,
    ) -> Result<Tensor, EngineError> {
        self.require(index, DataType::I32)?;
        let [batch] = self.dimensions("embedding", index, "indices of shape [batch]")?;
        let weight = self.parameter(&format!("{name}.weight"), &[entries, width], initialiser)?;
        let op = Embedding {
            batch,
            entries,
            width,
        };
        Ok(self.add(op, &[index], vec![weight], &[batch, width]))
    }
}
