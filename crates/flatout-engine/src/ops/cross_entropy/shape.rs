//! Sizes of the cross-entropy. A sample may have several answers (the characters of a captcha), each with classes of its own.

use crate::EngineError;
use crate::model::{Model, Tensor};
use crate::ops::Operation;
use crate::plan::DataType;

#[derive(Clone, Debug)]
pub struct CrossEntropy {
    pub batch: usize,
    /// Answers of a sample.
    pub answers: usize,
    pub classes: usize,
}

impl Operation for CrossEntropy {
    fn name(&self) -> &'static str {
        "cross_entropy"
    }
}

impl Model {
    /// PyTorch's `CrossEntropyLoss`: logits `[batch, answers · classes]` (or `[batch, classes]`) against class numbers
    /// `[batch, answers]` (or `[batch]`); the mean over all answers.
    pub fn cross_entropy(&mut self, logits: Tensor, target: Tensor) -> Result<Tensor, EngineError> {
        self.require(logits, DataType::Real)?;
        self.require(target, DataType::I32)?;
        let batch = self.batch;
        let (shape, answers) = (self.shape(logits), self.shape(target));
        let length: usize = shape.iter().product();
        let count: usize = answers.iter().product();
        let fits = shape.first() == Some(&batch) && answers.first() == Some(&batch);
        if !fits || count == 0 || !length.is_multiple_of(count) {
            return Err(EngineError::Shape {
                operation: "cross_entropy",
                expected: format!("class numbers for logits of shape {shape:?}"),
                found: answers.to_vec(),
            });
        }
        let op = CrossEntropy {
            batch,
            answers: count / batch,
            classes: length / count,
        };
        Ok(self.add(op, &[logits, target], Vec::new(), &[1]))
    }
}
