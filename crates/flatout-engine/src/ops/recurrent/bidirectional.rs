//! Stacks that read a sequence in both directions: per layer one recurrence over the steps as they are and one over the steps reversed,
//! joined. Parameters are those of PyTorch's `bidirectional=True`.

use super::{Layers, Recurrent, SequenceOutput};
use crate::EngineError;
use crate::model::{Model, Tensor};
use crate::ops::Op;
use crate::ops::gru::Gru;
use crate::ops::lstm::Lstm;

impl Model {
    /// `nn.LSTM(bidirectional=True)`: `[batch, 2 · hidden]`, the state of each direction when it has read everything, or
    /// `[steps, batch, 2 · hidden]`.
    pub fn bidirectional_lstm(
        &mut self,
        name: &str,
        input: Tensor,
        constant: Option<Tensor>,
        stack: Recurrent,
    ) -> Result<Tensor, EngineError> {
        let cell = |layers| Lstm { layers }.into();
        self.bidirectional(("lstm", name, 4), (input, constant), stack, cell)
    }

    /// `nn.GRU(bidirectional=True)`, as [`Model::bidirectional_lstm`].
    pub fn bidirectional_gru(
        &mut self,
        name: &str,
        input: Tensor,
        constant: Option<Tensor>,
        stack: Recurrent,
    ) -> Result<Tensor, EngineError> {
        let cell = |layers| Gru { layers }.into();
        self.bidirectional(("gru", name, 3), (input, constant), stack, cell)
    }

    fn bidirectional(
        &mut self,
        (operation, name, gates): (&'static str, &str, usize),
        (input, constant): (Tensor, Option<Tensor>),
        stack: Recurrent,
        cell: fn(Layers) -> Op,
    ) -> Result<Tensor, EngineError> {
        if stack.layers == 0 {
            return Err(EngineError::Setting {
                operation,
                setting: "layers",
                value: 0.0,
                allowed: "1 or more",
            });
        }
        let mut values = input;
        for layer in 0..stack.layers {
            let is_last = layer + 1 == stack.layers;
            let one = Recurrent {
                layers: 1,
                dropout: 0.0,
                output: if is_last {
                    stack.output
                } else {
                    SequenceOutput::All
                },
                ..stack
            };
            let constant = constant.filter(|_| layer == 0);
            let reversed = self.reverse_steps(values)?;
            let mut directions = Vec::new();
            for (source, suffix) in [(values, ""), (reversed, "_reverse")] {
                let names = (name, layer, suffix);
                let (layers, parameters) =
                    self.recurrent_from(operation, names, gates, (source, constant), one)?;
                let inputs: Vec<Tensor> = std::iter::once(source).chain(constant).collect();
                let shape = layers.output_shape();
                directions.push(self.add(cell(layers), &inputs, parameters, &shape));
            }
            if one.output == SequenceOutput::All {
                directions[1] = self.reverse_steps(directions[1])?;
            }
            values = self.concat(&directions)?;
            if !is_last {
                values = self.dropout(values, stack.dropout)?;
            }
        }
        Ok(values)
    }
}
