//! What recurrent models share: a stack over the window, and a linear head on the last step.

use super::{Inputs, windows};
use flatout_engine::{Activation, EngineError, Model, Recurrent, SequenceOutput, Tensor};

/// Adds the cell over a window, with a constant next to every step, in both directions or in one.
type Cell = fn(&mut Model, Tensor, Option<Tensor>, Recurrent, bool) -> Result<Tensor, EngineError>;

pub fn build(inputs: &Inputs, model: &mut Model, cell: Cell) -> Result<Option<Tensor>, EngineError> {
    let Some((window, beside)) = windows::inputs(inputs, model)? else {
        return Ok(None);
    };
    let stack = Recurrent {
        hidden: inputs.settings.hidden_size,
        layers: inputs.layers,
        dropout: inputs.settings.dropout,
        output: SequenceOutput::Last,
    };
    let state = cell(model, window, beside, stack, inputs.settings.bidirectional)?;
    Ok(Some(model.linear(
        "head",
        state,
        inputs.target.outputs(),
        Activation::None,
    )?))
}
