//! Rows that lack their label: no policy for missing values helps them, only leaving them out.

use crate::error::is_infinite;
use crate::formats::csv::number::is_missing;
use crate::table::{BadRow, Problem, Skipped};
use crate::{DataError, Result};
use std::path::Path;

/// A bad row is told as one without a label where that is what it lacks.
pub(super) fn told(error: DataError, label: &str) -> DataError {
    match error {
        DataError::BadRow(row) if lacks(&row, label) => DataError::NoLabel(row),
        other => other,
    }
}

/// Why there are no rows.
pub(super) fn no_rows(path: &Path, skipped: &Skipped, label: &str) -> DataError {
    let path = path.to_owned();
    match skipped.examples.first() {
        None => DataError::NoRows { path },
        Some(_) if skipped.examples.iter().all(|row| lacks(row, label)) => DataError::NoLabels {
            path,
            column: label.to_owned(),
        },
        Some(first) => DataError::AllSkipped {
            path,
            first: Box::new(first.clone()),
        },
    }
}

/// Of sequences some labels may be missing, not all.
pub(super) fn check(path: &Path, labels: &[f32], label: &str) -> Result<()> {
    if labels.iter().any(|value| value.is_finite()) {
        return Ok(());
    }
    Err(DataError::NoLabels {
        path: path.to_owned(),
        column: label.to_owned(),
    })
}

fn lacks(row: &BadRow, label: &str) -> bool {
    match &row.problem {
        Problem::Value { column, value, .. } => {
            column == label && (is_missing(value.as_bytes()) || is_infinite(value))
        }
        Problem::Fields { .. } => false,
    }
}
