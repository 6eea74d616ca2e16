//! Independent rows: numeric features, categorical codes, a label.

use crate::block::Block;
use crate::load::missing::Missing;
use crate::split::{SplitRule, Splits, split_rows};
use crate::standardise::Standardiser;
use crate::table::Skipped;
use crate::text_list::{Dictionary, TextList};
use crate::{DataError, Result};

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
    /// Where several labels are read: the classes of each, none for numbers. Their values are class numbers.
    pub label_classes: Vec<Vec<String>>,
    /// `[rows]`, microseconds since 1970, when a column of time was named.
    pub timestamps_us: Option<Block<i64>>,
    /// Rows that could not be read and were left out.
    pub skipped: Skipped,
    /// Rows left out because values were missing and the policy was to drop them.
    pub rows_dropped: usize,
}

/// A categorical column: its values, in the order of their codes; value 0 of the list has code 1.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Category {
    pub name: String,
    pub values: TextList,
}

impl Category {
    /// Rows an embedding table needs: the known values and the unseen one.
    pub fn embedding_rows(&self) -> usize {
        self.values.len() + 1
    }
}

#[derive(Debug)]
pub enum Labels {
    /// `[rows, labels]`
    Real(Block<f32>),
    /// `[rows]`, each below `names.len()`.
    Class { classes: Block<i32>, names: Vec<String> },
}

impl Default for Labels {
    fn default() -> Self {
        Self::Real(Block::default())
    }
}

/// A table's categories in another table's codes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Recoded {
    /// `[rows, known.len()]`
    pub codes: Vec<i32>,
    /// Rows of each column whose value the dictionary does not know: they have code 0.
    pub unseen: Vec<u64>,
}

impl Tabular {
    /// The codes that dictionaries of other data (those a model was trained with) give to these rows. A column that this table
    /// does not have is all 0.
    pub fn recode(&self, known: &[Category]) -> Recoded {
        recode(&self.codes, &self.categories, self.rows, known)
    }

    pub fn split(&self, rule: &SplitRule) -> Result<Splits> {
        split_rows(self.rows, self.timestamps_us.as_deref(), rule)
    }

    /// Fits on the rows given (the training split) and applies to all.
    pub fn standardise(&mut self, training_rows: &[u32]) -> Standardiser {
        let standardiser = Standardiser::fit(&self.features, self.feature_names.len(), training_rows);
        standardiser.apply(self.features.to_mut());
        standardiser
    }

    /// Leaves out rows with a missing value in a feature whose policy is to drop them, or in one of the categories named so.
    pub(crate) fn drop_rows_with_missing(&mut self, policies: &[Missing], categories: &[bool]) {
        let (width, code_width) = (policies.len(), categories.len());
        let kept: Vec<usize> = (0..self.rows)
            .filter(|row| {
                let values = &self.features[row * width..(row + 1) * width];
                let codes = &self.codes[row * code_width..(row + 1) * code_width];
                let no_value = values
                    .iter()
                    .zip(policies)
                    .any(|(value, policy)| value.is_nan() && *policy == Missing::Drop);
                let no_code = codes
                    .iter()
                    .zip(categories)
                    .any(|(code, dropped)| *code == 0 && *dropped);
                !no_value && !no_code
            })
            .collect();
        self.rows_dropped = self.rows - kept.len();
        self.keep(&kept);
    }

    /// Keeps these rows, ascending.
    fn keep(&mut self, kept: &[usize]) {
        keep_rows(&mut self.features, self.feature_names.len(), kept);
        keep_rows(&mut self.codes, self.categories.len(), kept);
        match &mut self.labels {
            Labels::Real(values) => {
                let width = values.len() / self.rows.max(1);
                keep_rows(values, width, kept);
            }
            Labels::Class { classes, .. } => keep_rows(classes, 1, kept),
        }
        if let Some(times) = &mut self.timestamps_us {
            keep_rows(times, 1, kept);
        }
        self.rows = kept.len();
    }

    /// Keeps the first rows only.
    pub fn truncate(&mut self, rows: usize) {
        if rows >= self.rows {
            return;
        }
        let kept: Vec<usize> = (0..rows).collect();
        let dropped = self.rows_dropped;
        self.keep(&kept);
        self.rows_dropped = dropped;
    }

    /// Adds the rows of another table with the same columns behind these. Values of categories that are not known here count as unknown;
    /// classes that are not known are the error.
    pub fn append(&mut self, other: Self) -> std::result::Result<(), String> {
        let recoded = other.recode(&self.categories);
        let mut codes = std::mem::take(&mut self.codes).into_vec();
        codes.extend(recoded.codes);
        self.codes = codes.into();
        let mut features = std::mem::take(&mut self.features).into_vec();
        features.extend_from_slice(&other.features);
        self.features = features.into();
        self.labels = match (std::mem::take(&mut self.labels), other.labels) {
            (Labels::Real(values), Labels::Real(more)) => {
                let columns = self.label_classes.len().max(1);
                let mut more = more.into_vec();
                for (column, (own, classes)) in
                    self.label_classes.iter().zip(&other.label_classes).enumerate()
                {
                    let place = places(classes, own)?;
                    for value in more.iter_mut().skip(column).step_by(columns) {
                        *value = place
                            .get(*value as usize)
                            .copied()
                            .map_or(*value, |place| place as f32);
                    }
                }
                let mut values = values.into_vec();
                values.extend(more);
                Labels::Real(values.into())
            }
            (
                Labels::Class { classes, names },
                Labels::Class {
                    classes: more,
                    names: others,
                },
            ) => {
                let place = places(&others, &names)?;
                let mut classes = classes.into_vec();
                classes.extend(
                    more.iter()
                        .map(|&class| place.get(class as usize).copied().unwrap_or(class)),
                );
                Labels::Class {
                    classes: classes.into(),
                    names,
                }
            }
            _ => return Err(self.label_name.clone()),
        };
        if let Some(times) = &mut self.timestamps_us {
            let mut all = std::mem::take(times).into_vec();
            match &other.timestamps_us {
                Some(more) => all.extend_from_slice(more),
                None => all.resize(all.len() + other.rows, i64::MAX),
            }
            *times = all.into();
        }
        self.rows += other.rows;
        self.skipped.add(&other.skipped);
        self.rows_dropped += other.rows_dropped;
        Ok(())
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

/// Of each class of one list its place in another; the first that is not there is the error.
fn places(classes: &[String], known: &[String]) -> std::result::Result<Vec<i32>, String> {
    let place = |name: &String| known.iter().position(|known| known == name);
    let each = classes
        .iter()
        .map(|name| place(name).map(|place| place as i32).ok_or_else(|| name.clone()));
    each.collect()
}

/// Codes of some columns in the codes of other dictionaries.
pub(crate) fn recode(codes: &[i32], categories: &[Category], rows: usize, known: &[Category]) -> Recoded {
    let (width, own_width) = (known.len(), categories.len());
    let mut recoded = Recoded {
        codes: vec![0; rows * width],
        unseen: vec![0; width],
    };
    for (place, category) in known.iter().enumerate() {
        let Some(own) = categories.iter().position(|own| own.name == category.name) else {
            continue;
        };
        let dictionary = Dictionary::from_texts(&category.values);
        let values = &categories[own].values;
        let translated: Vec<i32> = (0..values.len())
            .map(|index| dictionary.find(values.bytes(index)))
            .collect();
        for row in 0..rows {
            let Ok(value) = usize::try_from(codes[row * own_width + own] - 1) else {
                continue;
            };
            recoded.codes[row * width + place] = translated[value];
            recoded.unseen[place] += u64::from(translated[value] == 0);
        }
    }
    recoded
}

/// Moves the rows to keep (ascending) to the front, in place.
fn keep_rows<T: crate::block::Plain>(block: &mut Block<T>, width: usize, kept: &[usize]) {
    let mut values = std::mem::take(block).into_vec();
    for (to, &from) in kept.iter().enumerate() {
        values.copy_within(from * width..(from + 1) * width, to * width);
    }
    values.truncate(kept.len() * width);
    *block = values.into();
}
