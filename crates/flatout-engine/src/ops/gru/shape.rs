//! The GRU as the plan knows it.

use crate::EngineError;
use crate::model::{Model, Tensor};
use crate::ops::Operation;
use crate::ops::recurrent::{Layers, Recurrent};

#[derive(Clone, Debug)]
pub struct Gru {
    pub layers: Layers,
}

impl Operation for Gru {
    fn name(&self) -> &'static str {
        "gru"
    }

    fn forward_flops(&self) -> f64 {
        self.layers.forward_flops()
    }
}

impl Model {
    /// `nn.GRU` over `[steps, batch, inputs]`, and a `constant` `[batch, width]` beside every step.
    pub fn gru(
        &mut self,
        name: &str,
        input: Tensor,
        constant: Option<Tensor>,
        stack: Recurrent,
    ) -> Result<Tensor, EngineError> {
        let (layers, parameters) = self.recurrent("gru", name, 3, (input, constant), stack)?;
        let inputs: Vec<Tensor> = std::iter::once(input).chain(constant).collect();
        let shape = layers.output_shape();
        Ok(self.add(Gru { layers }, &inputs, parameters, &shape))
    }
}

impl std::ops::Deref for Gru {
    type Target = Layers;

    fn deref(&self) -> &Layers {
        &self.layers
    }
}
