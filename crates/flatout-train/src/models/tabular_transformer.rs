//! A transformer encoder over the columns of a row, after the FT-Transformer of Gorishniy and others (2021): every feature becomes a vector
//! of its own (`x · W + b`), every category an embedding as wide as the model, and attention lets columns look at each other. The head
//! reads the mean over the columns instead of a token of its own.

use super::{Inputs, encoder, mlp};
use flatout_engine::{Activation, EngineError, Initialiser, Model, Tensor};

pub fn build(inputs: &Inputs, model: &mut Model) -> Result<Option<Tensor>, EngineError> {
    let Some(rows) = mlp::rows(inputs, model)? else {
        return Ok(None);
    };
    let hidden = inputs.settings.hidden_size;
    let mut columns = Vec::new();
    if let Some(features) = rows.features {
        columns.push(model.tokens("tokens", features, hidden)?);
    }
    for (position, &(code, entries)) in rows.codes.iter().enumerate() {
        let name = format!("embedding{position}");
        // As far from zero as the vectors of features.
        let start = Initialiser::fan(hidden);
        columns.push(model.embedding_from(&name, code, entries, hidden, start)?);
    }
    if columns.is_empty() {
        return Ok(None);
    }
    let values = model.join_steps(&columns)?;
    let mean = encoder::mean(inputs, model, values)?;
    let mean = model.activate(mean, Activation::Relu)?;
    let outputs = inputs.target.outputs();
    Ok(Some(model.linear("head", mean, outputs, Activation::None)?))
}
