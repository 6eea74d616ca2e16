//! Other data, prepared as the training data were: the same columns in the same order, the same scaling, the same codes.

use super::{Column, kind, pixels};
use crate::data::{Codes, Kind, Preparation, Shape, left_out, rows};
use crate::target::{Labels, Target, Task};
use crate::{Settings, TrainError};
use flatout_core::{Explain, Message, message};
use flatout_data::formats::csv::number::is_missing;
use flatout_data::formats::image::ImageShape;
use flatout_data::table::{BadRow, BadRows, Problem};
use flatout_data::{
    Category, DataError, JoinRecipe, LabelKind, Missing, Panel, PanelOptions, Policies, Recoded,
    TabularOptions, load_panel, load_tabular, time,
};
use flatout_engine::Table;
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

pub struct Samples {
    pub tables: Vec<(String, Table)>,
    /// First rows of windows, rows, or numbers of pictures.
    pub starts: Vec<u32>,
    /// Of each sample, for sequences.
    pub entities: Vec<i32>,
    /// From a window's first row to its last.
    pub last_offset: u32,
    /// In the label's own units, where the data have them; NaN or -1 where a sample has none.
    pub labels: Option<Labels>,
    /// Why there are none, where they could not be read.
    pub no_labels: Option<Message>,
    /// When each sample's prediction is made, where that is known.
    pub times_us: Vec<i64>,
    /// What tells a person which sample it is.
    pub columns: Vec<(String, Column)>,
    /// What a person should know about the data.
    pub notes: Vec<Message>,
}

pub fn load(path: &Path, preparation: &Preparation, settings: &Settings) -> Result<Samples, TrainError> {
    let found = Kind::of(path, &settings.model_type)?;
    // Tables that a recipe joins are no sequence, whatever their columns.
    let joined = found == Kind::Rows && JoinRecipe::find(path)?.is_some();
    match (&preparation.shape, found) {
        (Shape::Sequence { .. }, Kind::Rows) if joined => Err(something_else(path, preparation)),
        // One file of a panel is a panel of one.
        (Shape::Sequence { .. }, Kind::Panel | Kind::Rows) => panel(path, preparation, settings),
        (Shape::Rows { .. }, Kind::Rows | Kind::Panel) => table(path, preparation, settings),
        (
            &Shape::Pictures {
                height,
                width,
                channels,
                ..
            },
            Kind::Pictures,
        ) => {
            let shape = ImageShape {
                height,
                width,
                channels,
            };
            pixels::load(path, shape, preparation, settings)
        }
        _ => Err(something_else(path, preparation)),
    }
}

fn something_else(path: &Path, preparation: &Preparation) -> TrainError {
    let wanted = kind(preparation);
    TrainError::OtherData {
        path: path.to_owned(),
        reason: message!(en: "the checkpoint was trained on {wanted}, and this data is of another kind", zh: "检查点是用另一类数据（{wanted}）训练的，与这些数据不符"),
    }
}

fn panel(path: &Path, preparation: &Preparation, settings: &Settings) -> Result<Samples, TrainError> {
    let (label, more_labels) = rows::several(preparation.label.clone());
    let options = PanelOptions {
        label,
        more_labels,
        without_labels: true,
        entity: settings.entity.clone(),
        features: Some(preparation.features.clone()),
        categories: Some(
            preparation
                .categories
                .iter()
                .map(|codes| codes.name.clone())
                .collect(),
        ),
        time: settings.time.clone(),
        policies: policies(preparation, settings),
        limit: settings.limit,
        ..PanelOptions::default()
    };
    // Labels are taken along where they are; without them, or with some that cannot be read, there are no scores.
    let labelled = PanelOptions {
        without_labels: false,
        ..options.clone()
    };
    let is_input = preparation.features.contains(&preparation.label);
    let (mut panel, has_labels, no_labels) = match load_panel(path, &labelled) {
        Ok(panel) if !is_input => (panel, true, None),
        found => {
            let panel = load_panel(path, &options).map_err(|error| other_data(path, preparation, error))?;
            (panel, false, found.err())
        }
    };
    preparation.standardiser().apply(panel.features.to_mut());
    let known: HashMap<&str, i32> = (0..)
        .zip(&preparation.entities)
        .map(|(index, name)| (name.as_str(), index))
        .collect();
    let known_codes: Vec<Category> = preparation.categories.iter().map(Codes::dictionary).collect();
    let mut recoded = panel.recode(&known_codes);
    for (position, codes) in preparation.categories.iter().enumerate() {
        hash(&panel.codes, &panel.categories, codes, position, &mut recoded);
    }
    let unknown = match preparation.shape {
        Shape::Sequence {
            entities,
            unknown: true,
            ..
        } => Some(entities as i32),
        _ => None,
    };
    let mut strangers = Vec::new();
    let length = settings.sequence_length as u32;
    let (mut starts, mut entities, mut names, mut ends) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for entity in &panel.entities {
        let index = match known.get(entity.name.as_str()) {
            Some(&index) => index,
            None if settings.entity_embedding_dim == 0 => 0,
            // Rows of one stock have rising times; where they do not, many were taken for one.
            None if unknown.is_some() && (settings.entity.is_some() || is_one(&panel, &entity.rows)) => {
                strangers.push(entity.name.clone());
                unknown.unwrap_or(0)
            }
            None => {
                let reason = unknown_entity(&entity.name, settings);
                return Err(TrainError::OtherData {
                    path: path.to_owned(),
                    reason,
                });
            }
        };
        let last = (entity.rows.end + 1)
            .saturating_sub(length)
            .max(entity.rows.start);
        for start in entity.rows.start..last {
            starts.push(start);
            entities.push(index);
            names.push(entity.name.clone());
            ends.push(start + length - 1);
        }
    }
    if starts.is_empty() {
        let longest = panel.entities.iter().map(|entity| entity.rows.len());
        let longest = longest.max().unwrap_or(0);
        return Err(TrainError::OtherData {
            path: path.to_owned(),
            reason: message!(en: "a window needs {length} rows, but the longest sequence has {longest}", zh: "一个窗口需要 {length} 行，而其中最长的序列只有 {longest} 行"),
        });
    }
    let labels = has_labels.then(|| labels_of(&panel, &ends, settings.horizon as u32));
    let mut times_us = Vec::new();
    if let Some(times) = &panel.timestamps_us {
        times_us.extend(ends.iter().map(|&row| times[row as usize]));
    }
    let mut columns = vec![("entity".to_owned(), Column::Text(names))];
    if let Some(times) = &panel.timestamps_us {
        let times = ends.iter().map(|&row| time::format_us(times[row as usize]));
        columns.push(("time".to_owned(), Column::Text(times.collect())));
    }
    let mut notes = left_out(&panel.skipped, panel.rows_dropped);
    notes.extend(unseen(&known_codes, &recoded.unseen));
    notes.extend(no_labels.as_ref().and_then(unread));
    notes.extend(not_known(&strangers, panel.entities.len()));
    Ok(Samples {
        tables: rows::tables(panel.features, &recoded.codes, known_codes.len()),
        starts,
        entities,
        last_offset: length - 1,
        labels,
        no_labels: no_labels.map(|error| error.message()),
        times_us,
        columns,
        notes,
    })
}

/// Labels that are there and cannot be read. Data without them are nothing to report.
fn unread(error: &DataError) -> Option<Message> {
    let missing = matches!(error, DataError::NoSuchColumn { .. });
    let why = error.message();
    (!missing).then(|| Message {
        en: format!("the labels cannot be read, so there are no scores: {}", why.en),
        zh: format!("标签无法读取，因此没有得分：{}", why.zh),
    })
}

/// Data that lack columns, or have text for numbers, are not those the model takes.
fn other_data(path: &Path, preparation: &Preparation, error: DataError) -> TrainError {
    match &error {
        DataError::BadRow(BadRow {
            problem: Problem::Value { value, .. },
            ..
        }) if !is_missing(value.as_bytes()) => TrainError::OtherData {
            path: path.to_owned(),
            reason: error.message(),
        },
        _ => other_columns(path, preparation, error),
    }
}

/// Which kind of data the model takes comes first.
fn other_columns(path: &Path, preparation: &Preparation, error: DataError) -> TrainError {
    let DataError::NoSuchColumn { column, columns, .. } = &error else {
        return error.into();
    };
    let categories = preparation.categories.iter().map(|category| &category.name);
    let wanted = preparation.features.iter().chain(categories);
    let missing = wanted.filter(|name| !columns.contains(name));
    let mut missing: Vec<&str> = missing.map(String::as_str).collect();
    if missing.is_empty() {
        missing.push(column);
    }
    let (missing, wanted) = (missing.join(", "), kind(preparation));
    TrainError::OtherData {
        path: path.to_owned(),
        reason: message!(
            en: "it was trained on {wanted} with columns that are missing here: {missing}",
            zh: "训练它所用的数据（{wanted}）中有这里没有的列：{missing}"
        ),
    }
}

/// An entity without an embedding: a strange one, or a table of many that was taken for one.
fn unknown_entity(name: &str, settings: &Settings) -> Message {
    match &settings.entity {
        Some(column) => message!(
            en: "`{name}` (column `{column}`) was not among the training entities, and the model has an \
            embedding per entity",
            zh: "训练数据中没有实体 `{name}`（列 `{column}`），而模型为每个实体都有一个嵌入"
        ),
        None => message!(
            en: "each file is read as one entity named after the file, and `{name}` was not among the \
            training entities; if a column names the entity of each row, pass it: --entity COLUMN",
            zh: "每个文件被视为一个与文件同名的实体的序列，而训练数据中没有 `{name}`；如果有一列标明每行所属的实体，请用 --entity 列名 指定"
        ),
    }
}

fn table(path: &Path, preparation: &Preparation, settings: &Settings) -> Result<Samples, TrainError> {
    // The columns of joined tables are named by the recipe of the join.
    let joined = JoinRecipe::find(path)?.is_some();
    let own = |names: Vec<String>| (!joined).then_some(names);
    let codes = preparation.categories.iter();
    let (label, more_labels) = rows::several(preparation.label.clone());
    let options = TabularOptions {
        label,
        more_labels,
        label_kind: LabelKind::Auto,
        without_labels: true,
        features: own(preparation.features.clone()),
        categories: own(codes.map(|category| category.name.clone()).collect()),
        policies: every_row(policies(preparation, settings)),
        limit: settings.limit,
        ..TabularOptions::default()
    };
    let labelled = TabularOptions {
        without_labels: false,
        label_kind: match preparation.target.task {
            // A text among numbers is an error, not a class that training did not have.
            Task::Regression => LabelKind::Real,
            _ => rows::label_kind(settings.task_of(&options.label)),
        },
        ..options.clone()
    };
    let (mut table, has_labels, no_labels) = match load_tabular(path, &labelled) {
        Ok(table) => (table, true, None),
        Err(found) => {
            let table = load_tabular(path, &options).map_err(|error| other_data(path, preparation, error))?;
            (table, false, Some(found))
        }
    };
    let names = |name: &String| table.categories.iter().any(|category| category.name == *name);
    let wanted = preparation.categories.iter().map(|category| &category.name);
    if table.feature_names != preparation.features || !wanted.clone().all(names) {
        let missing = preparation.features.iter().chain(wanted);
        let missing: Vec<&str> = missing
            .filter(|name| !table.feature_names.contains(name) && !names(name))
            .map(String::as_str)
            .collect();
        let missing = missing.join(", ");
        return Err(TrainError::OtherData {
            path: path.to_owned(),
            reason: message!(en: "its columns differ from those of the training data; missing: {missing}", zh: "其中的列与训练数据不同；缺少：{missing}"),
        });
    }
    preparation.standardiser().apply(table.features.to_mut());
    let known: Vec<Category> = preparation.categories.iter().map(Codes::dictionary).collect();
    let mut recoded = table.recode(&known);
    for (position, codes) in preparation.categories.iter().enumerate() {
        hash(&table.codes, &table.categories, codes, position, &mut recoded);
    }
    let mut notes = unseen(&known, &recoded.unseen);
    notes.extend(no_labels.as_ref().and_then(unread));
    let numbers = (1..=table.rows as i32).collect();
    let labels = has_labels.then(|| match preparation.target.task {
        Task::Several => several_labels(&table, &preparation.target),
        _ => table_labels(&table.labels, &preparation.target),
    });
    Ok(Samples {
        starts: (0..table.rows as u32).collect(),
        tables: rows::tables(table.features, &recoded.codes, known.len()),
        entities: Vec::new(),
        last_offset: 0,
        labels,
        no_labels: no_labels.map(|error| error.message()),
        times_us: Vec::new(),
        columns: vec![("row".to_owned(), Column::Whole(numbers))],
        notes,
    })
}

/// Several labels in the class numbers of the training; NaN for a class that it did not have.
fn several_labels(table: &flatout_data::Tabular, target: &Target) -> Labels {
    let columns = target.columns();
    let flatout_data::Labels::Real(values) = &table.labels else {
        return Labels::Real {
            values: Arc::new(vec![f32::NAN; table.rows * columns]),
            columns,
        };
    };
    let mut values = values.to_vec();
    for (column, head) in target.heads.iter().enumerate() {
        let Some(names) = table.label_classes.get(column).filter(|names| !names.is_empty()) else {
            continue;
        };
        let known: Vec<f32> = names
            .iter()
            .map(|name| head.names.iter().position(|known| known == name))
            .map(|class| class.map_or(f32::NAN, |class| class as f32))
            .collect();
        for value in values.iter_mut().skip(column).step_by(columns) {
            *value = known.get(*value as usize).copied().unwrap_or(f32::NAN);
        }
    }
    Labels::Real {
        values: Arc::new(values),
        columns,
    }
}

/// A table's labels as the training saw them; a class that it did not have is none.
fn table_labels(labels: &flatout_data::Labels, target: &Target) -> Labels {
    let class_of = |name: &str| target.names.iter().position(|known| known == name);
    match (labels, target.task) {
        (flatout_data::Labels::Real(values), Task::Classes) => {
            let known = |value: &f32| class_of(&value.to_string()).map_or(-1, |class| class as i32);
            Labels::Class(Arc::new(values.iter().map(known).collect()))
        }
        (flatout_data::Labels::Real(values), task) => Labels::Real {
            values: Arc::new(values.to_vec()),
            columns: if task == Task::Binary { 1 } else { target.columns() },
        },
        (flatout_data::Labels::Class { classes, names }, task) => {
            let known: Vec<Option<usize>> = names.iter().map(|name| class_of(name)).collect();
            let each = classes
                .iter()
                .map(|&class| known.get(class as usize).copied().flatten());
            match task {
                Task::Classes => Labels::Class(Arc::new(
                    each.map(|class| class.map_or(-1, |class| class as i32)).collect(),
                )),
                _ => Labels::Real {
                    values: Arc::new(
                        each.map(|class| class.map_or(f32::NAN, |class| class as f32))
                            .collect(),
                    ),
                    columns: 1,
                },
            }
        }
    }
}

/// A column that was hashed in training is hashed here: no value is unknown.
fn hash(read: &[i32], categories: &[Category], codes: &Codes, position: usize, recoded: &mut Recoded) {
    let own = categories.iter().position(|own| own.name == codes.name);
    let translation = own.and_then(|own| codes.translation(&categories[own]));
    let (Some(own), Some(translation)) = (own, translation) else {
        return;
    };
    let (width, known) = (categories.len(), recoded.unseen.len());
    for (row, &code) in read.iter().skip(own).step_by(width).enumerate() {
        let code = usize::try_from(code).unwrap_or(0);
        recoded.codes[row * known + position] = translation.get(code).copied().unwrap_or(0);
    }
    recoded.unseen[position] = 0;
}

/// How values are read: as in training, of the columns that the model looks at.
fn policies(preparation: &Preparation, settings: &Settings) -> Policies {
    let categories = preparation.categories.iter().map(|category| &category.name);
    let names: Vec<&String> = preparation.features.iter().chain(categories).collect();
    let used = |name: &str| names.iter().any(|known| *known == name);
    let mut policies = settings.policies.clone().only(used);
    if settings.past_labels && policies.own_missing(&preparation.label).is_none() {
        // As in training, a row without a label has that of the row before.
        policies
            .missing_by_column
            .push((preparation.label.clone(), Missing::Forward));
    }
    policies
}

/// A prediction has the number of its row, so no row may be left out: those that training dropped get the mean, those it skipped are an
/// error.
fn every_row(mut policies: Policies) -> Policies {
    let kept = |policy: Missing| match policy {
        Missing::Drop => Missing::Mean,
        other => other,
    };
    policies.missing = policies.missing.map(kept);
    for (_, policy) in &mut policies.missing_by_column {
        *policy = kept(*policy);
    }
    policies.bad_rows = BadRows::Error;
    policies
}

/// The label of each window, some rows behind its last one; NaN where the entity ends before.
fn labels_of(panel: &Panel, ends: &[u32], horizon: u32) -> Labels {
    let (all, names) = panel.all_labels();
    let columns = names.len();
    let mut values = Vec::with_capacity(ends.len() * columns);
    for &end in ends {
        let place = panel.entities.partition_point(|entity| entity.rows.end <= end);
        let inside = panel
            .entities
            .get(place)
            .is_some_and(|entity| end + horizon < entity.rows.end);
        let row = (end + horizon) as usize;
        match inside {
            true => values.extend_from_slice(&all[row * columns..(row + 1) * columns]),
            false => values.extend(std::iter::repeat_n(f32::NAN, columns)),
        }
    }
    Labels::Real {
        values: Arc::new(values),
        columns,
    }
}

fn is_one(panel: &Panel, rows: &Range<u32>) -> bool {
    let times = panel.timestamps_us.as_ref();
    times.is_some_and(|times| times[rows.start as usize..rows.end as usize].is_sorted_by(|a, b| a < b))
}

/// Entities without an embedding of their own.
fn not_known(strangers: &[String], of: usize) -> Option<Message> {
    let first = strangers.first()?;
    let count = strangers.len();
    Some(message!(
        en: "{count} of {of} entities were not in the training data (for example `{first}`); they share the \
        embedding for unknown entities",
        zh: "{of} 个实体中有 {count} 个不在训练数据中（例如 `{first}`）；它们共用未知实体的嵌入"
    ))
}

/// Says of which columns the model does not know values, and how many.
fn unseen(known: &[Category], counts: &[u64]) -> Vec<Message> {
    let columns = known.iter().zip(counts).filter(|(_, count)| **count > 0);
    let said = columns.map(|(category, count)| {
        let name = &category.name;
        message!(
            en: "`{name}`: {count} values were not in the training data; the model treats them as unknown",
            zh: "`{name}`：有 {count} 个值在训练数据中没有出现过，模型按未知值处理"
        )
    });
    said.collect()
}
