//! Linear layers with ReLU over rows: features and the embeddings of categories side by side. On sequences: over the window's last row.

use crate::Settings;
use crate::data::{CODES, Shape};
use flatout_engine::{Activation, DataType, EngineError, Model, Tensor};

pub fn build(settings: &Settings, shape: &Shape, model: &mut Model) -> Result<Option<Tensor>, EngineError> {
    let (features, categories): (usize, &[usize]) = match shape {
        Shape::Rows { features, categories } => (*features, categories),
        Shape::Sequence { .. } => return Ok(None),
    };
    let table = model.table("features", DataType::Real, &[features])?;
    let start = model.index_input("start")?;
    let mut parts = vec![model.gather_rows(table, start)?];
    for (position, (&entries, name)) in categories.iter().zip(CODES).enumerate() {
        let codes = model.table(name, DataType::I32, &[1])?;
        let code = model.gather_rows(codes, start)?;
        let width = settings.entity_embedding_dim.max(1).min(entries.max(2));
        parts.push(model.embedding(&format!("embedding{position}"), code, entries.max(1), width)?);
    }
    let mut values = if parts.len() == 1 {
        parts[0]
    } else {
        model.concat(&parts)?
    };
    for layer in 0..settings.num_layers {
        values = model.linear(
            &format!("layers.{layer}"),
            values,
            settings.hidden_size,
            Activation::Relu,
        )?;
    }
    Ok(Some(model.linear("head", values, 1, Activation::None)?))
}
