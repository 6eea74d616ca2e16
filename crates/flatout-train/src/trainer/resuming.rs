//! Whether a training that continues from a checkpoint is the same training. Another label, model or data set would go on without an error
//! and spoil both: the loss of one label is compared with that of another.

use super::Report;
use crate::checkpoint::{self, Progress};
use crate::data::{Preparation, Shape, TrainingData};
use crate::{Configuration, Settings, TrainError, models};
use flatout_core::message;
use std::path::Path;

/// A setting that decides what is trained, and its value.
type Compared = (&'static str, fn(&Settings) -> String);

const COMPARED: &[Compared] = &[
    ("horizon", |settings| settings.horizon.to_string()),
    ("gap", |settings| settings.gap.to_string()),
    ("min_history", |settings| settings.min_history.to_string()),
    ("past_labels", |settings| settings.past_labels.to_string()),
    ("sequence_length", |settings| settings.sequence_length.to_string()),
    ("hidden_size", |settings| settings.hidden_size.to_string()),
    ("entity_embedding_dim", |settings| {
        settings.entity_embedding_dim.to_string()
    }),
    ("validation_ratio", |settings| {
        settings.validation_ratio.to_string()
    }),
    ("validation_from", |settings| {
        let date = settings.validation_from_us.map(flatout_data::time::format_us);
        date.unwrap_or_default()
    }),
    ("validation_data", |settings| {
        shown(settings.validation_data.as_deref())
    }),
    ("test_data", |settings| shown(settings.test_data.as_deref())),
    ("test_ratio", |settings| settings.test_ratio.to_string()),
    ("test_from", |settings| {
        let date = settings.test_from_us.map(flatout_data::time::format_us);
        date.unwrap_or_default()
    }),
    ("entity", |settings| settings.entity.clone().unwrap_or_default()),
    ("time", |settings| settings.time.clone().unwrap_or_default()),
    ("limit", |settings| settings.limit.unwrap_or(0).to_string()),
    ("limit_rows", |settings| {
        settings.limit_rows.unwrap_or(0).to_string()
    }),
    ("optimizer", |settings| settings.optimizer.clone()),
    ("ema", |settings| settings.ema.unwrap_or(0.0).to_string()),
    ("select", |settings| settings.select.name().to_owned()),
];

fn shown(path: Option<&Path>) -> String {
    path.map(|path| path.display().to_string()).unwrap_or_default()
}

/// Where the training stands, unless it is another one.
pub(super) fn check(
    path: &Path,
    configuration: &Configuration,
    data: &TrainingData,
    report: &mut dyn FnMut(&Report),
) -> Result<Progress, TrainError> {
    let kept = checkpoint::describe(path)?;
    let prepared = checkpoint::preparation(path)?;
    let then = Configuration::of(path, &kept.configuration, &Default::default())?;
    let (read_then, read_now) = (columns_read(&then), columns_read(configuration));
    let (then, now) = (
        settings_of(&then, kept.progress.phase),
        settings_of(configuration, kept.progress.phase),
    );
    let mut differences = Vec::new();
    let mut differ = |name: &str, then: String, now: String| {
        if then != now {
            differences.push((name.to_owned(), then, now));
        }
    };
    differ("label", prepared.label.clone(), data.preparation.label.clone());
    let model = |settings: &Settings, preparation: &Preparation| {
        let name = models::chosen(settings, &preparation.shape);
        (name.to_owned(), models::layers(settings, name))
    };
    let (model_then, model_now) = (model(then, &prepared), model(now, &data.preparation));
    differ("model_type", model_then.0, model_now.0);
    differ("num_layers", model_then.1.to_string(), model_now.1.to_string());
    let (shape_then, shape_now) = (&prepared.shape, &data.preparation.shape);
    for ((name, then), (_, now)) in form(shape_then).into_iter().zip(form(shape_now)) {
        differ(name, then, now);
    }
    // Whether there is an embedding for unknown entities.
    let unknown = |shape: &Shape| matches!(shape, Shape::Sequence { unknown: true, .. });
    if unknown(shape_then) != unknown(shape_now) {
        let share = |settings: &Settings| settings.entity_dropout.to_string();
        differ("entity_dropout", share(then), share(now));
    }
    let own: &[Compared] = match models::chosen(now, &data.preparation.shape) {
        "lstm" | "gru" => &[("bidirectional", |settings| settings.bidirectional.to_string())],
        "tcn" => &[("kernel_size", |settings| settings.kernel_size.to_string())],
        "transformer" | "tabular-transformer" => &[("num_heads", |settings| settings.num_heads.to_string())],
        _ => &[],
    };
    for (name, value) in COMPARED.iter().chain(own) {
        differ(name, value(then), value(now));
    }
    for ((name, then), (_, now)) in read_then.into_iter().zip(read_now) {
        differ(name, then, now);
    }
    if !same_values(&prepared, &data.preparation) {
        let named = |settings: &Settings| settings.data.clone().unwrap_or_default();
        let place = |settings: &Settings| named(settings).canonicalize().unwrap_or_else(|_| named(settings));
        if place(then) != place(now) {
            differ(
                "data",
                named(then).display().to_string(),
                named(now).display().to_string(),
            );
        } else if !same_columns(&prepared, &data.preparation) {
            let columns = |preparation: &Preparation| columns(preparation).join(",");
            differ("columns", columns(&prepared), columns(&data.preparation));
        } else {
            let data = named(now).display().to_string();
            report(&Report::Warning {
                message: message!(
                    en: "`{data}` changed since the checkpoint was written; training continues with the data \
                    as it is now",
                    zh: "`{data}` 在检查点写入之后有变化；训练将在当前数据上继续"
                ),
            });
        }
    }
    if differences.is_empty() {
        let mut progress = kept.progress;
        // The batch was chosen with a factor for the rate of then. A rate that was given since is used as it is.
        let another_rate = then.learning_rate.to_bits() != now.learning_rate.to_bits();
        if let Some(batch) = &mut progress.batch
            && (now.keep_lr || (now.batch_size.is_some() && another_rate))
        {
            batch.rate_factor = 1.0;
        }
        return Ok(progress);
    }
    Err(TrainError::ResumesOther {
        checkpoint: path.to_owned(),
        differences,
    })
}

/// What the shape of the data says by the names of settings: of images alone, since that of tables follows from their columns.
fn form(shape: &Shape) -> Vec<(&'static str, String)> {
    match shape {
        Shape::Pictures {
            height,
            width,
            channels,
            ..
        } => vec![
            ("input_size", format!("{width},{height}")),
            ("channels", channels.to_string()),
        ],
        _ => Vec::new(),
    }
}

fn settings_of(configuration: &Configuration, phase: usize) -> &Settings {
    let phase = configuration.phases.get(phase);
    phase.map_or(&configuration.settings, |phase| &phase.settings)
}

/// How columns are read, as it was written.
fn columns_read(configuration: &Configuration) -> Vec<(&'static str, String)> {
    let names = [
        "task",
        "loss",
        "quantiles",
        "focal_gamma",
        "huber_delta",
        "label_smoothing",
        "label_weight",
        "class_weight",
        "sample_weight",
        "missing",
        "bad_rows",
        "infinite",
        "column_type",
        "encoding",
        "column_embedding_dim",
        "min_count",
        "hash_size",
    ];
    let resolved = configuration.resolved.iter();
    resolved
        .filter(|(name, _)| names.contains(name))
        .cloned()
        .collect()
}

fn columns(preparation: &Preparation) -> Vec<&str> {
    let categories = preparation.categories.iter().map(|category| &category.name);
    let all = preparation.features.iter().chain(categories);
    all.map(String::as_str).collect()
}

fn same_columns(one: &Preparation, other: &Preparation) -> bool {
    columns(one) == columns(other)
}

/// Whether the training parts had the same means, deviations and categories: the same data, wherever they are now.
fn same_values(one: &Preparation, other: &Preparation) -> bool {
    let near = |one: &[f32], other: &[f32]| {
        one.len() == other.len()
            && one
                .iter()
                .zip(other)
                .all(|(a, b)| (a - b).abs() <= 1e-6 * a.abs().max(b.abs()))
    };
    same_columns(one, other)
        && one.categories == other.categories
        && one.entities == other.entities
        && near(&one.mean, &other.mean)
        && near(&one.std, &other.std)
        && near(&one.target.mean, &other.target.mean)
        && near(&[one.target.scale], &[other.target.scale])
}
