//! What recurrent models share: the window, an entity's embedding beside every step, a linear head on the last step.

use super::Inputs;
use crate::data::Shape;
use flatout_engine::{Activation, DataType, EngineError, Model, Recurrent, SequenceOutput, Tensor};

/// Adds the cell over a window, with a constant beside every step.
type Cell = fn(&mut Model, Tensor, Option<Tensor>, Recurrent) -> Result<Tensor, EngineError>;

pub fn build(inputs: &Inputs, model: &mut Model, cell: Cell) -> Result<Option<Tensor>, EngineError> {
    let Shape::Sequence { features, entities } = *inputs.shape else {
        return Ok(None);
    };
    let settings = inputs.settings;
    let table = model.table("features", DataType::Real, &[features])?;
    let start = model.index_input("start")?;
    let window = model.gather_windows(table, start, settings.sequence_length)?;
    let entity = match settings.entity_embedding_dim {
        0 => None,
        width => {
            let index = model.index_input("entity")?;
            Some(model.embedding("embedding", index, entities.max(1), width)?)
        }
    };
    let stack = Recurrent {
        hidden: settings.hidden_size,
        layers: inputs.layers,
        dropout: settings.dropout,
        output: SequenceOutput::Last,
    };
    let state = cell(model, window, entity, stack)?;
    Ok(Some(model.linear(
        "head",
        state,
        inputs.target.outputs(),
        Activation::None,
    )?))
}
