//! A checkpoint on other data: prepared as the training data were, run forward, told in the label's own units. Labels are not needed.

mod output;
mod pixels;
mod samples;

pub use output::{Column, Predictions};

use crate::checkpoint;
use crate::data::{Preparation, Shape};
use crate::metrics::{Label, Meter, best_class};
use crate::settings::Values;
use crate::target::{Labels, Target, Task};
use crate::{Configuration, TrainError, device, models};
use flatout_core::message;
use flatout_engine::{Session, Table};
use samples::Samples;
use std::path::Path;
use std::sync::Arc;

/// Samples in one pass: large enough for any device, small enough for its memory.
const BATCH: usize = 512;
/// Probabilities of each class have a column of their own up to so many classes.
const MOST_COLUMNS: usize = 64;

/// Runs a checkpoint (or the best one of an output folder) on the data at a path.
pub fn predict(checkpoint: &Path, data: &Path, flags: &Values) -> Result<Predictions, TrainError> {
    let path = checkpoint::find_best(checkpoint);
    let described = checkpoint::describe(&path)?;
    let preparation = checkpoint::preparation(&path)?;
    let configuration = Configuration::of(&path, &described.configuration, flags)?;
    let phase = described.progress.phase.min(configuration.phases.len() - 1);
    let settings = &checkpoint::without_averages(&configuration.phases[phase].settings);
    let samples = samples::load(data, &preparation, settings)?;
    let batch = BATCH.min(samples.starts.len()).max(1);
    let plan = || models::plan(settings, &preparation, batch);
    let mut session = device::open(settings, plan)?.session;
    checkpoint::load(&path, &mut *session)?;
    for (name, table) in &samples.tables {
        session.attach(name, table.clone())?;
    }
    // The plan gathers labels for a loss that nobody reads.
    session.attach("labels", no_labels(&preparation.target))?;
    let outputs = run(&mut *session, &samples, batch)?;
    let meter = meter(&preparation, &samples, &outputs);
    let mut predictions = Predictions {
        scores: meter.as_ref().and_then(Meter::scores),
        targets: meter.as_ref().map(Meter::targets).unwrap_or_default(),
        classes: meter.as_ref().map(Meter::reports).unwrap_or_default(),
        columns: samples.columns,
        no_labels: samples.no_labels,
        notes: samples.notes,
    };
    predictions.columns.extend(columns(&preparation.target, &outputs));
    let scored = predictions.scores.map_or(0, |scores| scores.samples as usize);
    let of = samples.starts.len();
    // The last windows of a sequence have no label by their nature.
    let by_nature = matches!(preparation.shape, Shape::Sequence { .. });
    if samples.labels.is_some() && !by_nature && preparation.target.task != Task::Several && scored < of {
        let without = of - scored;
        let note = message!(
            en: "{without} of {of} samples are not scored: they have no label, or one that is not a class of the \
            training data",
            zh: "{of} 个样本中有 {without} 个没有评分：没有标签，或标签不是训练数据中的类别"
        );
        match scored {
            0 => predictions.no_labels = Some(note),
            _ => predictions.notes.push(note),
        }
    }
    Ok(predictions)
}

/// What the predictions are worth, where the data have labels.
fn meter<'a>(preparation: &'a Preparation, samples: &Samples, outputs: &[f32]) -> Option<Meter<'a>> {
    let target = &preparation.target;
    let labels = samples.labels.as_ref()?;
    let sequence = matches!(preparation.shape, Shape::Sequence { .. });
    let mut meter = Meter::new(target, sequence);
    for (number, prediction) in outputs.chunks_exact(target.outputs().max(1)).enumerate() {
        let time = samples.times_us.get(number).copied();
        match labels {
            Labels::Class(classes) => match classes.get(number) {
                Some(&class) if class >= 0 => meter.add(prediction, Label::Class(class), time),
                _ => {}
            },
            Labels::Real { values, columns } => {
                let label = values
                    .get(number * columns..(number + 1) * columns)
                    .unwrap_or_default();
                // Several labels of different kinds are scored one by one.
                if target.task == Task::Several || label.iter().all(|value| value.is_finite()) {
                    meter.add(prediction, Label::Real(label), time);
                }
            }
        }
    }
    Some(meter)
}

fn no_labels(target: &Target) -> Table {
    match target.task {
        _ if target.has_terms() => Table::I32(Arc::new(vec![0; 2 * target.columns()])),
        Task::Classes => Table::I32(Arc::new(vec![0])),
        _ => Table::F32(Arc::new(vec![0.0; target.outputs()])),
    }
}

fn run(session: &mut dyn Session, samples: &Samples, batch: usize) -> Result<Vec<f32>, TrainError> {
    let with_entity = session.plan().find("entity").is_ok();
    let with_last = session.plan().find("last").is_ok();
    let (mut starts, mut entities, rows) = (vec![0i32; batch], vec![0i32; batch], vec![0i32; batch]);
    session.set_indices("label_row", &rows)?;
    for (number, chunk) in samples.starts.chunks(batch).enumerate() {
        // A short batch is filled up with its first sample.
        starts.fill(chunk[0] as i32);
        for (slot, &start) in starts.iter_mut().zip(chunk) {
            *slot = start as i32;
        }
        session.set_indices("start", &starts)?;
        if with_last {
            let last = samples.last_offset as i32;
            let ends: Vec<i32> = starts.iter().map(|start| start + last).collect();
            session.set_indices("last", &ends)?;
        }
        if with_entity {
            let own = &samples.entities[number * batch..][..chunk.len()];
            entities.fill(own[0]);
            entities[..own.len()].copy_from_slice(own);
            session.set_indices("entity", &entities)?;
        }
        session.set_valid_rows(chunk.len());
        session.evaluate_keeping("prediction")?;
    }
    Ok(session.take_kept()?)
}

/// From the plan's outputs to what was asked for.
fn columns(target: &Target, outputs: &[f32]) -> Vec<(String, Column)> {
    if target.task != Task::Several {
        return columns_of(target, outputs, None);
    }
    let (width, mut first, mut all) = (target.outputs().max(1), 0, Vec::new());
    for (head, label) in target.heads.iter().zip(&target.names) {
        let own = outputs.chunks_exact(width);
        let own: Vec<f32> = own
            .flat_map(|row| &row[first..first + head.outputs()])
            .copied()
            .collect();
        all.extend(columns_of(head, &own, Some(label)));
        first += head.outputs();
    }
    all
}

/// Of one target; `label` is its name where there are several.
fn columns_of(target: &Target, outputs: &[f32], label: Option<&str>) -> Vec<(String, Column)> {
    let width = target.outputs().max(1);
    let column = |place: usize| outputs.iter().skip(place).step_by(width).copied();
    match target.task {
        Task::Regression => {
            let count = target.quantiles.len().max(1);
            let name = |place: usize| {
                let name = match (target.names.len(), label) {
                    (1, None) => "prediction",
                    _ => target.names[place / count].as_str(),
                };
                match target.quantiles.get(place % count) {
                    Some(quantile) => format!("{name}_q{quantile}"),
                    None => name.to_owned(),
                }
            };
            let values = |place: usize| {
                column(place)
                    .map(move |value| target.restore(place, value))
                    .collect()
            };
            (0..width)
                .map(|place| (name(place), Column::Real(values(place))))
                .collect()
        }
        Task::Labels => {
            let share = |logit: f32| 1.0 / (1.0 + (-logit).exp());
            let values = |place: usize| Column::Real(column(place).map(share).collect());
            let each = target.names.iter().enumerate();
            each.map(|(place, name)| (share_of(name), values(place)))
                .collect()
        }
        Task::Binary => {
            let values = column(0).map(|logit| 1.0 / (1.0 + (-logit).exp())).collect();
            let name = match (of_second(&target.names), label) {
                (name, None) => name,
                (name, Some(label)) if name == "probability" => share_of(label),
                (name, Some(label)) => format!("{label}_{name}"),
            };
            vec![(name, Column::Real(values))]
        }
        Task::Classes => {
            let columns = classes(target, outputs, width).into_iter();
            let named = columns.map(|(name, column)| match label {
                Some(label) => (format!("{label}_{name}"), column),
                None => (name, column),
            });
            named.collect()
        }
        // Its heads have been asked one by one.
        Task::Several => Vec::new(),
    }
}

/// The name of the second class's probability; that of 1 against 0 goes without saying.
fn of_second(names: &[String]) -> String {
    match names {
        [first, second] if (first.as_str(), second.as_str()) != ("0", "1") => share_of(second),
        _ => "probability".to_owned(),
    }
}

fn share_of(class: &str) -> String {
    format!("p_{class}")
}

fn classes(target: &Target, outputs: &[f32], width: usize) -> Vec<(String, Column)> {
    let rows = outputs.len() / width;
    let (mut names, mut shares) = (Vec::with_capacity(rows), vec![Vec::with_capacity(rows); width]);
    for logits in outputs.chunks_exact(width) {
        names.push(target.names[best_class(logits)].clone());
        let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f32 = logits.iter().map(|logit| (logit - largest).exp()).sum();
        for (share, logit) in shares.iter_mut().zip(logits) {
            share.push((logit - largest).exp() / sum);
        }
    }
    let mut columns = vec![("class".to_owned(), Column::Text(names))];
    if width <= MOST_COLUMNS {
        let each = target.names.iter().zip(shares);
        columns.extend(each.map(|(name, share)| (share_of(name), Column::Real(share))));
    }
    columns
}

/// Which kind of data a checkpoint takes, in words for an error.
fn kind(preparation: &Preparation) -> &'static str {
    match preparation.shape {
        Shape::Sequence { .. } => "sequences",
        Shape::Rows { .. } => "rows",
        Shape::Pictures { .. } => "pictures",
    }
}
