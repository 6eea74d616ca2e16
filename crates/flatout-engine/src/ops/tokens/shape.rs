//! Sizes of the tokens of a row.

use crate::EngineError;
use crate::initialise::Initialiser;
use crate::model::{Model, Tensor};
use crate::ops::Operation;
use crate::ops::concat::Concat;
use crate::plan::DataType;

#[derive(Clone, Debug)]
pub struct Tokens {
    pub batch: usize,
    pub features: usize,
    pub width: usize,
}

impl Operation for Tokens {
    fn name(&self) -> &'static str {
        "tokens"
    }
}

impl Model {
    /// `[batch, features]` to `[features, batch, width]`, with `{name}.weight` and `{name}.bias` `[features, width]`.
    pub fn tokens(&mut self, name: &str, input: Tensor, width: usize) -> Result<Tensor, EngineError> {
        self.require(input, DataType::Real)?;
        let [batch, features] = self.dimensions("tokens", input, "rows of shape [batch, features]")?;
        let initialiser = Initialiser::fan(width);
        let weight = self.parameter(&format!("{name}.weight"), &[features, width], initialiser)?;
        let bias = self.parameter(&format!("{name}.bias"), &[features, width], initialiser)?;
        let op = Tokens {
            batch,
            features,
            width,
        };
        Ok(self.add(op, &[input], vec![weight, bias], &[features, batch, width]))
    }

    /// Sequences one after the other, `[steps, batch, width]`; rows `[batch, width]` are one step.
    pub fn join_steps(&mut self, parts: &[Tensor]) -> Result<Tensor, EngineError> {
        let (mut steps, mut widths, mut row) = (0, Vec::new(), None);
        for &part in parts {
            self.require(part, DataType::Real)?;
            let shape = self.shape(part).to_vec();
            let own = match *shape.as_slice() {
                [batch, width] => Some((1, [batch, width])),
                [steps, batch, width] => Some((steps, [batch, width])),
                _ => None,
            };
            let Some((count, own)) = own.filter(|(_, own)| row.is_none_or(|row| row == *own)) else {
                return Err(refused(shape));
            };
            row = Some(own);
            steps += count;
            widths.push(count * own[0] * own[1]);
        }
        let Some([batch, width]) = row else {
            return Err(refused(Vec::new()));
        };
        // Time comes first in memory, so this is a concatenation of one long row.
        Ok(self.add(
            Concat { rows: 1, widths },
            parts,
            Vec::new(),
            &[steps, batch, width],
        ))
    }
}

fn refused(found: Vec<usize>) -> EngineError {
    EngineError::Shape {
        operation: "join_steps",
        expected: "sequences of one batch and width".to_owned(),
        found,
    }
}
