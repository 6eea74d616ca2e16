//! Mean 0 and variance 1, fitted on the training split only: what validation looks like must not leak into training.

use crate::load::policies::in_flag;
use flatout_core::{Message, message};
use serde::{Deserialize, Serialize};
use std::ops::Range;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Standardiser {
    pub mean: Vec<f32>,
    /// Never 0: a constant column keeps 1, so that it becomes 0 and not NaN.
    pub std: Vec<f32>,
}

impl Standardiser {
    /// Fits on single rows of a `[rows, width]` block. Missing values (NaN) do not count.
    pub fn fit(block: &[f32], width: usize, rows: &[u32]) -> Self {
        let mut moments = vec![Moments::default(); width];
        for &row in rows {
            add_row(&mut moments, &block[row as usize * width..][..width]);
        }
        Self::from_moments(&moments)
    }

    /// Fits on ranges of rows.
    pub fn fit_ranges(block: &[f32], width: usize, ranges: &[Range<u32>]) -> Self {
        let mut moments = vec![Moments::default(); width];
        if width > 0 {
            for range in ranges {
                let rows = &block[range.start as usize * width..range.end as usize * width];
                rows.chunks_exact(width)
                    .for_each(|row| add_row(&mut moments, row));
            }
        }
        Self::from_moments(&moments)
    }

    fn from_moments(moments: &[Moments]) -> Self {
        let (mean, std) = moments.iter().map(Moments::mean_and_std).unzip();
        Self { mean, std }
    }

    pub fn width(&self) -> usize {
        self.mean.len()
    }

    /// Missing values (NaN) become 0, the mean.
    pub fn apply(&self, block: &mut [f32]) {
        if self.width() == 0 {
            return;
        }
        let inverse: Vec<f32> = self.std.iter().map(|std| 1.0 / std).collect();
        for row in block.chunks_exact_mut(self.width()) {
            for ((value, mean), inverse) in row.iter_mut().zip(&self.mean).zip(&inverse) {
                let scaled = (*value - mean) * inverse;
                *value = if scaled.is_nan() { 0.0 } else { scaled };
            }
        }
    }
}

/// The columns of a `[rows, width]` block in which every value is missing (NaN).
pub fn columns_without_values(block: &[f32], width: usize) -> Vec<usize> {
    let mut empty: Vec<usize> = (0..width).collect();
    for row in block.chunks_exact(width.max(1)) {
        empty.retain(|&column| row[column].is_nan());
        // After the first row in nearly all data.
        if empty.is_empty() {
            break;
        }
    }
    empty
}

/// What a person should know of such columns.
pub fn say_without_values(block: &[f32], names: &[String]) -> Option<Message> {
    let empty = columns_without_values(block, names.len());
    let list: Vec<&str> = empty.iter().map(|&column| names[column].as_str()).collect();
    let (list, first) = (list.join(", "), in_flag(list.first()?, "ignore"));
    Some(message!(
        en: "no values in: {list}; a model cannot learn from an empty column, and `--column-type {first}` \
        ignores it",
        zh: "以下列没有任何值：{list}；无法从中学到东西，可用 `--column-type {first}` 忽略"
    ))
}

/// Sums around the first value seen, in f64: exact enough for prices of 10⁶ with a spread of 1.
#[derive(Clone, Copy, Default)]
struct Moments {
    origin: f64,
    count: f64,
    sum: f64,
    squares: f64,
}

#[inline]
fn add_row(moments: &mut [Moments], row: &[f32]) {
    for (moment, &value) in moments.iter_mut().zip(row) {
        if value.is_finite() {
            if moment.count == 0.0 {
                moment.origin = f64::from(value);
            }
            let distance = f64::from(value) - moment.origin;
            moment.count += 1.0;
            moment.sum += distance;
            moment.squares += distance * distance;
        }
    }
}

impl Moments {
    fn mean_and_std(&self) -> (f32, f32) {
        if self.count == 0.0 {
            return (0.0, 1.0);
        }
        let mean = self.sum / self.count;
        let variance = (self.squares / self.count - mean * mean).max(0.0);
        let centre = self.origin + mean;
        let std = variance.sqrt();
        // Relative to the size of the values: rounding alone must not become a spread.
        let constant = std <= 1e-7 * centre.abs().max(1e-30);
        (centre as f32, if constant { 1.0 } else { std as f32 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fits_the_training_rows_only() {
        let block = [1.0, 5.0, 3.0, 5.0, 1000.0, 5.0];
        let standardiser = Standardiser::fit(&block, 2, &[0, 1]);
        assert_eq!(standardiser.mean, [2.0, 5.0]);
        assert_eq!(standardiser.std, [1.0, 1.0]);
        assert_eq!(
            standardiser,
            Standardiser::fit_ranges(&block, 2, std::slice::from_ref(&(0..2)))
        );
        let mut block = block;
        standardiser.apply(&mut block);
        assert_eq!(block, [-1.0, 0.0, 1.0, 0.0, 998.0, 0.0]);
    }

    #[test]
    fn large_offsets_and_missing_values_keep_the_spread() {
        let block: Vec<f32> = vec![1e6, 1e6 + 2.0, f32::NAN, 1e6 + 4.0];
        let standardiser = Standardiser::fit(&block, 1, &[0, 1, 2, 3]);
        assert_eq!(standardiser.mean, [1e6 + 2.0]);
        assert!((standardiser.std[0] - 1.632_993).abs() < 1e-4);
        assert_eq!(Standardiser::fit(&[f32::NAN], 1, &[0]).std, [1.0]);
    }

    #[test]
    fn columns_in_which_all_is_missing_are_named() {
        let nan = f32::NAN;
        assert_eq!(columns_without_values(&[nan, 1.0, nan, nan, nan, nan], 3), [0, 2]);
        assert!(columns_without_values(&[1.0, 2.0, nan, nan], 2).is_empty());
        assert!(columns_without_values(&[], 0).is_empty());
        let names = ["a, b".to_owned(), "c".to_owned()];
        let said = say_without_values(&[nan, 1.0], &names).unwrap();
        assert!(
            said.en.contains("`--column-type '\"a, b\"=ignore'`"),
            "{}",
            said.en
        );
        assert!(say_without_values(&[0.0, 1.0], &names).is_none());
    }
}
