//! The models, one file each: data and settings to a plan. A new one is a file here and one line in the list.

mod lstm;
mod mlp;

use crate::data::{Shape, Task};
use crate::{Settings, TrainError};
use flatout_core::message;
use flatout_engine::{EngineError, Model, Optimizer, Plan, Rule, Tensor};

/// Builds a plan; the model names its output `prediction`.
type Build = fn(&Settings, &Shape, &mut Model) -> Result<Option<Tensor>, EngineError>;

const MODELS: &[(&str, Build)] = &[("lstm", lstm::build), ("mlp", mlp::build)];

/// For `--model-type`.
pub const NAMES: &[&str] = &["lstm", "mlp"];

/// The plan of the model that the settings name, for a batch of this size.
pub fn plan(settings: &Settings, shape: &Shape, task: Task, batch: usize) -> Result<Plan, TrainError> {
    let mut model = Model::new(batch);
    let build = MODELS
        .iter()
        .find(|(name, _)| *name == settings.model_type)
        .map(|(_, build)| build);
    let prediction = match build {
        Some(build) => build(settings, shape, &mut model)?,
        None => None,
    };
    let Some(prediction) = prediction else {
        return Err(TrainError::Value {
            setting: "model_type".to_owned(),
            value: settings.model_type.clone(),
            expected: message!(en: "a model for this kind of data: mlp for rows, lstm or mlp for sequences", zh: "适合此类数据的模型：表格用 mlp，序列用 lstm 或 mlp"),
        });
    };
    model.name(prediction, "prediction")?;
    let labels = model.table("labels", flatout_engine::DataType::Real, &[1])?;
    let row = model.index_input("label_row")?;
    let target = model.gather_rows(labels, row)?;
    let loss = match task {
        Task::Regression => model.mse(prediction, target)?,
    };
    Ok(model.compile(loss, optimizer(settings))?)
}

fn optimizer(settings: &Settings) -> Optimizer {
    let rule = match settings.optimizer.as_str() {
        "adam" => Rule::Adam,
        "sgd" => Rule::Sgd,
        _ => Rule::AdamW,
    };
    Optimizer {
        rule,
        weight_decay: settings.weight_decay,
        clip_norm: settings.clip_norm,
        ..Optimizer::default()
    }
}
