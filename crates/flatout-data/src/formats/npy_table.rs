//! `.npy` arrays as tables: `[rows]` and `[rows, columns]` have columns `column_0` …, `[entities, rows, columns]` has the number of the
//! entity in front of them. A `labels.npy` with as many rows beside the file is one column more.

mod read;

pub use read::read;

use super::npy::{MOST_COLUMNS, NpyFile, NpyKind};
use crate::table::ColumnType;
use crate::{DataError, Result};
use std::path::{Path, PathBuf};

/// The column that numbers the entities of an array with three axes.
pub const ENTITY: &str = "entity";
/// The column out of `labels.npy`.
pub const LABEL: &str = "label";
const LABELS_FILE: &str = "labels.npy";

/// Where the values of a column come from.
#[derive(Debug, Clone, Copy)]
enum Origin {
    /// The number of the entity, for so many rows each.
    Entity(usize),
    Value(usize),
    Label,
}

/// One array and its labels.
struct Source {
    path: PathBuf,
    values: NpyFile,
    labels: Option<NpyFile>,
    rows: usize,
    columns: Vec<(String, ColumnType, Origin)>,
}

impl Source {
    fn open(path: &Path) -> Result<Self> {
        let values = NpyFile::open(path)?;
        let real_or_whole = |kind: NpyKind| {
            if kind.is_real() {
                ColumnType::Real
            } else {
                ColumnType::Integer
            }
        };
        let (rows, width, per_entity) = match values.shape[..] {
            [rows] => (rows, 1, None),
            [rows, width] => (rows, width, None),
            [entities, per_entity, width] => (entities.saturating_mul(per_entity), width, Some(per_entity)),
            _ => {
                return Err(DataError::Corrupt {
                    path: path.to_owned(),
                    format: "NumPy",
                    reason: "tables have the shape [rows], [rows, columns] or [entities, rows, columns]"
                        .into(),
                });
            }
        };
        // An array without rows may claim any width, whatever the size of its file.
        if !(1..=MOST_COLUMNS).contains(&width) {
            return Err(DataError::Corrupt {
                path: path.to_owned(),
                format: "NumPy",
                reason: format!("the table has {width} columns; expected 1 to {MOST_COLUMNS}"),
            });
        }
        let mut columns: Vec<(String, ColumnType, Origin)> = per_entity
            .map(|rows| {
                (
                    ENTITY.to_owned(),
                    ColumnType::Category,
                    Origin::Entity(rows.max(1)),
                )
            })
            .into_iter()
            .collect();
        let kind = real_or_whole(values.kind);
        columns.extend((0..width).map(|column| (format!("column_{column}"), kind, Origin::Value(column))));
        let beside = path.with_file_name(LABELS_FILE);
        let is_labels = path.file_name().is_some_and(|name| name == LABELS_FILE);
        let labels = (!is_labels && beside.is_file())
            .then(|| NpyFile::open(&beside))
            .transpose()?;
        if let Some(labels) = &labels {
            if labels.shape.iter().product::<usize>() != rows {
                return Err(DataError::Corrupt {
                    path: beside,
                    format: "NumPy",
                    reason: format!("it has another number of rows than `{}`", path.display()),
                });
            }
            columns.push((LABEL.to_owned(), real_or_whole(labels.kind), Origin::Label));
        }
        Ok(Self {
            path: path.to_owned(),
            values,
            labels,
            rows,
            columns,
        })
    }

    fn width(&self) -> usize {
        self.columns
            .iter()
            .filter(|(.., origin)| matches!(origin, Origin::Value(_)))
            .count()
    }
}

/// Without the labels of the others.
pub fn without_labels(files: Vec<PathBuf>) -> Vec<PathBuf> {
    if files.len() < 2 {
        return files;
    }
    let is_labels = |path: &PathBuf| path.file_name().is_some_and(|name| name == LABELS_FILE);
    files.into_iter().filter(|path| !is_labels(path)).collect()
}

pub fn schema(files: &[PathBuf]) -> Result<(Vec<String>, Vec<ColumnType>)> {
    let named = |path: &PathBuf| -> Result<(Vec<String>, Vec<ColumnType>)> {
        let columns = Source::open(path)?.columns.into_iter();
        Ok(columns.map(|(name, kind, _)| (name, kind)).unzip())
    };
    let first = named(&files[0])?;
    for file in &files[1..] {
        let (names, _) = named(file)?;
        if names != first.0 {
            let without = |left: &[String], right: &[String]| -> Vec<String> {
                left.iter()
                    .filter(|name| !right.contains(name))
                    .cloned()
                    .collect()
            };
            return Err(DataError::OtherColumns {
                path: file.clone(),
                first: files[0].clone(),
                missing: without(&first.0, &names),
                extra: without(&names, &first.0),
            });
        }
    }
    Ok(first)
}

pub fn rows(path: &Path) -> Option<usize> {
    Source::open(path).ok().map(|source| source.rows)
}

/// Whether a `labels.npy` lies beside the arrays at a path (a file or a folder of them).
pub fn has_labels(path: &Path) -> bool {
    let is_array = |path: &Path| path.extension().is_some_and(|ending| ending == "npy");
    let is_labels = |path: &Path| path.file_name().is_some_and(|name| name == LABELS_FILE);
    if path.is_dir() {
        let tables = crate::shards::find_tables(path).unwrap_or_default();
        return tables.len() > 1
            && tables.iter().all(|file| is_array(file))
            && tables.iter().any(|file| is_labels(file));
    }
    is_array(path) && !is_labels(path) && path.with_file_name(LABELS_FILE).is_file()
}
