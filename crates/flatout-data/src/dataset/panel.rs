//! Sequences of many entities (stocks, sensors): all rows in one block, an entity is a range of rows, a window is the number of
//! its first row. Windows are never copied out before a batch needs them.

use super::tabular::{Category, Recoded, recode};
use crate::block::Block;
use crate::load::missing::Missing;
use crate::split::{SplitRule, Splits};
use crate::standardise::Standardiser;
use crate::table::Skipped;
use crate::{DataError, Result};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

#[derive(Debug, Default)]
pub struct Panel {
    /// `[rows, feature_names.len()]`, the entities one after the other.
    pub features: Block<f32>,
    pub feature_names: Vec<String>,
    /// `[rows, categories.len()]`; code 0 is "unseen or missing", known values count from 1.
    pub codes: Block<i32>,
    pub categories: Vec<Category>,
    /// `[rows]`; NaN where a row has no label.
    pub labels: Block<f32>,
    pub label_name: String,
    /// Further labels, `[rows, more_label_names.len()]`; a row with one that is missing has no label.
    pub more_labels: Block<f32>,
    pub more_label_names: Vec<String>,
    /// `[rows]`, the index into `entities`: gathers the entity of a window without a search.
    pub entity_of_row: Block<i32>,
    pub entities: Vec<Entity>,
    /// `[rows]`, microseconds since 1970, rising within an entity; absent when the files have no column of time.
    pub timestamps_us: Option<Block<i64>>,
    /// Rows left out because values were missing and the policy was to drop them.
    pub rows_dropped: usize,
    /// Rows that could not be read and were left out.
    pub skipped: Skipped,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entity {
    pub name: String,
    pub rows: Range<u32>,
}

/// Row ranges (one an entity, empty ones left out) of each part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PanelSplit {
    pub train: Vec<Range<u32>>,
    pub validation: Vec<Range<u32>>,
    pub test: Vec<Range<u32>>,
}

/// The windows of one part: first rows, ascending.
#[derive(Debug, Clone)]
pub struct Windows {
    pub starts: Arc<[u32]>,
    /// Windows left out because their label is missing.
    pub without_label: usize,
}

impl Panel {
    pub fn rows(&self) -> usize {
        self.labels.len()
    }

    /// All labels, `[rows, names]`, and their names.
    pub fn all_labels(&self) -> (Vec<f32>, Vec<String>) {
        let width = self.more_label_names.len();
        let mut values = Vec::with_capacity(self.rows() * (width + 1));
        for (row, &label) in self.labels.iter().enumerate() {
            values.push(label);
            values.extend_from_slice(&self.more_labels[row * width..(row + 1) * width]);
        }
        let names = std::iter::once(&self.label_name).chain(&self.more_label_names);
        (values, names.cloned().collect())
    }

    /// Whether a row has all its labels.
    fn is_labeled(&self, row: usize) -> bool {
        let width = self.more_label_names.len();
        let more = self.more_labels.get(row * width..(row + 1) * width);
        self.labels[row].is_finite() && more.is_none_or(|more| more.iter().all(|value| value.is_finite()))
    }

    /// Cuts by time, the same instant for every entity, so that no entity's past tells another's future; without
    /// timestamps each entity is cut at the ratio of its own rows.
    pub fn split(&self, rule: &SplitRule) -> Result<PanelSplit> {
        rule.check()?;
        if let (None, SplitRule::Time { .. }) = (&self.timestamps_us, rule) {
            return Err(crate::split::no_timestamps());
        }
        let cut_times = self
            .timestamps_us
            .as_ref()
            .map(|times| (times, self.cut_times(times, rule)));
        let mut split = PanelSplit::default();
        for entity in &self.entities {
            let [first, second] = match (&cut_times, rule) {
                (Some((times, cuts)), _) => {
                    let times = &times[entity.rows.start as usize..entity.rows.end as usize];
                    cuts.map(|cut| entity.rows.start + times.partition_point(|&time| time < cut) as u32)
                }
                (
                    None,
                    SplitRule::Ratio {
                        train, validation, ..
                    },
                ) => {
                    let count = entity.rows.len() as f64;
                    [*train, train + validation].map(|share| {
                        (entity.rows.start + (count * share).round() as u32).min(entity.rows.end)
                    })
                }
                (None, SplitRule::Time { .. }) => [entity.rows.start; 2],
            };
            for (part, range) in [
                (&mut split.train, entity.rows.start..first),
                (&mut split.validation, first..second),
                (&mut split.test, second..entity.rows.end),
            ] {
                if !range.is_empty() {
                    part.push(range);
                }
            }
        }
        Ok(split)
    }

    /// The first instants of validation and of test.
    fn cut_times(&self, timestamps: &[i64], rule: &SplitRule) -> [i64; 2] {
        match rule {
            SplitRule::Time {
                validation_from_us,
                test_from_us,
            } => [*validation_from_us, test_from_us.unwrap_or(i64::MAX)],
            SplitRule::Ratio {
                train, validation, ..
            } => {
                let mut instants = BTreeSet::new();
                let mut last: &[i64] = &[];
                for entity in &self.entities {
                    let rows = &timestamps[entity.rows.start as usize..entity.rows.end as usize];
                    // Most entities share one calendar: comparing is a hundred times cheaper than inserting.
                    if rows != last {
                        instants.extend(rows.iter().copied());
                        last = rows;
                    }
                }
                let instants: Vec<i64> = instants.into_iter().collect();
                [*train, train + validation].map(|share| {
                    let index = (instants.len() as f64 * share).round() as usize;
                    instants.get(index).copied().unwrap_or(i64::MAX)
                })
            }
        }
    }

    /// Every window inside the ranges: `sequence_length` rows, its label `horizon` rows behind its last row. A window and its
    /// label lie in one range, so none straddles a split.
    pub fn windows(&self, ranges: &[Range<u32>], sequence_length: usize, horizon: usize) -> Result<Windows> {
        if sequence_length == 0 {
            return Err(crate::split::setting_at_least_one("sequence_length"));
        }
        let span = sequence_length + horizon;
        let mut without_label = 0;
        let mut starts = Vec::new();
        for range in ranges {
            let count = (range.len() + 1).saturating_sub(span);
            for start in range.start..range.start + count as u32 {
                if self.is_labeled(start as usize + span - 1) {
                    starts.push(start);
                } else {
                    without_label += 1;
                }
            }
        }
        if starts.is_empty() && !ranges.is_empty() {
            return Err(DataError::NoWindows {
                sequence_length,
                horizon,
                longest: ranges.iter().map(ExactSizeIterator::len).max().unwrap_or(0),
            });
        }
        Ok(Windows {
            starts: starts.into(),
            without_label,
        })
    }

    /// One window for every row of the ranges that has a label, whatever range the window's own rows are in: only the label has to be
    /// inside. A row needs `history` rows of its entity up to the end of its window, so that windows of every length up to it have the
    /// same labels.
    pub fn windows_of_labels(
        &self,
        ranges: &[Range<u32>],
        sequence_length: usize,
        horizon: usize,
        history: usize,
    ) -> Result<Windows> {
        if sequence_length == 0 {
            return Err(crate::split::setting_at_least_one("sequence_length"));
        }
        let needed = history.max(sequence_length) + horizon;
        let (mut starts, mut without_label) = (Vec::new(), 0);
        for range in ranges {
            let place = self
                .entities
                .partition_point(|entity| entity.rows.end <= range.start);
            let first = self
                .entities
                .get(place)
                .map_or(range.start, |entity| entity.rows.start);
            for label in range
                .clone()
                .filter(|label| (label + 1 - first) as usize >= needed)
            {
                if self.is_labeled(label as usize) {
                    starts.push(label + 1 - (sequence_length + horizon) as u32);
                } else {
                    without_label += 1;
                }
            }
        }
        if starts.is_empty() && !ranges.is_empty() {
            let rows = self.entities.iter().map(|entity| entity.rows.len());
            return Err(DataError::NoWindows {
                sequence_length: needed - horizon,
                horizon,
                longest: rows.max().unwrap_or(0),
            });
        }
        Ok(Windows {
            starts: starts.into(),
            without_label,
        })
    }

    /// The windows of all three parts at once; validation and test may be empty when their ratio is 0.
    pub fn split_windows(&self, rule: &SplitRule, sequence_length: usize, horizon: usize) -> Result<Splits> {
        let split = self.split(rule)?;
        let part = |ranges| {
            self.windows(ranges, sequence_length, horizon)
                .map(|windows| windows.starts)
        };
        Ok(Splits {
            train: part(&split.train)?,
            validation: part(&split.validation)?,
            test: part(&split.test)?,
        })
    }

    /// The codes that dictionaries of other data give to these rows.
    pub fn recode(&self, known: &[Category]) -> Recoded {
        recode(&self.codes, &self.categories, self.rows(), known)
    }

    /// The label as one more feature, behind the others. A row without one has that of the row before.
    pub fn add_label_feature(&mut self) {
        let width = self.feature_names.len();
        let old = std::mem::take(&mut self.features);
        let mut features = Vec::with_capacity(old.len() + self.labels.len());
        for entity in &self.entities {
            let mut last = f32::NAN;
            for row in entity.rows.start as usize..entity.rows.end as usize {
                features.extend_from_slice(&old[row * width..(row + 1) * width]);
                if self.labels[row].is_finite() {
                    last = self.labels[row];
                }
                features.push(last);
            }
        }
        self.features = features.into();
        self.feature_names.push(self.label_name.clone());
    }

    /// Fits on the training ranges only, applies to all rows. Labels stay as they are.
    pub fn standardise(&mut self, training: &[Range<u32>]) -> Standardiser {
        let standardiser = Standardiser::fit_ranges(&self.features, self.feature_names.len(), training);
        standardiser.apply(self.features.to_mut());
        standardiser
    }

    pub fn size_bytes(&self) -> usize {
        self.features.size_bytes()
            + self.codes.size_bytes()
            + self.labels.size_bytes()
            + self.more_labels.size_bytes()
            + self.entity_of_row.size_bytes()
            + self.timestamps_us.as_ref().map_or(0, Block::size_bytes)
    }
}

impl Panel {
    /// Last step of building: leaves out rows with missing values in features whose policy that is, and numbers the rows' entities.
    pub(crate) fn finish_rows(&mut self, policies: &[Missing]) {
        if policies.contains(&Missing::Drop) {
            self.drop_rows_with_missing(policies);
        }
        let mut entity_of_row = vec![0i32; self.rows()];
        for (index, entity) in (0i32..).zip(&self.entities) {
            entity_of_row[entity.rows.start as usize..entity.rows.end as usize].fill(index);
        }
        self.entity_of_row = entity_of_row.into();
    }

    fn drop_rows_with_missing(&mut self, policies: &[Missing]) {
        let width = self.feature_names.len();
        let mut kept = 0usize;
        let mut features = std::mem::take(&mut self.features).into_vec();
        let code_width = self.categories.len();
        let mut codes = std::mem::take(&mut self.codes).into_vec();
        let mut labels = std::mem::take(&mut self.labels).into_vec();
        let more_width = self.more_label_names.len();
        let mut more = std::mem::take(&mut self.more_labels).into_vec();
        let mut times = self.timestamps_us.take().map(Block::into_vec);
        for entity in &mut self.entities {
            let first_kept = kept;
            for row in entity.rows.start as usize..entity.rows.end as usize {
                if features[row * width..(row + 1) * width]
                    .iter()
                    .zip(policies)
                    .any(|(value, policy)| value.is_nan() && *policy == Missing::Drop)
                {
                    continue;
                }
                features.copy_within(row * width..(row + 1) * width, kept * width);
                codes.copy_within(row * code_width..(row + 1) * code_width, kept * code_width);
                labels[kept] = labels[row];
                more.copy_within(row * more_width..(row + 1) * more_width, kept * more_width);
                if let Some(times) = &mut times {
                    times[kept] = times[row];
                }
                kept += 1;
            }
            self.rows_dropped += entity.rows.len() - (kept - first_kept);
            entity.rows = first_kept as u32..kept as u32;
        }
        features.truncate(kept * width);
        labels.truncate(kept);
        more.truncate(kept * more_width);
        self.more_labels = more.into();
        codes.truncate(kept * code_width);
        self.codes = codes.into();
        self.features = features.into();
        self.labels = labels.into();
        self.timestamps_us = times.map(|mut times| {
            times.truncate(kept);
            times.into()
        });
    }
}

#[cfg(test)]
mod tests;
