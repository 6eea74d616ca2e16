//! Independent rows: CSV or Parquet tables, joined when a recipe says how.

use super::{Codes, Preparation, Shape, TrainingData, cached, label_of, label_table, left_out, split_rule};
use crate::target::{RealLabels, decide_classes};
use crate::{Settings, TrainError};
use flatout_data::standardise::say_without_values;
use flatout_data::table_source::TableSource;
use flatout_data::{Block, Category, JoinRecipe, LabelKind, Labels, Tabular, TabularOptions, load_tabular};
use flatout_engine::Table;
use std::path::Path;
use std::sync::Arc;

/// Names of the tables of categories.
pub const CODES: &[&str] = &[
    "codes0", "codes1", "codes2", "codes3", "codes4", "codes5", "codes6", "codes7", "codes8", "codes9",
    "codes10", "codes11", "codes12", "codes13", "codes14", "codes15", "codes16", "codes17", "codes18",
    "codes19", "codes20", "codes21", "codes22", "codes23", "codes24", "codes25", "codes26", "codes27",
    "codes28", "codes29", "codes30", "codes31",
];

pub fn load(path: &Path, settings: &Settings) -> Result<TrainingData, TrainError> {
    let options = TabularOptions {
        label: label(path, settings)?,
        label_kind: match settings.task.as_str() {
            "classes" => LabelKind::Class,
            "regression" => LabelKind::Real,
            _ => LabelKind::Auto,
        },
        time: settings.time.clone(),
        policies: settings.policies.clone(),
        limit: settings.limit,
        ..TabularOptions::default()
    };
    let mut notes = Vec::new();
    let load = || load_tabular(path, &options);
    let mut table: Tabular = cached(settings, &mut notes, load, |cache| cache.tabular(path, &options))?;
    notes.extend(left_out(&table.skipped, table.rows_dropped));
    let splits = table.split(&split_rule(settings))?;
    notes.extend(say_without_values(&table.features, &table.feature_names));
    let standardiser = table.standardise(&splits.train);
    let bytes = table.size_bytes();
    if table.categories.len() > CODES.len() {
        return Err(TrainError::TooManyCategories {
            count: table.categories.len(),
            most: CODES.len(),
        });
    }
    let (target, labels) = match table.labels {
        Labels::Class { classes, names } => decide_classes(classes.into_vec(), names, &settings.task),
        Labels::Real(values) => RealLabels {
            values: values.into_vec(),
            names: vec![table.label_name.clone()],
            training: &mut splits.train.iter().copied(),
        }
        .decide(&settings.task),
    }?;
    let preparation = Preparation {
        shape: Shape::Rows {
            features: table.feature_names.len(),
            categories: table.categories.iter().map(Category::embedding_rows).collect(),
        },
        label: table.label_name,
        features: table.feature_names,
        mean: standardiser.mean,
        std: standardiser.std,
        categories: table.categories.iter().map(values_of).collect(),
        entities: Vec::new(),
        target,
    };
    let mut tables = tables(table.features, &table.codes, table.categories.len());
    tables.push(("labels", label_table(&preparation.target, &labels)));
    Ok(TrainingData {
        tables,
        preparation,
        train: splits.train,
        validation: splits.validation,
        labels,
        entity_of_row: Arc::default(),
        label_offset: 0,
        bytes,
        notes,
        panel: None,
    })
}

/// A recipe that joins tables names the label itself. Where nobody does, data that cannot be read are the first thing to say.
fn label(path: &Path, settings: &Settings) -> Result<String, TrainError> {
    if let Some(label) = label_of(path, settings)? {
        return Ok(label);
    }
    if JoinRecipe::find(path)?.is_some() {
        return Ok(String::new());
    }
    TableSource::open(path, None, None)?;
    Err(TrainError::Missing { setting: "label" })
}

fn values_of(category: &Category) -> Codes {
    Codes {
        name: category.name.clone(),
        values: category.values.iter().map(|value| value.into_owned()).collect(),
    }
}

/// One table of features, and one a category: the engine gathers single codes.
pub fn tables(features: Block<f32>, codes: &[i32], categories: usize) -> Vec<(&'static str, Table)> {
    let mut tables: Vec<(&'static str, Table)> = vec![("features", Table::F32(Arc::new(features)))];
    for (position, name) in CODES.iter().enumerate().take(categories) {
        let column: Vec<i32> = codes.iter().skip(position).step_by(categories).copied().collect();
        tables.push((name, Table::I32(Arc::new(column))));
    }
    tables
}
