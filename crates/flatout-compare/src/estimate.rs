//! A mean with the interval that holds it.

use flatout_core::stats::{Interval, mean};
use serde::Serialize;

/// Time is cut into this many blocks: each long enough to contain an evaluation or two, enough of them for an interval.
pub const BLOCKS: usize = 20;
/// Fewer blocks give no interval worth showing.
pub const BLOCKS_NEEDED: usize = 4;

/// A measured value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    pub mean: f64,
    /// 95% interval of the mean; absent if there is too little data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
}

impl Estimate {
    /// Half the interval's width.
    pub fn half(&self) -> Option<f64> {
        self.interval.map(|(low, high)| (high - low) / 2.0)
    }

    /// `ratio` is Σpart / Σwhole of something that is not negative; the interval comes from [`BLOCKS`] stretches of the pairs.
    /// Neighbors are not independent (an evaluation falls into one of them), blocks nearly are. With residuals
    /// r = part − ratio · whole over the blocks, the half width is t₀.₉₅ · s(r) / √n / mean(whole).
    pub fn of_quotient(ratio: f64, pairs: &[(f64, f64)]) -> Self {
        Self {
            mean: ratio,
            interval: quotient_interval(ratio, pairs),
        }
    }

    /// The mean of values that are independent and not negative.
    pub fn of_values(values: &[f64]) -> Self {
        let enough = values.len() >= BLOCKS_NEEDED;
        let interval = Interval::of(values).filter(|_| enough);
        Self {
            mean: mean(values),
            interval: interval.map(|interval| (interval.low.max(0.0), interval.high)),
        }
    }
}

fn quotient_interval(ratio: f64, pairs: &[(f64, f64)]) -> Option<(f64, f64)> {
    let size = pairs.len().div_ceil(BLOCKS).max(1);
    let (mut residuals, mut wholes) = (Vec::new(), Vec::new());
    for block in pairs.chunks_exact(size) {
        let part: f64 = block.iter().map(|(part, _)| part).sum();
        let whole: f64 = block.iter().map(|(_, whole)| whole).sum();
        residuals.push(part - ratio * whole);
        wholes.push(whole);
    }
    let usual = mean(&wholes);
    if residuals.len() < BLOCKS_NEEDED || usual.is_nan() || usual <= 0.0 {
        return None;
    }
    let interval = Interval::of(&residuals)?;
    let half = (interval.high - interval.low) / 2.0 / usual;
    Some(((ratio - half).max(0.0), ratio + half))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotient_of_even_blocks_is_exact() {
        let pairs = vec![(32.0, 0.1); 40];
        let exact = Estimate::of_quotient(320.0, &pairs);
        let (low, high) = exact.interval.unwrap();
        assert!(low <= 320.0 + 1e-9 && high >= 320.0 - 1e-9 && high - low < 1e-6);
        let uneven: Vec<(f64, f64)> = (0..40)
            .map(|at| (32.0, if at % 7 == 0 { 0.2 } else { 0.1 }))
            .collect();
        assert!(Estimate::of_quotient(280.0, &uneven).half().unwrap() > 1.0);
        assert_eq!(Estimate::of_quotient(320.0, &pairs[..3]).interval, None);
    }

    #[test]
    fn few_values_have_no_interval() {
        assert_eq!(Estimate::of_values(&[1.0, 2.0, 3.0]).interval, None);
        let (low, high) = Estimate::of_values(&[1.0, 1.1, 0.9, 1.0]).interval.unwrap();
        assert!(low > 0.8 && high < 1.2);
    }
}
