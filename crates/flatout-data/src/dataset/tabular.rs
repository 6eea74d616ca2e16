//! Independent rows: numeric features, categorical codes, a label.

use crate::block::Block;
use crate::split::{SplitRule, Splits, split_rows};
use crate::standardise::Standardiser;
use crate::{DataError, Result};
use std::collections::HashMap;

#[derive(Debug, Default)]
pub struct Tabular {
    pub rows: usize,
    /// `[rows, feature_names.len()]`
    pub features: Block<f32>,
    pub feature_names: Vec<String>,
    /// `[rows, categories.len()]`; code 0 is "unseen or missing", known values count from 1.
    pub codes: Block<i32>,
    pub categories: Vec<Category>,
    pub labels: Labels,
    pub label_name: String,
    /// `[rows]`, microseconds since 1970, when a column of time was named.
    pub timestamps_us: Option<Block<i64>>,
}

/// A categorical column: its values, in the order of their codes; `values[0]` has code 1.
#[derive(Debug, Default, Clone)]
pub struct Category {
    pub name: String,
    pub values: Vec<String>,
}

impl Category {
    /// Rows an embedding table needs: the known values and the unseen one.
    pub fn embedding_rows(&self) -> usize {
        self.values.len() + 1
    }

    /// The codes by value, to encode new data with an old dictionary.
    pub fn index(&self) -> HashMap<&str, i32> {
        (1..)
            .zip(&self.values)
            .map(|(code, value)| (value.as_str(), code))
            .collect()
    }
}

#[derive(Debug)]
pub enum Labels {
    /// `[rows]`
    Real(Block<f32>),
    /// `[rows]`, each below `names.len()`.
    Class { classes: Block<i32>, names: Vec<String> },
}

impl Default for Labels {
    fn default() -> Self {
        Self::Real(Block::default())
    }
}

impl Tabular {
    pub fn split(&self, rule: &SplitRule) -> Result<Splits> {
        split_rows(self.rows, self.timestamps_us.as_deref(), rule)
    }

    /// Fits on the rows given (the training split) and applies to all.
    pub fn standardise(&mut self, training_rows: &[u32]) -> Standardiser {
        let standardiser = Standardiser::fit(&self.features, self.feature_names.len(), training_rows);
        standardiser.apply(self.features.to_mut());
        standardiser
    }

    /// The last sanity check before a trainer sees it: sizes agree.
    pub fn check(&self) -> Result<()> {
        u32::try_from(self.rows).map_err(|_| DataError::TooLarge {
            what: "rows",
            count: self.rows as u64,
        })?;
        Ok(())
    }

    pub fn size_bytes(&self) -> usize {
        let labels = match &self.labels {
            Labels::Real(values) => values.size_bytes(),
            Labels::Class { classes, .. } => classes.size_bytes(),
        };
        let timestamps = self.timestamps_us.as_ref().map_or(0, Block::size_bytes);
        self.features.size_bytes() + self.codes.size_bytes() + labels + timestamps
    }
}
