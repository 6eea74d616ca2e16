//! Linear layers with ReLU and dropout over rows: features and the embeddings of categories side by side.

use super::Inputs;
use crate::data::Shape;
use crate::data::rows::codes_name;
use flatout_engine::{Activation, DataType, EngineError, Model, Tensor};

/// What a row gives to a model.
pub struct Rows {
    /// `[batch, features]`, where there are any.
    pub features: Option<Tensor>,
    /// The code of each category, and how many codes there are.
    pub codes: Vec<(Tensor, usize)>,
}

pub fn build(inputs: &Inputs, model: &mut Model) -> Result<Option<Tensor>, EngineError> {
    match rows(inputs, model)? {
        Some(rows) => deep(inputs, model, &rows),
        None => Ok(None),
    }
}

/// `None` for data of another kind.
pub fn rows(inputs: &Inputs, model: &mut Model) -> Result<Option<Rows>, EngineError> {
    let Shape::Rows { features, categories } = inputs.shape else {
        return Ok(None);
    };
    let start = model.index_input("start")?;
    let mut rows = Rows {
        features: None,
        codes: Vec::new(),
    };
    if *features > 0 {
        let table = model.table("features", DataType::Real, &[*features])?;
        rows.features = Some(model.gather_rows(table, start)?);
    }
    for (position, &entries) in categories.iter().enumerate() {
        let codes = model.table(&codes_name(position), DataType::I32, &[1])?;
        rows.codes
            .push((model.gather_rows(codes, start)?, entries.max(1)));
    }
    Ok(Some(rows))
}

/// The layers up to the outputs; `None` for rows without anything in them.
pub fn deep(inputs: &Inputs, model: &mut Model, rows: &Rows) -> Result<Option<Tensor>, EngineError> {
    let settings = inputs.settings;
    let mut parts: Vec<Tensor> = rows.features.into_iter().collect();
    for (position, &(code, entries)) in rows.codes.iter().enumerate() {
        let width = inputs.width(position).max(1).min(entries.max(2));
        parts.push(model.embedding(&format!("embedding{position}"), code, entries, width)?);
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
