//! What recurrent models share: the window, the embeddings of the entity and of categories next to every step, a linear head on the last
//! step.

use super::Inputs;
use crate::data::Shape;
use crate::data::rows::codes_name;
use flatout_engine::{Activation, DataType, EngineError, Model, Recurrent, SequenceOutput, Tensor};

/// Adds the cell over a window, with a constant beside every step.
type Cell = fn(&mut Model, Tensor, Option<Tensor>, Recurrent) -> Result<Tensor, EngineError>;

pub fn build(inputs: &Inputs, model: &mut Model, cell: Cell) -> Result<Option<Tensor>, EngineError> {
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
    let stack = Recurrent {
        hidden: settings.hidden_size,
        layers: inputs.layers,
        dropout: settings.dropout,
        output: SequenceOutput::Last,
    };
    let state = cell(model, window, beside, stack)?;
    Ok(Some(model.linear(
        "head",
        state,
        inputs.target.outputs(),
        Activation::None,
    )?))
}
