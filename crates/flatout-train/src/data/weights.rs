//! How much each row counts: a column of weights, weights of classes. And labels with their weights in the form that a loss of terms reads.

use crate::target::{Labels, Objective, Target, Task};
use crate::{Settings, TrainError};
use flatout_core::message;

/// Takes the last column, which is the weight of each row, from the labels.
pub fn split_off(values: &mut Vec<f32>, names: &mut Vec<String>) -> Option<Vec<f32>> {
    let width = names.len();
    names.pop()?;
    let weights = values.iter().skip(width - 1).step_by(width).copied().collect();
    let mut place = 0;
    values.retain(|_| {
        place += 1;
        place % width != 0
    });
    Some(weights)
}

/// The weight of every row for every label, `[rows, columns]`; `None` where all are 1. The target then knows that there are some.
pub fn of(
    target: &mut Target,
    labels: &Labels,
    samples: Option<Vec<f32>>,
    training: &[u32],
    settings: &Settings,
) -> Result<Option<Vec<f32>>, TrainError> {
    let classes = &settings.class_weight;
    if samples.is_none() && !classes.balanced && classes.classes.is_empty() {
        return Ok(None);
    }
    if let (Some(samples), Some(column)) = (&samples, &settings.sample_weight) {
        check(samples, column)?;
    }
    let (rows, columns) = (labels.rows(), target.columns());
    let mut weights = vec![1f32; rows * columns];
    if let Some(samples) = &samples {
        for (row, weights) in weights.chunks_exact_mut(columns).enumerate() {
            weights.fill(samples.get(row).copied().unwrap_or(0.0));
        }
    }
    let mut unused: Vec<&str> = classes.classes.iter().map(|(class, _)| class.as_str()).collect();
    let mut known = Vec::new();
    for (column, (label, names)) in class_names(target).into_iter().enumerate() {
        let Some(names) = names else { continue };
        let of_class = class_weights(&names, label.as_deref(), &mut unused, settings, || {
            let mut counts = vec![0u64; names.len()];
            for &row in training {
                let class = labels.value(row as usize, column);
                if let Some(count) = counts.get_mut(class as usize).filter(|_| class >= 0.0) {
                    *count += 1;
                }
            }
            counts
        });
        for row in 0..rows {
            let class = labels.value(row, column);
            if let Some(weight) = of_class.get(class as usize).filter(|_| class >= 0.0) {
                weights[row * columns + column] *= *weight as f32;
            }
        }
        known.extend(names);
    }
    if known.is_empty() && samples.is_none() {
        return Err(TrainError::DoesNotApply {
            setting: "class_weight".to_owned(),
            reason: message!(en: "the label is numeric and has no classes", zh: "标签是数值，没有类别"),
        });
    }
    if let Some(class) = unused.first() {
        let list = known.join(", ");
        return Err(refuse(
            class,
            message!(en: "one of the classes: {list}", zh: "以下类别之一：{list}"),
        ));
    }
    target.weighted = true;
    Ok(Some(weights))
}

fn check(samples: &[f32], column: &str) -> Result<(), TrainError> {
    let bad = samples
        .iter()
        .position(|weight| weight.is_sign_negative() && *weight != 0.0 || weight.is_infinite());
    match bad {
        None => Ok(()),
        Some(row) => Err(TrainError::Value {
            setting: "sample_weight".to_owned(),
            value: format!("{} ({column}, {})", samples[row], row + 1),
            expected: message!(en: "a column of finite weights, 0 or more", zh: "权重列，各值有限且不小于 0"),
        }),
    }
}

fn refuse(value: &str, expected: flatout_core::Message) -> TrainError {
    TrainError::Value {
        setting: "class_weight".to_owned(),
        value: value.to_owned(),
        expected,
    }
}

/// Of each label column: its name where there are several, and its classes where it has some.
fn class_names(target: &Target) -> Vec<(Option<String>, Option<Vec<String>>)> {
    let yes_or_no = || vec!["0".to_owned(), "1".to_owned()];
    match target.task {
        Task::Regression => target
            .names
            .iter()
            .map(|name| (Some(name.clone()), None))
            .collect(),
        Task::Binary | Task::Classes => vec![(None, Some(target.names.clone()))],
        Task::Labels => {
            let each = target.names.iter();
            each.map(|name| (Some(name.clone()), Some(yes_or_no()))).collect()
        }
        Task::Several => {
            let each = target.names.iter().zip(&target.heads);
            each.map(|(name, head)| {
                let classes = (head.task != Task::Regression).then(|| head.names.clone());
                (Some(name.clone()), classes)
            })
            .collect()
        }
    }
}

/// The weight of each class of one label; takes the ones it uses from `unused`.
fn class_weights(
    names: &[String],
    label: Option<&str>,
    unused: &mut Vec<&str>,
    settings: &Settings,
    counts: impl FnOnce() -> Vec<u64>,
) -> Vec<f64> {
    let given = &settings.class_weight;
    let mut weights = vec![1.0; names.len()];
    if given.balanced {
        let counts = counts();
        let total: u64 = counts.iter().sum();
        for (weight, count) in weights.iter_mut().zip(counts) {
            *weight = match count {
                0 => 1.0,
                _ => total as f64 / (names.len() as f64 * count as f64),
            };
        }
    }
    for (class, weight) in &given.classes {
        for (place, name) in names.iter().enumerate() {
            let full = label.map(|label| format!("{label}.{name}"));
            if class == name || full.as_ref() == Some(class) {
                weights[place] = *weight;
                unused.retain(|word| word != class);
            }
        }
    }
    weights
}

/// Labels as the plan learns them, then their weights: the bits of f32 values, row by row.
pub fn words(target: &Target, labels: &Labels, weights: Option<&[f32]>) -> Vec<i32> {
    let (rows, columns) = (labels.rows(), target.columns());
    let mut turned: Vec<Box<dyn Fn(f32) -> f32>> = Vec::with_capacity(columns);
    for head in target.heads() {
        for column in 0..head.columns() {
            let (mean, scale) = (head.mean.get(column).copied().unwrap_or(0.0), head.scale);
            turned.push(match (head.task, head.objective) {
                (Task::Regression, _) => Box::new(move |value| (value - mean) / scale),
                (Task::Binary | Task::Labels, Objective::Smoothed { smoothing }) => {
                    let smoothing = smoothing as f32;
                    Box::new(move |value| value * (1.0 - smoothing) + smoothing / 2.0)
                }
                _ => Box::new(|value| value),
            });
        }
    }
    let mut words = Vec::with_capacity(rows * columns * 2);
    for row in 0..rows {
        let own = |column: usize| labels.value(row, column);
        let learned = turned.iter().enumerate().map(|(column, turn)| turn(own(column)));
        words.extend(learned.map(|value| value.to_bits() as i32));
        words.extend((0..columns).map(|column| {
            let weight = weights.map_or(1.0, |weights| weights[row * columns + column]);
            let weight = if own(column).is_finite() { weight } else { 0.0 };
            weight.to_bits() as i32
        }));
    }
    words
}
