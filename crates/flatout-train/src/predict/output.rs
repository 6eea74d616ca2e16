//! Predictions as a table: CSV or, by the file's ending, Parquet.

use crate::TrainError;
use crate::metrics::{ClassReport, Scores};
use flatout_core::Message;
use flatout_core::error::FileError;
use flatout_core::files::{behind_links, write_atomically};
use flatout_data::formats::parquet_write::{self, ColumnToWrite};
use std::fmt::Write as _;
use std::path::Path;

pub enum Column {
    Text(Vec<String>),
    Real(Vec<f32>),
    Whole(Vec<i32>),
}

impl Column {
    fn len(&self) -> usize {
        match self {
            Self::Text(values) => values.len(),
            Self::Real(values) => values.len(),
            Self::Whole(values) => values.len(),
        }
    }
}

/// Columns of equal length.
pub struct Predictions {
    /// Where the data have labels.
    pub scores: Option<Scores>,
    /// Of each label, where there are several.
    pub targets: Vec<(String, Scores)>,
    /// The classes of each label that has some.
    pub classes: Vec<(Option<String>, ClassReport)>,
    pub columns: Vec<(String, Column)>,
    /// Why there are no scores, where labels could not be read.
    pub no_labels: Option<Message>,
    /// What a person should know about the data they were made from.
    pub notes: Vec<Message>,
}

impl Predictions {
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, column)| column.len())
    }

    pub fn csv(&self) -> String {
        let names: Vec<String> = self.columns.iter().map(|(name, _)| quoted(name)).collect();
        let mut text = names.join(",") + "\n";
        for row in 0..self.rows() {
            for (place, (_, column)) in self.columns.iter().enumerate() {
                let comma = if place > 0 { "," } else { "" };
                // Writing to a string cannot fail.
                let _ = match column {
                    Column::Text(values) => write!(text, "{comma}{}", quoted(&values[row])),
                    Column::Real(values) => write!(text, "{comma}{}", values[row]),
                    Column::Whole(values) => write!(text, "{comma}{}", values[row]),
                };
            }
            text.push('\n');
        }
        text
    }

    /// Writes the whole file or leaves what was there.
    pub fn write(&self, path: &Path) -> Result<(), TrainError> {
        if path.extension().is_none_or(|ending| ending != "parquet") {
            return Ok(write_atomically(path, self.csv().as_bytes())?);
        }
        let path = &behind_links(path);
        let columns: Vec<(&str, ColumnToWrite)> = self
            .columns
            .iter()
            .map(|(name, column)| {
                let column = match column {
                    Column::Text(values) => ColumnToWrite::Text(values),
                    Column::Real(values) => ColumnToWrite::Float(values),
                    Column::Whole(values) => ColumnToWrite::Whole(values),
                };
                (name.as_str(), column)
            })
            .collect();
        if let Some(folder) = path.parent() {
            flatout_core::files::sweep(folder);
        }
        let name = flatout_core::leftover::name(path.file_name().unwrap_or_default());
        let temporary = path.with_file_name(name);
        let written = parquet_write::write(&temporary, &columns).map_err(TrainError::from);
        let renamed = written.and_then(|()| {
            std::fs::rename(&temporary, path).map_err(|source| FileError::writing(path, source).into())
        });
        if renamed.is_err() {
            let _ = std::fs::remove_file(&temporary);
        }
        renamed
    }
}

fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_quoted_where_it_must_be() {
        let predictions = Predictions {
            no_labels: None,
            classes: Vec::new(),
            scores: None,
            targets: Vec::new(),
            columns: vec![
                (
                    "file".to_owned(),
                    Column::Text(vec!["a,\"b\".png".to_owned(), "c".to_owned()]),
                ),
                ("p".to_owned(), Column::Real(vec![0.5, -1e-7])),
                ("row".to_owned(), Column::Whole(vec![1, 2])),
            ],
            notes: Vec::new(),
        };
        assert_eq!(
            predictions.csv(),
            "file,p,row\n\"a,\"\"b\"\".png\",0.5,1\nc,-0.0000001,2\n"
        );
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.parquet");
        predictions.write(&path).unwrap();
        let table = flatout_data::load_tabular(
            &path,
            &flatout_data::TabularOptions {
                label: "p".into(),
                ..Default::default()
            },
        )
        .unwrap();
        assert_eq!(table.rows, 2);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(
            predictions
                .write(&folder.path().join("missing/p.parquet"))
                .is_err()
        );
    }
}
