//! Independent rows: CSV or Parquet tables, joined when a recipe says how.

use super::{
    Codes, Preparation, Shape, TrainingData, cached, codes, label_of, label_table, left_out, split_rule,
    weights,
};
use crate::target::{RealLabels, of_classes};
use crate::{Settings, TrainError};
use flatout_core::{Message, message};
use flatout_data::standardise::say_without_values;
use flatout_data::table_source::TableSource;
use flatout_data::{Block, JoinRecipe, LabelKind, Labels, Splits, Tabular, TabularOptions, load_tabular};
use flatout_engine::Table;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The table of a category's codes.
pub fn codes_name(position: usize) -> String {
    format!("codes{position}")
}

pub fn load(path: &Path, settings: &Settings) -> Result<TrainingData, TrainError> {
    let (label, mut more_labels) = several(label(path, settings)?);
    more_labels.extend(settings.sample_weight.clone());
    let options = TabularOptions {
        more_labels,
        label_kind: label_kind(settings.task_of(&label)),
        label,
        time: settings.time.clone(),
        policies: settings.policies.clone(),
        limit: settings.limit,
        ..TabularOptions::default()
    };
    let mut notes = Vec::new();
    let load = || load_tabular(path, &options);
    let mut table: Tabular = cached(settings, &mut notes, load, |cache| cache.tabular(path, &options))?;
    if let Some(rows) = settings.limit_rows {
        table.truncate(rows);
    }
    notes.extend(left_out(&table.skipped, table.rows_dropped));
    let splits = table.split(&split_rule(settings))?;
    let splits = held_out(&mut table, splits, &options, settings)?;
    notes.extend(say_without_values(&table.features, &table.feature_names));
    let standardiser = table.standardise(&splits.train);
    let bytes = table.size_bytes();
    let columns = codes::Columns {
        codes: table.codes.to_mut(),
        categories: &table.categories,
    };
    let categories = codes::fit(columns, &splits.train, settings)?;
    notes.extend(codes::told(&categories, &table.categories, settings));
    let mut sample_weights = None;
    let (mut target, labels) = match table.labels {
        Labels::Class { classes, names } => {
            of_classes(classes.into_vec(), names, &table.label_name, settings)
        }
        Labels::Real(values) => {
            let mut names: Vec<String> = table.label_name.split(',').map(str::to_owned).collect();
            let mut values = values.into_vec();
            if settings.sample_weight.is_some() {
                sample_weights = weights::split_off(&mut values, &mut names);
                table.label_classes.truncate(names.len());
                table.label_name = names.join(",");
            }
            let labels = RealLabels {
                values,
                names,
                classes: table.label_classes,
                training: &splits.train,
            };
            labels.decide(settings)
        }
    }?;
    let weights = weights::of(&mut target, &labels, sample_weights, &splits.train, settings)?;
    let preparation = Preparation {
        shape: Shape::Rows {
            features: table.feature_names.len(),
            categories: categories.iter().map(Codes::embedding_rows).collect(),
        },
        label: table.label_name,
        features: table.feature_names,
        mean: standardiser.mean,
        std: standardiser.std,
        categories,
        entities: Vec::new(),
        target,
    };
    let mut tables = tables(table.features, &table.codes, table.categories.len());
    tables.push((
        "labels".to_owned(),
        label_table(&preparation.target, &labels, weights.as_deref()),
    ));
    Ok(TrainingData {
        tables,
        preparation,
        train: splits.train,
        validation: splits.validation,
        test: splits.test,
        labels,
        entity_of_row: Arc::default(),
        trained: Arc::default(),
        label_offset: 0,
        last_offset: 0,
        bytes,
        notes,
        panel: None,
        augmenter: None,
    })
}

/// Reads the parts that are in files of their own behind the others.
fn held_out(
    table: &mut Tabular,
    splits: Splits,
    options: &TabularOptions,
    settings: &Settings,
) -> Result<Splits, TrainError> {
    let (features, categories) = (table.feature_names.clone(), &table.categories);
    let categories: Vec<String> = categories.iter().map(|category| category.name.clone()).collect();
    let of_class = matches!(table.labels, Labels::Class { .. });
    let mut read = |path: Option<&PathBuf>| -> Result<Option<Range<u32>>, TrainError> {
        let Some(path) = path else {
            return Ok(None);
        };
        // The columns of joined tables are named by the recipe of the join.
        let joined = JoinRecipe::find(path)?.is_some();
        let own = |names: &[String]| (!joined).then(|| names.to_vec());
        let options = TabularOptions {
            features: own(&features),
            categories: own(&categories),
            label_kind: if of_class {
                LabelKind::Class
            } else {
                LabelKind::Real
            },
            limit: None,
            ..options.clone()
        };
        let other = load_tabular(path, &options)?;
        let same = other.feature_names == features;
        let wrong = |reason: Message| TrainError::OtherData {
            path: path.clone(),
            reason,
        };
        if !same {
            let missing: Vec<&str> = features
                .iter()
                .filter(|name| !other.feature_names.contains(name))
                .map(String::as_str)
                .collect();
            let missing = missing.join(", ");
            return Err(wrong(
                message!(en: "its columns are not those of the training data; missing: {missing}", zh: "其中的列与训练数据不同；缺少：{missing}"),
            ));
        }
        let first = table.rows as u32;
        table.append(other).map_err(|class| {
            wrong(message!(en: "its class `{class}` is not in the training data", zh: "训练数据中没有类别 `{class}`"))
        })?;
        table.check()?;
        Ok(Some(first..table.rows as u32))
    };
    let validation = read(settings.validation_data.as_ref())?;
    let test = read(settings.test_data.as_ref())?;
    Ok(splits.with(validation, test))
}

/// `is_click,is_like` as the first label and the others.
pub fn several(label: String) -> (String, Vec<String>) {
    let mut names = label.split(',').map(|name| name.trim().to_owned());
    (names.next().unwrap_or_default(), names.collect())
}

/// How the label is read for a task.
pub fn label_kind(task: &str) -> LabelKind {
    match task {
        "classes" => LabelKind::Class,
        "regression" => LabelKind::Real,
        _ => LabelKind::Auto,
    }
}

/// A recipe that joins tables names the label itself. Where nobody does, data that cannot be read are the first thing to say.
fn label(path: &Path, settings: &Settings) -> Result<String, TrainError> {
    if let Some(label) = label_of(path, settings)? {
        return Ok(label);
    }
    if JoinRecipe::find(path)?.is_some() {
        return Ok(String::new());
    }
    TableSource::open_as(path, None, None, settings.policies.encoding)?;
    Err(TrainError::Missing { setting: "label" })
}

/// One table of features, and one a category: the engine gathers single codes.
pub fn tables(features: Block<f32>, codes: &[i32], categories: usize) -> Vec<(String, Table)> {
    let mut tables: Vec<(String, Table)> = vec![("features".to_owned(), Table::F32(Arc::new(features)))];
    tables.extend(code_tables(codes, categories));
    tables
}

pub fn code_tables(codes: &[i32], categories: usize) -> Vec<(String, Table)> {
    let table = |position: usize| {
        let column: Vec<i32> = codes.iter().skip(position).step_by(categories).copied().collect();
        (codes_name(position), Table::I32(Arc::new(column)))
    };
    (0..categories).map(table).collect()
}
