//! Sizes of learned positions.

use crate::EngineError;
use crate::initialise::Initialiser;
use crate::model::{Model, Tensor};
use crate::ops::Operation;

#[derive(Clone, Debug)]
pub struct Positions {
    pub steps: usize,
    pub batch: usize,
    pub width: usize,
}

impl Operation for Positions {
    fn name(&self) -> &'static str {
        "positions"
    }

    fn passes_gradient(&self) -> bool {
        true
    }
}

/// How far positions start from zero.
const DEVIATION: f64 = 0.02;

impl Model {
    /// `x[step, row] + {name}[step]` over `[steps, batch, width]`, the parameter being `[steps, width]`.
    pub fn positions(&mut self, name: &str, input: Tensor) -> Result<Tensor, EngineError> {
        let [steps, batch, width] = self.sequence("positions", input)?;
        let table = self.parameter(name, &[steps, width], Initialiser::Normal(DEVIATION))?;
        let op = Positions { steps, batch, width };
        Ok(self.add(op, &[input], vec![table], &[steps, batch, width]))
    }
}
