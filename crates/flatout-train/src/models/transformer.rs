//! A transformer encoder over the window, with learned positions; a linear head on the mean over the steps.

use super::{Inputs, encoder, windows};
use flatout_engine::{Activation, EngineError, Model, Tensor};

pub fn build(inputs: &Inputs, model: &mut Model) -> Result<Option<Tensor>, EngineError> {
    let Some(window) = windows::joined(inputs, model)? else {
        return Ok(None);
    };
    let values = model.linear("input", window, inputs.settings.hidden_size, Activation::None)?;
    let values = model.positions("positions", values)?;
    let mean = encoder::mean(inputs, model, values)?;
    let outputs = inputs.target.outputs();
    Ok(Some(model.linear("head", mean, outputs, Activation::None)?))
}
