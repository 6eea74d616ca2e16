//! The models, one file each: data and settings to a plan. A new one is a file here and one line in the list.

mod cnn;
mod encoder;
mod gru;
mod heatmap;
mod lstm;
mod mlp;
mod resnet;
mod sequence;
mod tabular_transformer;
mod tcn;
mod terms;
mod transformer;
mod wide_deep;
mod windows;

use crate::data::{Preparation, Shape};
use crate::target::{Objective, Target, Task};
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
    ("tcn", 4, tcn::build),
    ("transformer", 2, transformer::build),
    ("mlp", 2, mlp::build),
    ("wide-deep", 2, wide_deep::build),
    ("tabular-transformer", 3, tabular_transformer::build),
    ("cnn", 4, cnn::build),
    ("resnet", 18, resnet::build),
    ("heatmap", 4, heatmap::build),
];

/// For `--model-type`; `auto` is what suits the data.
pub const NAMES: &[&str] = &[
    "auto",
    "lstm",
    "gru",
    "tcn",
    "transformer",
    "mlp",
    "wide-deep",
    "tabular-transformer",
    "cnn",
    "resnet",
    "heatmap",
];

/// Models with attention heads.
pub const ATTENTION: &[&str] = &["transformer", "tabular-transformer"];

/// Models of sequences.
pub const SEQUENCES: &[&str] = &["lstm", "gru", "tcn", "transformer"];

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
    let depth = layers(settings, name);
    if name == "resnet" && !resnet::has_depth(depth) {
        return Err(TrainError::Value {
            setting: "num_layers".to_owned(),
            value: depth.to_string(),
            expected: message!(en: "10, 18 or 34 for a resnet", zh: "resnet 的层数：10、18 或 34"),
        });
    }
    if name == "heatmap" && matches!(shape, Shape::Pictures { .. }) && target.task != Task::Regression {
        return Err(TrainError::Value {
            setting: "model_type".to_owned(),
            value: name.to_owned(),
            expected: message!(
                en: "cnn or resnet for classes; heatmap for positions, which come from numeric columns in \
                labels.csv",
                zh: "分类用 cnn 或 resnet；heatmap 预测位置，需要含数值列的 labels.csv"
            ),
        });
    }
    if ATTENTION.contains(&name) && !settings.hidden_size.is_multiple_of(settings.num_heads) {
        let width = settings.hidden_size;
        return Err(TrainError::Value {
            setting: "num_heads".to_owned(),
            value: settings.num_heads.to_string(),
            expected: message!(
                en: "a number that divides hidden_size ({width})",
                zh: "能整除 hidden_size（{width}）的数"
            ),
        });
    }
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
                en: "a model for this kind of data: mlp, wide-deep or tabular-transformer for rows; lstm, gru, tcn or transformer for sequences; cnn, resnet or heatmap for images",
                zh: "适合此类数据的模型：表格用 mlp、wide-deep 或 tabular-transformer，序列用 lstm、gru、tcn 或 transformer，图像用 cnn、resnet 或 heatmap"
            ),
        });
    };
    model.name(prediction, "prediction")?;
    let loss = loss(&mut model, target, prediction)?;
    Ok(model.compile(loss, optimizer(settings))?)
}

fn loss(model: &mut Model, target: &Target, prediction: Tensor) -> Result<Tensor, EngineError> {
    let (data_type, width) = match target.task {
        _ if target.has_terms() => (DataType::I32, 2 * target.columns()),
        Task::Classes => (DataType::I32, 1),
        _ => (DataType::Real, target.outputs()),
    };
    let labels = model.table("labels", data_type, &[width])?;
    let row = model.index_input("label_row")?;
    let wanted = model.gather_rows(labels, row)?;
    match (target.task, target.objective) {
        _ if target.has_terms() => model.terms(prediction, wanted, terms::of(target)),
        (_, Objective::Huber { delta }) => model.huber(prediction, wanted, delta),
        (Task::Regression, _) => model.mse(prediction, wanted),
        (Task::Binary | Task::Labels, _) => model.bce_with_logits(prediction, wanted),
        (Task::Classes | Task::Several, _) => model.cross_entropy(prediction, wanted),
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
        average: settings.ema,
    }
}
