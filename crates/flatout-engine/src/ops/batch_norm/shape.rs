//! Sizes of a batch normalisation, PyTorch's `BatchNorm1d` and `BatchNorm2d` with their defaults.

use crate::EngineError;
use crate::activation::Activation;
use crate::initialise::Initialiser;
use crate::model::{Draft, Model, Tensor};
use crate::ops::Operation;
use crate::plan::{DataType, Role};

#[derive(Clone, Debug)]
pub struct BatchNorm {
    /// Everything but the last dimension.
    pub rows: usize,
    pub channels: usize,
    pub epsilon: f64,
    /// Weight of the new statistics in the running ones.
    pub momentum: f64,
    pub activation: Activation,
}

impl Operation for BatchNorm {
    fn name(&self) -> &'static str {
        "batch_norm"
    }
}

impl Model {
    /// Parameters `{name}.weight`, `{name}.bias`; state `{name}.running_mean`, `{name}.running_var`.
    pub fn batch_norm(
        &mut self,
        name: &str,
        input: Tensor,
        activation: Activation,
    ) -> Result<Tensor, EngineError> {
        self.require(input, DataType::Real)?;
        let shape = self.shape(input).to_vec();
        let Some((&channels, leading)) = shape.split_last() else {
            return Err(EngineError::Shape {
                operation: "batch_norm",
                expected: "a shape [batch, …, channels]".to_owned(),
                found: shape,
            });
        };
        let (zero, one) = (Initialiser::Constant(0.0), Initialiser::Constant(1.0));
        let weight = self.parameter(&format!("{name}.weight"), &[channels], one)?;
        let bias = self.parameter(&format!("{name}.bias"), &[channels], zero)?;
        let mut state = |part: &str, initialiser| {
            let name = format!("{name}.{part}");
            self.named(&name, &[channels], DataType::Real, Role::State, initialiser)
        };
        let states = vec![state("running_mean", zero)?, state("running_var", one)?];
        let op = BatchNorm {
            rows: leading.iter().product(),
            channels,
            epsilon: 1e-5,
            momentum: 0.1,
            activation,
        };
        let output = self.activation(&shape, DataType::Real);
        self.drafts.push(Draft {
            op: op.into(),
            inputs: vec![input],
            outputs: vec![output],
            parameters: vec![weight, bias],
            states,
        });
        Ok(output)
    }
}
