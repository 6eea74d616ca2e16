//! Promised gains compared with measured ones: `speeds-*.json` has the steps per second of each program and of its repaired version, as
//! `faults/lines/measure.py` measured them. A promise is kept if the measured gain lies within its interval, both ends widened by 25%.

use crate::Result;
use flatout_core::Gain;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// How much wider than promised a gain may be off.
const WIDENED: f64 = 1.25;
/// A repaired program that is hardly faster tells nothing about a promise.
const LEAST_GAIN: f64 = 1.05;
/// Two repairs do not remove more of the time than this.
const MOST_REMOVED: f64 = 0.95;

/// Steps per second, by program and script.
#[derive(Default)]
pub struct Speeds(Value);

impl Speeds {
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let value = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self(value))
    }

    /// How many times as fast the repaired program is.
    pub fn gain(&self, program: &str) -> Option<f64> {
        let speed = |script: &str| self.0.get(program)?.get(script)?.get("steps_per_s")?.as_f64();
        let (before, after) = (speed("train.py")?, speed("fixed.py")?);
        let gain = after / before;
        (gain.is_finite() && gain >= LEAST_GAIN).then_some(gain)
    }
}

/// Of a program with two faults both are repaired: what each takes of the time adds up.
pub fn together(gains: impl Iterator<Item = Gain>) -> Gain {
    let removed = |factor: f64| 1.0 - 1.0 / factor.max(1.0);
    let (low, high) = gains.fold((0.0, 0.0), |sum: (f64, f64), gain| {
        (sum.0 + removed(gain.low), sum.1 + removed(gain.high))
    });
    let factor = |share: f64| 1.0 / (1.0 - share.min(MOST_REMOVED));
    Gain::estimate(factor(low), factor(high))
}

pub fn kept(measured: f64, gain: Gain) -> bool {
    (gain.low / WIDENED..=gain.high * WIDENED).contains(&measured)
}

/// How many promises were kept.
#[derive(Debug, Default, PartialEq)]
pub struct Tally {
    kept: usize,
    promised: usize,
    without: usize,
    /// Upper over lower end, in the median.
    width: Option<f64>,
}

impl Tally {
    pub fn of(gains: impl Iterator<Item = (f64, Option<Gain>)>) -> Self {
        let mut tally = Self::default();
        let mut widths = Vec::new();
        for (measured, gain) in gains {
            let Some(gain) = gain else {
                tally.without += 1;
                continue;
            };
            tally.promised += 1;
            tally.kept += usize::from(kept(measured, gain));
            widths.push(gain.high / gain.low);
        }
        widths.sort_by(f64::total_cmp);
        tally.width = widths.get(widths.len() / 2).copied();
        tally
    }

    pub fn falls_short(&self, wanted: f64) -> bool {
        (self.kept as f64) < self.promised as f64 * wanted
    }

    pub fn line(&self) -> String {
        let percent = self.kept as f64 / self.promised.max(1) as f64 * 100.0;
        let width = self
            .width
            .map(|width| format!(", median width {width:.2}"))
            .unwrap_or_default();
        format!(
            "promised gain within 25% of its interval {}/{} ({percent:.0}%), {} without one{width}",
            self.kept, self.promised, self.without
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_may_be_off_by_a_quarter() {
        let gain = Gain::estimate(2.0, 3.0);
        assert!(kept(1.61, gain) && kept(3.74, gain));
        assert!(!kept(1.59, gain) && !kept(3.76, gain));
    }

    #[test]
    fn two_faults_add_up() {
        let gain = together([Gain::estimate(1.25, 2.0), Gain::estimate(1.0, 4.0)].into_iter());
        assert!(
            (gain.low - 1.25).abs() < 1e-9 && (gain.high - 20.0).abs() < 1e-6,
            "{gain:?}"
        );
    }

    #[test]
    fn counts_what_was_measured() {
        let speeds = Speeds(serde_json::json!({
            "a": {"train.py": {"steps_per_s": 2.0}, "fixed.py": {"steps_per_s": 5.0}},
            "same": {"train.py": {"steps_per_s": 2.0}, "fixed.py": {"steps_per_s": 2.0}},
            "half": {"train.py": {"steps_per_s": 2.0}},
            "none": {"train.py": {"steps_per_s": null}, "fixed.py": {"steps_per_s": 1.0}},
        }));
        let gains = ["a", "same", "half", "none", "absent"].map(|name| speeds.gain(name));
        assert_eq!(gains, [Some(2.5), None, None, None, None]);
        let tally = Tally::of(
            [
                (2.5, Some(Gain::estimate(2.0, 3.0))),
                (9.0, Some(Gain::estimate(1.0, 2.0))),
                (2.0, None),
            ]
            .into_iter(),
        );
        assert_eq!((tally.kept, tally.promised, tally.without), (1, 2, 1));
        assert!(tally.falls_short(0.8) && !tally.falls_short(0.5));
    }
}
