//! Other data, prepared as the training data were: the same columns in the same order, the same scaling, the same codes.

use super::{Column, kind, pixels};
use crate::data::{Codes, Kind, Preparation, Shape, left_out, rows};
use crate::{Settings, TrainError};
use flatout_core::{Explain, Message, message};
use flatout_data::formats::csv::number::is_missing;
use flatout_data::formats::image::ImageShape;
use flatout_data::table::{BadRow, BadRows, Problem};
use flatout_data::{
    Category, DataError, JoinRecipe, LabelKind, Missing, PanelOptions, Policies, TabularOptions, load_panel,
    load_tabular, time,
};
use flatout_engine::Table;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

pub struct Samples {
    pub tables: Vec<(&'static str, Table)>,
    /// First rows of windows, rows, or numbers of pictures.
    pub starts: Vec<u32>,
    /// Of each sample, for sequences.
    pub entities: Vec<i32>,
    /// What tells a person which sample it is.
    pub columns: Vec<(String, Column)>,
    /// What a person should know about the data.
    pub notes: Vec<Message>,
}

pub fn load(path: &Path, preparation: &Preparation, settings: &Settings) -> Result<Samples, TrainError> {
    let found = Kind::of(path)?;
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
            pixels::load(path, shape, settings)
        }
        _ => Err(something_else(path, preparation)),
    }
}

fn something_else(path: &Path, preparation: &Preparation) -> TrainError {
    let wanted = kind(preparation);
    TrainError::OtherData {
        path: path.to_owned(),
        reason: message!(en: "the checkpoint was trained on {wanted}, and these are something else", zh: "检查点是用另一类数据（{wanted}）训练的，与这些数据不符"),
    }
}

fn panel(path: &Path, preparation: &Preparation, settings: &Settings) -> Result<Samples, TrainError> {
    let options = PanelOptions {
        label: preparation.label.clone(),
        without_labels: true,
        entity: settings.entity.clone(),
        features: Some(preparation.features.clone()),
        time: settings.time.clone(),
        policies: policies(preparation, settings),
        limit: settings.limit,
        ..PanelOptions::default()
    };
    let mut panel = load_panel(path, &options).map_err(|error| other_data(path, preparation, error))?;
    preparation.standardiser().apply(panel.features.to_mut());
    let known: HashMap<&str, i32> = (0..)
        .zip(&preparation.entities)
        .map(|(index, name)| (name.as_str(), index))
        .collect();
    let length = settings.sequence_length as u32;
    let (mut starts, mut entities, mut names, mut ends) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for entity in &panel.entities {
        let index = match known.get(entity.name.as_str()) {
            Some(&index) => index,
            None if settings.entity_embedding_dim == 0 => 0,
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
            reason: message!(en: "a window takes {length} rows, and the longest sequence there has {longest}", zh: "一个窗口需要 {length} 行，而其中最长的序列只有 {longest} 行"),
        });
    }
    let mut columns = vec![("entity".to_owned(), Column::Text(names))];
    if let Some(times) = &panel.timestamps_us {
        let times = ends.iter().map(|&row| time::format_us(times[row as usize]));
        columns.push(("time".to_owned(), Column::Text(times.collect())));
    }
    Ok(Samples {
        tables: vec![("features", Table::F32(Arc::new(panel.features)))],
        starts,
        entities,
        columns,
        notes: left_out(&panel.skipped, panel.rows_dropped),
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
            en: "it was trained on {wanted} whose columns are not there: {missing}",
            zh: "训练它所用的数据（{wanted}）中有这里没有的列：{missing}"
        ),
    }
}

/// An entity without an embedding: a strange one, or a table of many that was taken for one.
fn unknown_entity(name: &str, settings: &Settings) -> Message {
    match &settings.entity {
        Some(column) => message!(
            en: "`{name}` (column `{column}`) was not among the entities trained on, and the model has an embedding for each of them",
            zh: "训练数据中没有实体 `{name}`（列 `{column}`），而模型为每个实体都有一个嵌入"
        ),
        None => message!(
            en: "each file is taken as the sequence of one entity named as the file, and `{name}` was not among those trained on; where a column names the entity of each row, say which: --entity COLUMN",
            zh: "每个文件被视为一个与文件同名的实体的序列，而训练数据中没有 `{name}`；如果有一列标明每行所属的实体，请用 --entity 列名 指定"
        ),
    }
}

fn table(path: &Path, preparation: &Preparation, settings: &Settings) -> Result<Samples, TrainError> {
    // The columns of joined tables are named by the recipe of the join.
    let joined = JoinRecipe::find(path)?.is_some();
    let own = |names: Vec<String>| (!joined).then_some(names);
    let codes = preparation.categories.iter();
    let options = TabularOptions {
        label: preparation.label.clone(),
        label_kind: LabelKind::Auto,
        without_labels: true,
        features: own(preparation.features.clone()),
        categories: own(codes.map(|category| category.name.clone()).collect()),
        policies: every_row(policies(preparation, settings)),
        limit: settings.limit,
        ..TabularOptions::default()
    };
    let mut table = load_tabular(path, &options).map_err(|error| other_data(path, preparation, error))?;
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
            reason: message!(en: "its columns are not those of the training data; missing: {missing}", zh: "其中的列与训练数据不同；缺少：{missing}"),
        });
    }
    preparation.standardiser().apply(table.features.to_mut());
    let known: Vec<Category> = preparation.categories.iter().map(Codes::dictionary).collect();
    let recoded = table.recode(&known);
    let numbers = (1..=table.rows as i32).collect();
    Ok(Samples {
        starts: (0..table.rows as u32).collect(),
        tables: rows::tables(table.features, &recoded.codes, known.len()),
        entities: Vec::new(),
        columns: vec![("row".to_owned(), Column::Whole(numbers))],
        notes: unseen(&known, &recoded.unseen),
    })
}

/// How values are read: as in training, of the columns that the model looks at.
fn policies(preparation: &Preparation, settings: &Settings) -> Policies {
    let categories = preparation.categories.iter().map(|category| &category.name);
    let names: Vec<&String> = preparation.features.iter().chain(categories).collect();
    let used = |name: &str| names.iter().any(|known| *known == name);
    settings.policies.clone().only(used)
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

/// Says of which columns the model does not know values, and how many.
fn unseen(known: &[Category], counts: &[u64]) -> Vec<Message> {
    let columns = known.iter().zip(counts).filter(|(_, count)| **count > 0);
    let said = columns.map(|(category, count)| {
        let name = &category.name;
        message!(
            en: "`{name}`: {count} values were not in the training data; the model takes them as unknown",
            zh: "`{name}`：有 {count} 个值在训练数据中没有出现过，模型按未知值处理"
        )
    });
    said.collect()
}
