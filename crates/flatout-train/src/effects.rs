//! Settings that were given and cannot take effect: on this device, with this model, over these data. Each is said, none is ignored.
//! (Those that this engine makes pointless for everybody are told by the configuration; what does not fit together at all is an error.)

use crate::data::{Shape, TrainingData};
use crate::{Settings, device, models};
use flatout_core::{Message, message};
use std::collections::BTreeSet;

/// What a training is really made of.
pub struct Facts<'a> {
    pub settings: &'a Settings,
    pub data: &'a TrainingData,
    /// `cpu` or `cuda`.
    pub device: &'a str,
    pub steps_an_epoch: u64,
}

/// Of one setting: its name, and why it does nothing, if it does nothing.
type Rule = (&'static str, fn(&Facts) -> Option<Message>);

const RULES: &[Rule] = &[
    ("sequence_length", only_windows),
    ("horizon", only_windows),
    ("entity_embedding_dim", embedding),
    ("time", only_tables),
    ("limit_rows", only_rows),
    ("missing", only_tables),
    ("infinite", only_tables),
    ("column_type", only_tables),
    ("validation_ratio", validation_ratio),
    ("test_ratio", test_ratio),
    ("channels", channels),
    ("label", label),
    ("dropout", dropout),
    ("bidirectional", bidirectional),
    ("num_heads", num_heads),
    ("kernel_size", kernel_size),
    ("amp", amp),
    ("threads", threads),
    ("keep_lr", keep_lr),
    ("log_interval", log_interval),
];

/// Why settings that were given do nothing.
pub fn missing(given: &BTreeSet<&'static str>, facts: &Facts) -> Vec<Message> {
    let rules = RULES.iter().filter(|(name, _)| given.contains(name));
    let said = rules.filter_map(|(name, why)| {
        let why = why(facts)?;
        Some(Message {
            en: format!("{name}: {}", why.en),
            zh: format!("{name}：{}", why.zh),
        })
    });
    said.collect()
}

fn only_windows(facts: &Facts) -> Option<Message> {
    (!facts.data.is_sequence()).then(
        || message!(en: "it applies only to windows over sequences, and this data has none", zh: "只有序列窗口才有，这些数据不是序列"),
    )
}

fn embedding(facts: &Facts) -> Option<Message> {
    let none = match facts.data.shape() {
        Shape::Sequence { .. } => false,
        Shape::Rows { categories, .. } => categories.is_empty(),
        Shape::Pictures { .. } => true,
    };
    none.then(
        || message!(en: "there is nothing to embed: no entities and no categories", zh: "没有可嵌入的内容：既无实体也无类别列"),
    )
}

fn only_rows(facts: &Facts) -> Option<Message> {
    let rows = matches!(facts.data.shape(), Shape::Rows { .. });
    (!rows).then(|| {
        message!(en: "it applies only to tables of independent rows; --limit takes the first \
    entities or files", zh: "只有独立行的表格适用；--limit 可取前若干个实体或文件")
    })
}

fn only_tables(facts: &Facts) -> Option<Message> {
    let pictures = matches!(facts.data.shape(), Shape::Pictures { .. });
    pictures.then(|| message!(en: "images have no columns", zh: "图像没有列"))
}

fn validation_ratio(facts: &Facts) -> Option<Message> {
    if facts.settings.validation_data.is_some() {
        return Some(
            message!(en: "validation_data already contains the validation samples", zh: "验证样本已由 validation_data 给出"),
        );
    }
    facts.settings.validation_from_us.map(
        |_| message!(en: "validation_from already sets where the validation samples start", zh: "验证样本的起点已由 validation_from 决定"),
    )
}

fn test_ratio(facts: &Facts) -> Option<Message> {
    if facts.settings.test_data.is_some() {
        return Some(
            message!(en: "test_data already contains the test samples", zh: "测试样本已由 test_data 给出"),
        );
    }
    facts.settings.validation_from_us.map(
        |_| message!(en: "with validation_from, test_from sets where the test split starts", zh: "设定 validation_from 时，测试部分由 test_from 决定"),
    )
}

fn channels(facts: &Facts) -> Option<Message> {
    let pictures = matches!(facts.data.shape(), Shape::Pictures { .. });
    (!pictures).then(|| message!(en: "this data has no images", zh: "这些数据不是图像"))
}

fn label(facts: &Facts) -> Option<Message> {
    let pictures = matches!(facts.data.shape(), Shape::Pictures { .. });
    let path = facts.settings.data.as_deref();
    let table = path.is_some_and(|path| path.join("labels.csv").is_file());
    (pictures && !table).then(|| {
        message!(en: "these images have no table of labels: the class comes from the folder or from \
        labels.npy", zh: "这些图像没有标签表：类别由文件夹或 labels.npy 决定")
    })
}

fn dropout(facts: &Facts) -> Option<Message> {
    let model = models::chosen(facts.settings, facts.data.shape());
    let recurrent = ["lstm", "gru"].contains(&model);
    let between = models::layers(facts.settings, model) > 1;
    (recurrent && !between && facts.settings.dropout > 0.0)
        .then(|| message!(en: "it acts between layers, and this model has only one", zh: "只作用于层与层之间，而此模型只有一层"))
}

/// A setting that only some models have.
fn only_models(facts: &Facts, models: &[&str]) -> Option<Message> {
    let model = models::chosen(facts.settings, facts.data.shape());
    let list = models.join(", ");
    (!models.contains(&model))
        .then(|| message!(en: "only {list} uses it, and this model is {model}", zh: "只有 {list} 使用，而此模型是 {model}"))
}

fn bidirectional(facts: &Facts) -> Option<Message> {
    only_models(facts, &["lstm", "gru"]).filter(|_| facts.settings.bidirectional)
}

fn num_heads(facts: &Facts) -> Option<Message> {
    only_models(facts, crate::models::ATTENTION)
}

fn kernel_size(facts: &Facts) -> Option<Message> {
    only_models(facts, &["tcn"])
}

fn amp(facts: &Facts) -> Option<Message> {
    (facts.device == "cpu" && facts.settings.amp != crate::settings::Amp::Off)
        .then(|| message!(en: "the CPU computes in f32", zh: "CPU 使用 f32 计算"))
}

fn threads(facts: &Facts) -> Option<Message> {
    let (wanted, usable) = (facts.settings.threads.unwrap_or(0), device::usable_threads());
    if facts.device == "cuda" {
        return Some(message!(en: "the GPU does the computing", zh: "由 GPU 计算"));
    }
    if facts.settings.naive {
        return (wanted > 1)
            .then(|| message!(en: "the naive pipeline uses a single thread", zh: "naive 方式只有一个线程"));
    }
    (wanted > usable)
        .then(|| message!(en: "only {usable} CPUs are usable", zh: "可用的 CPU 只有 {usable} 个"))
}

fn keep_lr(facts: &Facts) -> Option<Message> {
    (facts.settings.keep_lr && facts.settings.batch_size.is_some()).then(
        || message!(en: "the learning rate is not scaled when the batch size is given", zh: "给定 batch 大小时学习率本来就不变"),
    )
}

fn log_interval(facts: &Facts) -> Option<Message> {
    let steps = facts.steps_an_epoch;
    (facts.settings.log_interval > steps)
        .then(|| message!(en: "an epoch has only {steps} steps", zh: "每轮只有 {steps} 步"))
}
