//! `nn.LSTM` over windows, an entity's embedding beside every step, a linear head on the last step.

use crate::Settings;
use crate::data::Shape;
use flatout_engine::{Activation, DataType, EngineError, Model, Recurrent, SequenceOutput, Tensor};

pub fn build(settings: &Settings, shape: &Shape, model: &mut Model) -> Result<Option<Tensor>, EngineError> {
    let Shape::Sequence { features, entities } = *shape else {
        return Ok(None);
    };
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
        layers: settings.num_layers,
        dropout: settings.dropout,
        output: SequenceOutput::Last,
    };
    let state = model.lstm("lstm", window, entity, stack)?;
    Ok(Some(model.linear("head", state, 1, Activation::None)?))
}
