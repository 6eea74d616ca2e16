//! The models, one file each: data and settings to a plan. A new one is a file here and one line in the list.

mod cnn;
mod gru;
mod lstm;
mod mlp;
mod sequence;

use crate::data::{Preparation, Shape};
use crate::target::{Target, Task};
use crate::{Settings, TrainError};
use flatout_core::message;
use flatout_engine::{DataType, EngineError, Model, Optimizer, Plan, Rule, Tensor};

/// What a model is built from.
pub struct Inputs<'a> {
    pub settings: &'a Settings,
    pub shape: &'a Shape,
    pub target: &'a Target,
    pub preparation: &'a Preparation,
    /// Hidden layers.
    pub layers: usize,
}

impl Inputs<'_> {
    /// Of the embedding of a categorical column.
    pub fn width(&self, category: usize) -> usize {
        let name = self
            .preparation
            .categories
            .get(category)
            .map(|codes| codes.name.as_str());
        let own = name.and_then(|name| self.settings.column_embedding_dim.of(name));
        own.unwrap_or(self.settings.entity_embedding_dim)
    }
}

/// Adds a model up to its outputs `[batch, target.outputs()]`; `None` when it cannot take data of this shape.
type Build = fn(&Inputs, &mut Model) -> Result<Option<Tensor>, EngineError>;

/// Name, hidden layers unless the settings say otherwise, how to build it.
const MODELS: &[(&str, usize, Build)] = &[
    ("lstm", 2, lstm::build),
    ("gru", 2, gru::build),
    ("mlp", 2, mlp::build),
    ("cnn", 4, cnn::build),
];

/// For `--model-type`; `auto` is what suits the data.
pub const NAMES: &[&str] = &["auto", "lstm", "gru", "mlp", "cnn"];

/// The model that the settings name, or the one that suits the data.
pub fn chosen<'a>(settings: &'a Settings, shape: &Shape) -> &'a str {
    match (settings.model_type.as_str(), shape) {
        ("auto", Shape::Sequence { .. }) => "lstm",
        ("auto", Shape::Rows { .. }) => "mlp",
        ("auto", Shape::Pictures { .. }) => "cnn",
        (name, _) => name,
    }
}

/// How many hidden layers the model has.
pub fn layers(settings: &Settings, name: &str) -> usize {
    let own = MODELS.iter().find(|(known, ..)| *known == name);
    let own = own.map_or(1, |(_, layers, _)| *layers);
    settings.num_layers.unwrap_or(own)
}

/// The plan of the model that the settings name, for a batch of this size. It names its output `prediction`.
pub fn plan(settings: &Settings, preparation: &Preparation, batch: usize) -> Result<Plan, TrainError> {
    let (shape, target) = (&preparation.shape, &preparation.target);
    let mut model = Model::new(batch);
    let name = chosen(settings, shape);
    let build = MODELS.iter().find(|(known, ..)| *known == name);
    let build = build.map(|(_, _, build)| {
        let inputs = Inputs {
            settings,
            shape,
            target,
            preparation,
            layers: layers(settings, name),
        };
        build(&inputs, &mut model)
    });
    let prediction = build.transpose()?;
    let Some(prediction) = prediction.flatten() else {
        return Err(TrainError::Value {
            setting: "model_type".to_owned(),
            value: settings.model_type.clone(),
            expected: message!(
                en: "a model for this kind of data: mlp for rows, lstm or gru for sequences, cnn for pictures",
                zh: "适合此类数据的模型：表格用 mlp，序列用 lstm 或 gru，图像用 cnn"
            ),
        });
    };
    model.name(prediction, "prediction")?;
    let loss = loss(&mut model, settings, target, prediction)?;
    Ok(model.compile(loss, optimizer(settings))?)
}

fn loss(
    model: &mut Model,
    settings: &Settings,
    target: &Target,
    prediction: Tensor,
) -> Result<Tensor, EngineError> {
    let (data_type, width) = match target.task {
        Task::Classes => (DataType::I32, 1),
        Task::Regression | Task::Binary | Task::Labels => (DataType::Real, target.outputs()),
    };
    let labels = model.table("labels", data_type, &[width])?;
    let row = model.index_input("label_row")?;
    let wanted = model.gather_rows(labels, row)?;
    match target.task {
        Task::Regression if settings.loss == "huber" => model.huber(prediction, wanted, settings.huber_delta),
        Task::Regression => model.mse(prediction, wanted),
        Task::Binary | Task::Labels => model.bce_with_logits(prediction, wanted),
        Task::Classes => model.cross_entropy(prediction, wanted),
    }
}

fn optimizer(settings: &Settings) -> Optimizer {
    let rule = match settings.optimizer.as_str() {
        "adam" => Rule::Adam,
        "sgd" => Rule::Sgd,
        _ => Rule::AdamW,
    };
    Optimizer {
        rule,
        beta1: match rule {
            Rule::Sgd => settings.momentum,
            _ => settings.betas.0,
        },
        beta2: settings.betas.1,
        epsilon: settings.eps,
        weight_decay: settings.weight_decay,
        clip_norm: settings.clip_norm,
    }
}
