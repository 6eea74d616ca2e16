//! Training, validation and test: by ratio or by time, each sample in exactly one part.

use crate::order::Permutation;
use crate::{DataError, Result};
use flatout_core::message;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SplitRule {
    /// Shares of the whole; the test part is what remains. Sequences and rows with a time are cut by time; other rows and
    /// pictures are drawn at random with `shuffle_seed`, or cut in their order without.
    Ratio {
        train: f64,
        validation: f64,
        shuffle_seed: Option<u64>,
    },
    /// Training ends before `validation_from_us`, validation before `test_from_us`.
    Time {
        validation_from_us: i64,
        test_from_us: Option<i64>,
    },
}

impl Default for SplitRule {
    fn default() -> Self {
        Self::Ratio {
            train: 0.8,
            validation: 0.2,
            shuffle_seed: Some(0),
        }
    }
}

/// Samples of each part: rows, first rows of windows, or picture numbers.
#[derive(Debug, Clone)]
pub struct Splits {
    pub train: Arc<[u32]>,
    pub validation: Arc<[u32]>,
    pub test: Arc<[u32]>,
}

impl Splits {
    /// These parts with others in place of their own: the numbers of samples that were added behind them.
    #[must_use]
    pub fn with(self, validation: Option<std::ops::Range<u32>>, test: Option<std::ops::Range<u32>>) -> Self {
        Self {
            train: self.train,
            validation: validation.map_or(self.validation, Iterator::collect),
            test: test.map_or(self.test, Iterator::collect),
        }
    }
}

impl SplitRule {
    pub fn check(&self) -> Result<()> {
        match self {
            Self::Ratio {
                train, validation, ..
            } => {
                let fine = |share: f64| (0.0..=1.0).contains(&share);
                if fine(*train) && fine(*validation) && train + validation <= 1.0 + 1e-9 && *train > 0.0 {
                    return Ok(());
                }
                Err(DataError::Setting(message!(
                    en: "the split fractions must be between 0 and 1 and sum to at most 1, not {train} + \
                    {validation}",
                    zh: "划分比例须在 0 到 1 之间且总和不超过 1，当前为 {train} + {validation}"
                )))
            }
            Self::Time {
                validation_from_us,
                test_from_us,
            } => match test_from_us {
                Some(test) if test <= validation_from_us => Err(DataError::Setting(message!(
                    en: "the test split must start after the validation split",
                    zh: "测试集的起始时间必须晚于验证集"
                ))),
                _ => Ok(()),
            },
        }
    }
}

pub(crate) fn no_timestamps() -> DataError {
    DataError::Setting(message!(
        en: "a split by date needs a date column, and none was found; name it with `--time COLUMN`",
        zh: "按日期划分需要日期列，但没有找到；请用 `--time 列名` 指定"
    ))
}

pub(crate) fn setting_at_least_one(name: &str) -> DataError {
    DataError::Setting(message!(en: "`{name}` must be at least 1", zh: "`{name}` 至少为 1"))
}

/// Splits rows that are independent of each other. Rows with one and the same time stay together.
pub fn split_rows(rows: usize, timestamps_us: Option<&[i64]>, rule: &SplitRule) -> Result<Splits> {
    rule.check()?;
    let count = u32::try_from(rows).map_err(|_| DataError::TooLarge {
        what: "rows",
        count: rows as u64,
    })?;
    if let (SplitRule::Time { .. }, None) = (rule, timestamps_us) {
        return Err(no_timestamps());
    }
    Ok(match (rule, timestamps_us) {
        (
            SplitRule::Time {
                validation_from_us,
                test_from_us,
            },
            Some(times),
        ) => by_time(times, *validation_from_us, test_from_us.unwrap_or(i64::MAX)),
        (
            SplitRule::Ratio {
                train,
                validation,
                shuffle_seed,
            },
            None,
        ) => by_ratio(count, *train, *validation, *shuffle_seed),
        (
            SplitRule::Ratio {
                train, validation, ..
            },
            Some(times),
        ) => {
            let mut sorted = times.to_vec();
            sorted.sort_unstable();
            let instant = |share: f64| {
                let index = (rows as f64 * share).round() as usize;
                sorted.get(index).copied().unwrap_or(i64::MAX)
            };
            by_time(times, instant(*train), instant(train + validation))
        }
        (SplitRule::Time { .. }, None) => return Err(no_timestamps()),
    })
}

fn by_time(times: &[i64], validation_from: i64, test_from: i64) -> Splits {
    let part = |range: std::ops::Range<i64>| -> Arc<[u32]> {
        (0u32..)
            .zip(times)
            .filter(|(_, time)| range.contains(time))
            .map(|(row, _)| row)
            .collect()
    };
    Splits {
        train: part(i64::MIN..validation_from),
        validation: part(validation_from..test_from),
        test: part(test_from..i64::MAX),
    }
}

fn by_ratio(count: u32, train: f64, validation: f64, shuffle_seed: Option<u64>) -> Splits {
    let cut = |share: f64| ((f64::from(count) * share).round() as u32).min(count);
    let (first, second) = (cut(train), cut(train + validation));
    let permutation = shuffle_seed.map(|seed| Permutation::new(count, seed, 0));
    let part = |range: std::ops::Range<u32>| -> Arc<[u32]> {
        match &permutation {
            None => range.collect(),
            Some(permutation) => {
                // Ascending, so that a pass in order reads memory forwards.
                let mut rows: Vec<u32> = range.map(|index| permutation.get(index)).collect();
                rows.sort_unstable();
                rows.into()
            }
        }
    };
    Splits {
        train: part(0..first),
        validation: part(first..second),
        test: part(second..count),
    }
}
