//! What models of sequences share: the window, and the embeddings of the entity and of categories that go next to every step.

use super::Inputs;
use crate::data::Shape;
use crate::data::rows::codes_name;
use flatout_engine::{DataType, EngineError, Model, Tensor};

/// The window `[sequence_length, batch, features]` and what does not change with time, `[batch, width]`; `None` for other data.
pub fn inputs(inputs: &Inputs, model: &mut Model) -> Result<Option<(Tensor, Option<Tensor>)>, EngineError> {
    let &Shape::Sequence {
        features,
        entities,
        unknown,
        ref categories,
    } = inputs.shape
    else {
        return Ok(None);
    };
    let settings = inputs.settings;
    let table = model.table("features", DataType::Real, &[features])?;
    let start = model.index_input("start")?;
    let window = model.gather_windows(table, start, settings.sequence_length)?;
    let mut beside = Vec::new();
    if settings.entity_embedding_dim > 0 {
        let index = model.index_input("entity")?;
        let entries = entities.max(1) + usize::from(unknown);
        beside.push(model.embedding("embedding", index, entries, settings.entity_embedding_dim)?);
    }
    if !categories.is_empty() {
        let last = model.index_input("last")?;
        for (position, &entries) in categories.iter().enumerate() {
            let codes = model.table(&codes_name(position), DataType::I32, &[1])?;
            let code = model.gather_rows(codes, last)?;
            let width = inputs.width(position).max(1).min(entries.max(2));
            beside.push(model.embedding(&format!("embedding{position}"), code, entries.max(1), width)?);
        }
    }
    let beside = match beside.as_slice() {
        [] => None,
        [one] => Some(*one),
        several => Some(model.concat(several)?),
    };
    Ok(Some((window, beside)))
}

/// The same as one sequence: what does not change with time is repeated at every step.
pub fn joined(inputs: &Inputs, model: &mut Model) -> Result<Option<Tensor>, EngineError> {
    let Some((window, beside)) = self::inputs(inputs, model)? else {
        return Ok(None);
    };
    let Some(beside) = beside else {
        return Ok(Some(window));
    };
    let repeated = model.repeat_steps(beside, inputs.settings.sequence_length)?;
    Ok(Some(model.concat(&[window, repeated])?))
}
