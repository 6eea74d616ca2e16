//! Linear layers with ReLU and dropout over rows: features and the embeddings of categories side by side.

use super::Inputs;
use crate::data::Shape;
use crate::data::rows::codes_name;
use flatout_engine::{Activation, DataType, EngineError, Model, Tensor};

pub fn build(inputs: &Inputs, model: &mut Model) -> Result<Option<Tensor>, EngineError> {
    let Shape::Rows { features, categories } = inputs.shape else {
        return Ok(None);
    };
    let settings = inputs.settings;
    let start = model.index_input("start")?;
    let mut parts = Vec::new();
    if *features > 0 {
        let table = model.table("features", DataType::Real, &[*features])?;
        parts.push(model.gather_rows(table, start)?);
    }
    for (position, &entries) in categories.iter().enumerate() {
        let codes = model.table(&codes_name(position), DataType::I32, &[1])?;
        let code = model.gather_rows(codes, start)?;
        let width = inputs.width(position).max(1).min(entries.max(2));
        parts.push(model.embedding(&format!("embedding{position}"), code, entries.max(1), width)?);
    }
    let mut values = match parts.as_slice() {
        [] => return Ok(None),
        [one] => *one,
        several => model.concat(several)?,
    };
    for layer in 0..inputs.layers {
        let name = format!("layers.{layer}");
        values = model.linear(&name, values, settings.hidden_size, Activation::Relu)?;
        values = model.dropout(values, settings.dropout)?;
    }
    Ok(Some(model.linear(
        "head",
        values,
        inputs.target.outputs(),
        Activation::None,
    )?))
}
