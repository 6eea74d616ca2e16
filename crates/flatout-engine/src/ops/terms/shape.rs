//! What a term is, and which outputs and labels it reads.

use crate::EngineError;
use crate::model::{Model, Tensor};
use crate::ops::Operation;
use crate::plan::DataType;

/// The loss of one prediction and one label.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TermLoss {
    /// (p − y)²
    Squared,
    /// |p − y|
    Absolute,
    /// (p − y)²/2 up to `delta`, linear beyond.
    Huber { delta: f64 },
    /// The pinball loss: `quantile` · (y − p) below the label, (1 − `quantile`) · (p − y) above it.
    Quantile { quantile: f64 },
    /// Cross-entropy of a logit and a label from 0 to 1, times (1 − p_t)^`gamma`: 0 is the plain cross-entropy, more is the focal loss of a
    /// label that is 0 or 1.
    Binary { gamma: f64 },
    /// Cross-entropy of `classes` logits and a class number. `smoothing` is spread over all classes; `gamma` as above.
    Classes { smoothing: f64, gamma: f64 },
}

impl TermLoss {
    /// The kernels' number for it, and its parameters.
    pub(crate) fn code(self) -> (i32, f64, f64) {
        match self {
            Self::Squared => (0, 0.0, 0.0),
            Self::Absolute => (1, 0.0, 0.0),
            Self::Huber { delta } => (2, delta, 0.0),
            Self::Quantile { quantile } => (3, quantile, 0.0),
            Self::Binary { gamma } => (4, gamma, 0.0),
            Self::Classes { smoothing, gamma } => (5, gamma, smoothing),
        }
    }
}

/// One loss over `count` outputs and as many label columns, side by side; or over the logits of one label's classes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Term {
    pub loss: TermLoss,
    /// The first output.
    pub first: usize,
    /// Outputs with a label column each; 1 for classes.
    pub count: usize,
    /// Outputs of one label: 1, or its classes.
    pub classes: usize,
    /// The first label column.
    pub column: usize,
    /// Of the whole loss, for each of the columns.
    pub share: f64,
}

#[derive(Clone, Debug)]
pub struct Terms {
    pub rows: usize,
    /// Outputs of a row.
    pub width: usize,
    /// Labels of a row.
    pub columns: usize,
    pub terms: Vec<Term>,
}

impl Operation for Terms {
    fn name(&self) -> &'static str {
        "terms"
    }
}

impl Model {
    /// A weighted sum of losses: predictions `[batch, width]`, words `[batch, 2 · columns]`. Every output belongs to exactly one term.
    pub fn terms(
        &mut self,
        prediction: Tensor,
        words: Tensor,
        terms: Vec<Term>,
    ) -> Result<Tensor, EngineError> {
        self.require(prediction, DataType::Real)?;
        self.require(words, DataType::I32)?;
        let [rows, width] = self.dimensions("terms", prediction, "predictions of shape [batch, width]")?;
        let [word_rows, length] = self.dimensions("terms", words, "words of shape [batch, 2 · columns]")?;
        let columns = length / 2;
        let mut taken = vec![0usize; width];
        for term in &terms {
            let outputs = term.first..term.first + term.count * term.classes;
            for output in outputs {
                if let Some(count) = taken.get_mut(output) {
                    *count += 1;
                }
            }
        }
        let within = |term: &Term| term.count > 0 && term.classes > 0 && term.column + term.count <= columns;
        let single = |term: &Term| match term.loss {
            TermLoss::Classes { .. } => term.count == 1,
            _ => term.classes == 1,
        };
        let covered = taken.iter().all(|count| *count == 1);
        if word_rows != rows
            || length % 2 != 0
            || !covered
            || !terms.iter().all(|term| within(term) && single(term))
        {
            return Err(EngineError::Shape {
                operation: "terms",
                expected: format!("terms that cover {width} outputs once, over {columns} labels"),
                found: vec![word_rows, length],
            });
        }
        let op = Terms {
            rows,
            width,
            columns,
            terms,
        };
        Ok(self.add(op, &[prediction, words], Vec::new(), &[1]))
    }
}
