//! Tables, plain or joined: columns with their types, missing values and what becomes of them.

use super::{ColumnInfo, Inspection, file_info, sizes};
use crate::formats::npy_table;
use crate::load::join::JoinRecipe;
use crate::split::{SplitRule, split_rows};
use crate::table::{Array, BadRows, ColumnType, Layout, MISSING};
use crate::table_source::{ReadOptions, TableSource};
use crate::{Missing, Policies, Result, TabularOptions};
use std::path::Path;

pub(super) fn table(source: &TableSource, policies: &Policies) -> Result<Inspection> {
    for name in policies.columns() {
        source.column(name)?;
    }
    let kinds: Vec<Option<ColumnType>> = source
        .names
        .iter()
        .zip(&source.types)
        .map(|(name, kind)| (!policies.is_ignored(name)).then(|| policies.type_of(name, *kind)))
        .collect();
    let layout = Layout::columns(&kinds);
    let read = source.read(
        &layout,
        &ReadOptions {
            bad_rows: BadRows::Skip,
            infinite_is_missing: policies.infinite_is_missing,
            threads: None,
        },
    )?;
    let rows = read.arrays.rows;
    let (mut columns, mut dropping) = (Vec::new(), Vec::new());
    for (index, slot) in layout.slots.iter().enumerate() {
        let Some(slot) = slot else { continue };
        let (name, array) = (&source.names[index], &read.arrays.arrays[slot.array]);
        let distinct = read.arrays.dictionaries[index].len();
        let column = with_policy(describe(name, slot.kind, array, distinct), policies);
        if column.missing_policy == Some(Missing::Drop.name()) {
            dropping.push(array);
        }
        columns.push(column);
    }
    let rows_to_drop = (0..rows)
        .filter(|&row| dropping.iter().any(|array| is_missing(array, row)))
        .count();
    let times = kinds.iter().position(|kind| *kind == Some(ColumnType::Time));
    // One file an entity: several Parquet files with a time that are not parts of one name.
    let files = source.format_name() == "Parquet"
        && times.is_some()
        && source.files.len() > 1
        && !source.files[0].to_string_lossy().contains("_part");
    let panel = files
        || (source.format_name() == "NumPy"
            && source.names.first().is_some_and(|name| name == npy_table::ENTITY));
    let times = times.and_then(|column| layout.slots[column]);
    let timestamps = match times.map(|slot| &read.arrays.arrays[slot.array]) {
        Some(Array::Integer(times)) if panel => Some(&times[..]),
        _ => None,
    };
    let split = split_rows(rows, timestamps, &SplitRule::default())?;
    let row_bytes: usize = kinds.iter().flatten().map(|kind| kind.value_bytes()).sum();
    Ok(Inspection {
        schema_version: 1,
        kind: if panel { "panel" } else { "table" },
        format: source.format_name().into(),
        files: source
            .files
            .iter()
            .zip(&read.rows_per_file)
            .map(|(path, rows)| file_info(path, Some(*rows as u64)))
            .collect(),
        rows: rows as u64,
        memory_bytes: (row_bytes * rows) as u64,
        columns,
        bad_rows: read.skipped.count,
        bad_rows_policy: policies.bad_rows.name(),
        bad_examples: read.skipped.examples,
        rows_to_drop: rows_to_drop as u64,
        split: sizes(&split),
        image_shape: None,
        classes: Vec::new(),
    })
}

/// Says what becomes of a column's missing values: only numbers have a policy without being named.
fn with_policy(mut column: ColumnInfo, policies: &Policies) -> ColumnInfo {
    let numeric = [ColumnType::Real.name(), ColumnType::Integer.name()].contains(&column.kind);
    let policy = match numeric {
        true => Some(policies.missing_of(&column.name)),
        false => policies.own_missing(&column.name),
    };
    column.missing_policy = policy.map(Missing::name);
    column
}

fn is_missing(array: &Array, row: usize) -> bool {
    match array {
        Array::Real(values) => values[row].is_nan(),
        Array::Integer(values) => values[row] == MISSING,
        Array::Code(codes) => codes[row] == 0,
    }
}

pub(super) fn describe(name: &str, kind: ColumnType, array: &Array, distinct: usize) -> ColumnInfo {
    let range = |values: &mut dyn Iterator<Item = f64>| {
        values.fold(None, |range: Option<(f64, f64)>, value| {
            Some(range.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
        })
    };
    let (missing, range) = match array {
        Array::Real(values) => (
            values.iter().filter(|value| value.is_nan()).count(),
            range(
                &mut values
                    .iter()
                    .filter(|value| !value.is_nan())
                    .map(|&value| f64::from(value)),
            ),
        ),
        Array::Integer(values) => (
            values.iter().filter(|value| **value == MISSING).count(),
            range(
                &mut values
                    .iter()
                    .filter(|value| **value != MISSING)
                    .map(|&value| value as f64),
            ),
        ),
        Array::Code(values) => (values.iter().filter(|code| **code == 0).count(), None),
    };
    ColumnInfo {
        name: name.to_owned(),
        kind: kind.name(),
        missing: missing as u64,
        missing_policy: None,
        distinct: (kind == ColumnType::Category).then_some(distinct as u64),
        minimum: range.map(|(low, _)| low),
        maximum: range.map(|(_, high)| high),
    }
}

pub(super) fn joined(
    path: &Path,
    recipe: &JoinRecipe,
    limit: Option<usize>,
    policies: &Policies,
) -> Result<Inspection> {
    // Nothing is to be filled in or left out while looking, so every column keeps its missing values.
    let looking = Policies {
        bad_rows: BadRows::Skip,
        missing: Some(Missing::Mean),
        missing_by_column: Vec::new(),
        ..policies.clone()
    };
    let mut recipe = recipe.clone();
    let own = std::mem::take(&mut recipe.missing_by_column);
    let options = TabularOptions {
        policies: looking,
        limit,
        ..TabularOptions::default()
    };
    let table = recipe.load(path, &options)?;
    let named = own.iter().map(|(name, policy)| (name.clone(), *policy));
    let policies = Policies {
        missing: policies.missing.or(Some(recipe.missing)),
        missing_by_column: named.chain(policies.missing_by_column.iter().cloned()).collect(),
        ..policies.clone()
    };
    let split = table.split(&SplitRule::default())?;
    let width = table.feature_names.len();
    let features = table.feature_names.iter().enumerate().map(|(column, name)| {
        let values: Vec<f32> = table
            .features
            .iter()
            .skip(column)
            .step_by(width)
            .copied()
            .collect();
        (ColumnType::Real, name, Array::Real(values), 0)
    });
    let categories = table.categories.iter().enumerate().map(|(column, category)| {
        let codes: Vec<i32> = table
            .codes
            .iter()
            .skip(column)
            .step_by(table.categories.len())
            .copied()
            .collect();
        let distinct = category.values.len();
        (ColumnType::Category, &category.name, Array::Code(codes), distinct)
    });
    let (mut columns, mut dropped) = (Vec::new(), vec![false; table.rows]);
    for (kind, name, array, distinct) in features.chain(categories) {
        let column = with_policy(describe(name, kind, &array, distinct), &policies);
        if column.missing_policy == Some(Missing::Drop.name()) {
            dropped
                .iter_mut()
                .enumerate()
                .for_each(|(row, dropped)| *dropped |= is_missing(&array, row));
        }
        columns.push(column);
    }
    let folder = if path.join("data").is_dir() {
        path.join("data")
    } else {
        path.to_owned()
    };
    let files = recipe.files(&folder)?;
    Ok(Inspection {
        schema_version: 1,
        kind: "joined tables",
        format: recipe.name.clone(),
        files: files.iter().map(|path| file_info(path, None)).collect(),
        rows: table.rows as u64,
        columns,
        bad_rows: table.skipped.count,
        bad_rows_policy: policies.bad_rows.name(),
        bad_examples: table.skipped.examples.clone(),
        rows_to_drop: dropped.iter().filter(|dropped| **dropped).count() as u64,
        split: sizes(&split),
        memory_bytes: table.size_bytes() as u64,
        image_shape: None,
        classes: Vec::new(),
    })
}
