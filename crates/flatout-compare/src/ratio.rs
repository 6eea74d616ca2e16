//! Faster, slower, or noise.

use crate::Estimate;

/// The second of two measurements by the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    pub factor: f64,
    /// 95% interval; absent where one of the measurements has none.
    pub interval: Option<(f64, f64)>,
}

impl Ratio {
    /// `None` where the first is not above 0. The relative errors of a quotient add up squared; on the logarithm the interval stays above 0:
    /// factor · exp(± √((a/A)² + (b/B)²)) with the half widths a and b of the means A and B.
    pub fn between(first: impl Into<Estimate>, second: impl Into<Estimate>) -> Option<Self> {
        let (first, second) = (first.into(), second.into());
        if first.mean.is_nan() || first.mean <= 0.0 {
            return None;
        }
        let factor = second.mean / first.mean;
        let interval = first.half().zip(second.half()).and_then(|(a, b)| {
            let relative = (a / first.mean).hypot(b / second.mean);
            let known = relative.is_finite() && factor > 0.0;
            known.then(|| (factor * (-relative).exp(), factor * relative.exp()))
        });
        Some(Self { factor, interval })
    }

    /// Above 1 beyond noise, and at least this factor.
    pub fn is_faster_by(&self, least: f64) -> bool {
        self.interval.is_some_and(|(low, _)| low > 1.0) && self.factor >= least
    }

    pub fn is_faster(&self) -> bool {
        self.is_faster_by(1.0)
    }

    /// Below 1 beyond noise, and by more than this share.
    pub fn is_slower_by(&self, share: f64) -> bool {
        self.interval.is_some_and(|(_, high)| high < 1.0) && 1.0 - self.factor > share
    }

    pub fn is_slower(&self) -> bool {
        self.is_slower_by(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(mean: f64, half: f64) -> Estimate {
        Estimate {
            mean,
            interval: Some((mean - half, mean + half)),
        }
    }

    fn ratio(first: (f64, f64), second: (f64, f64)) -> Ratio {
        Ratio::between(estimate(first.0, first.1), estimate(second.0, second.1)).unwrap()
    }

    #[test]
    fn faster_is_an_interval_above_one() {
        assert!(ratio((100.0, 5.0), (120.0, 5.0)).is_faster());
        assert!(ratio((100.0, 5.0), (80.0, 5.0)).is_slower());
        let noise = ratio((100.0, 5.0), (104.0, 5.0));
        assert!(!noise.is_faster() && !noise.is_slower());
        let (low, high) = ratio((100.0, 1.0), (490.0, 10.0)).interval.unwrap();
        assert!(low < 4.9 && high > 4.9 && high - low < 0.3);
    }

    #[test]
    fn limits_apply_to_the_ratio() {
        let little = ratio((100.0, 0.1), (101.0, 0.1));
        assert!(little.is_faster() && !little.is_faster_by(1.02));
        let lost = ratio((100.0, 0.1), (97.5, 0.1));
        assert!(lost.is_slower_by(0.02) && !lost.is_slower_by(0.03));
    }

    #[test]
    fn without_an_interval_there_is_no_verdict() {
        let bare = Estimate {
            mean: 900.0,
            interval: None,
        };
        let ratio = Ratio::between(estimate(100.0, 1.0), bare).unwrap();
        assert!(!ratio.is_faster() && !ratio.is_slower() && ratio.factor > 8.9);
        assert_eq!(Ratio::between(estimate(0.0, 0.0), bare), None);
    }
}
