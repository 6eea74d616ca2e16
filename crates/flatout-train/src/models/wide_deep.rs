//! Wide and deep over rows: the deep side is the MLP, the wide side one weight per value of each category and per feature, straight to the
//! output. The wide side learns by heart what single values do, the deep side what they do together.

use super::{Inputs, mlp};
use flatout_engine::{Activation, EngineError, Initialiser, Model, Tensor};

pub fn build(inputs: &Inputs, model: &mut Model) -> Result<Option<Tensor>, EngineError> {
    let Some(rows) = mlp::rows(inputs, model)? else {
        return Ok(None);
    };
    let outputs = inputs.target.outputs();
    let Some(mut sum) = mlp::deep(inputs, model, &rows)? else {
        return Ok(None);
    };
    if let Some(features) = rows.features {
        let wide = model.linear("wide", features, outputs, Activation::None)?;
        sum = model.residual(sum, wide, Activation::None)?;
    }
    for (position, &(code, entries)) in rows.codes.iter().enumerate() {
        let name = format!("wide_embedding{position}");
        // From zero: at the start, the deep side alone decides.
        let start = Initialiser::Constant(0.0);
        let wide = model.embedding_from(&name, code, entries, outputs, start)?;
        sum = model.residual(sum, wide, Activation::None)?;
    }
    Ok(Some(sum))
}
