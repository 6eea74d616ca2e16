//! Sequences of many entities (stocks, sensors): all rows in one block, an entity is a range of rows, a window is the number of
//! its first row. Windows are never copied out before a batch needs them.

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
    /// `[rows]`; NaN where a row has no label.
    pub labels: Block<f32>,
    pub label_name: String,
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
                if self.labels[start as usize + span - 1].is_finite() {
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

    /// Fits on the training ranges only, applies to all rows. Labels stay as they are.
    pub fn standardise(&mut self, training: &[Range<u32>]) -> Standardiser {
        let standardiser = Standardiser::fit_ranges(&self.features, self.feature_names.len(), training);
        standardiser.apply(self.features.to_mut());
        standardiser
    }

    pub fn size_bytes(&self) -> usize {
        self.features.size_bytes()
            + self.labels.size_bytes()
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
        let mut labels = std::mem::take(&mut self.labels).into_vec();
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
                labels[kept] = labels[row];
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
        self.features = features.into();
        self.labels = labels.into();
        self.timestamps_us = times.map(|mut times| {
            times.truncate(kept);
            times.into()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A panel whose labels are the row numbers, entity `e` having `lengths[e]` rows that begin on day `offsets[e]`.
    fn panel(lengths: &[u32], offsets: &[i64], dated: bool) -> Panel {
        let rows: u32 = lengths.iter().sum();
        let mut start = 0;
        let mut times = Vec::new();
        let entities = lengths
            .iter()
            .zip(offsets.iter().cycle())
            .map(|(&length, &offset)| {
                times.extend((0..i64::from(length)).map(|day| day + offset));
                start += length;
                Entity {
                    name: start.to_string(),
                    rows: start - length..start,
                }
            })
            .collect();
        let mut panel = Panel {
            features: (0..rows).map(|row| row as f32).collect::<Vec<_>>().into(),
            feature_names: vec!["x".into()],
            labels: (0..rows).map(|row| row as f32).collect::<Vec<_>>().into(),
            entities,
            timestamps_us: dated.then(|| times.into()),
            ..Panel::default()
        };
        panel.finish_rows(&[Missing::Error]);
        panel
    }

    proptest! {
        #[test]
        fn windows_neither_leak_nor_straddle(
            lengths in prop::collection::vec(0u32..60, 1..6),
            offsets in prop::collection::vec(0i64..20, 1..6),
            dated: bool,
            train in 0.1f64..0.9,
            sequence_length in 1usize..12,
            horizon in 0usize..4,
        ) {
            let panel = panel(&lengths, &offsets, dated);
            let rule = SplitRule::Ratio { train, validation: (1.0 - train) / 2.0, shuffle_seed: None };
            let split = panel.split(&rule).unwrap();
            let parts = [&split.train, &split.validation, &split.test];
            // Every row is in exactly one part.
            let mut rows: Vec<u32> = parts.iter().flat_map(|part| part.iter().cloned().flatten()).collect();
            rows.sort_unstable();
            prop_assert_eq!(rows, (0..panel.rows() as u32).collect::<Vec<_>>());
            for part in parts {
                let Ok(windows) = panel.windows(part, sequence_length, horizon) else { continue };
                let mut expected = Vec::new();
                for range in part {
                    for start in range.clone() {
                        if start as usize + sequence_length + horizon <= range.end as usize {
                            expected.push(start);
                        }
                    }
                }
                prop_assert_eq!(&windows.starts[..], &expected[..], "every window once");
            }
            if dated {
                // Nothing in training is later than anything in validation, across all entities.
                let times = panel.timestamps_us.as_ref().unwrap();
                let latest = split.train.iter().cloned().flatten().map(|row| times[row as usize]).max();
                let earliest = split.validation.iter().cloned().flatten().map(|row| times[row as usize]).min();
                if let (Some(latest), Some(earliest)) = (latest, earliest) {
                    prop_assert!(latest < earliest);
                }
            }
        }
    }

    #[test]
    fn windows_without_label_are_counted() {
        let mut panel = panel(&[5], &[0], true);
        panel.labels.to_mut()[4] = f32::NAN;
        let windows = panel.windows(std::slice::from_ref(&(0..5)), 2, 1).unwrap();
        assert_eq!((&windows.starts[..], windows.without_label), (&[0u32, 1][..], 1));
        assert!(matches!(
            panel.windows(std::slice::from_ref(&(0..5)), 9, 1),
            Err(DataError::NoWindows { longest: 5, .. })
        ));
        assert!(panel.windows(&[], 9, 1).unwrap().starts.is_empty());
    }

    #[test]
    fn dropped_rows_close_up_within_their_entity() {
        let mut panel = panel(&[3, 3], &[0], true);
        panel.features.to_mut()[1] = f32::NAN;
        panel.features.to_mut()[5] = f32::NAN;
        panel.finish_rows(&[Missing::Drop]);
        assert_eq!(&panel.labels[..], [0.0, 2.0, 3.0, 4.0]);
        assert_eq!(&panel.entity_of_row[..], [0, 0, 1, 1]);
        assert_eq!(panel.timestamps_us.as_ref().unwrap()[..], [0, 2, 0, 1]);
        assert_eq!(panel.rows_dropped, 2);
    }

    #[test]
    fn a_split_by_date_needs_dates() {
        let rule = SplitRule::Time {
            validation_from_us: 3,
            test_from_us: None,
        };
        assert!(panel(&[9], &[0], false).split(&rule).is_err());
        let split = panel(&[9], &[0], true).split(&rule).unwrap();
        assert_eq!(split.train, std::slice::from_ref(&(0..3)));
        assert_eq!(split.validation, std::slice::from_ref(&(3..9)));
        assert!(split.test.is_empty());
    }
}
