//! Dips: stretches in which utilisation falls well below its level and comes back. Regular ones tell of evaluation, checkpoints or
//! a loader that cannot keep up, so their period is said, but only when it is one.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The level is the upper quartile of this much time before: dips may fill up to three quarters of it without lowering it.
const LEVEL_WINDOW_S: f64 = 300.0;
/// In quarters.
const LEVEL_QUARTILE: u32 = 3;
/// The window's values are a byte each; at 20 Hz it holds all 300 s.
const MOST_VALUES: usize = 6000;
const FEWEST_VALUES: usize = 5;
/// A level below this is a GPU at rest; what falls from it is no dip.
const LOWEST_LEVEL: f64 = 20.0;
/// A dip begins this far below the level, in points and as a share of it, and ends this close to it.
const FALL_POINTS: f64 = 20.0;
const FALL_RATIO: f64 = 0.75;
const RETURN_RATIO: f64 = 0.9;
/// A period is said when this share of the gaps lies within this distance of their median.
const REGULAR_SHARE: f64 = 0.75;
const REGULAR_DISTANCE: f64 = 0.25;
const FEWEST_GAPS: usize = 3;
const MOST_GAPS: usize = 512;

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Dips {
    pub count: u64,
    /// From the beginning of one to the beginning of the next, when they come regularly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period_s: Option<f64>,
    /// Mean length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length_s: Option<f64>,
    /// Mean of their lowest values, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<f64>,
}

#[derive(Clone, Debug)]
pub struct DipDetector {
    interval_s: f64,
    window: VecDeque<u8>,
    level: Level,
    current: Option<Dip>,
    count: u64,
    length_s: f64,
    depth: f64,
    last_start: Option<f64>,
    gaps: VecDeque<f64>,
}

#[derive(Clone, Copy, Debug)]
struct Dip {
    start: f64,
    level: f64,
    lowest: f64,
}

impl DipDetector {
    pub fn new(interval_s: f64) -> Self {
        Self {
            interval_s,
            window: VecDeque::new(),
            level: Level::default(),
            current: None,
            count: 0,
            length_s: 0.0,
            depth: 0.0,
            last_start: None,
            gaps: VecDeque::new(),
        }
    }

    /// `utilisation` is 0 to 1; `t` the end of the time it stands for, `seconds` its length.
    pub fn add(&mut self, t: f64, seconds: f64, utilisation: f64) {
        let points = (utilisation * 100.0).clamp(0.0, 100.0);
        let start = t - seconds;
        match (self.current, self.level.points()) {
            (Some(dip), _) if points >= dip.level * RETURN_RATIO => self.close(dip, start),
            // The level itself has come down: the work changed or ended, which is no dip.
            (Some(_), Some(level)) if points >= level * RETURN_RATIO => self.current = None,
            (Some(dip), _) => {
                self.current = Some(Dip {
                    lowest: dip.lowest.min(points),
                    ..dip
                })
            }
            (None, Some(level)) if is_fall(points, level) => {
                self.current = Some(Dip {
                    start,
                    level,
                    lowest: points,
                });
            }
            (None, _) => {}
        }
        self.remember(points);
    }

    pub fn dips(&self) -> Dips {
        let mean = |sum: f64| (self.count > 0).then(|| sum / self.count as f64);
        Dips {
            count: self.count,
            period_s: self.period(),
            length_s: mean(self.length_s),
            depth: mean(self.depth / 100.0),
        }
    }

    fn close(&mut self, dip: Dip, end: f64) {
        self.current = None;
        self.count += 1;
        self.length_s += end - dip.start;
        self.depth += dip.lowest;
        if let Some(last) = self.last_start.replace(dip.start) {
            if self.gaps.len() == MOST_GAPS {
                self.gaps.pop_front();
            }
            self.gaps.push_back(dip.start - last);
        }
    }

    fn remember(&mut self, points: f64) {
        let most = (LEVEL_WINDOW_S / self.interval_s).clamp(30.0, MOST_VALUES as f64) as usize;
        if self.window.len() >= most
            && let Some(oldest) = self.window.pop_front()
        {
            self.level.remove(oldest);
        }
        let point = (points + 0.5) as u8;
        self.window.push_back(point);
        self.level.add(point);
    }

    fn period(&self) -> Option<f64> {
        if self.gaps.len() < FEWEST_GAPS {
            return None;
        }
        let mut gaps: Vec<f64> = self.gaps.iter().copied().collect();
        gaps.sort_by(f64::total_cmp);
        let median = flatout_core::stats::quantile(&gaps, 0.5);
        // A quarter of a tick beside: a period that is no whole number of ticks shows as two neighbouring gaps.
        let distance = REGULAR_DISTANCE * (median + self.interval_s);
        let near = gaps
            .iter()
            .filter(|gap| (**gap - median).abs() <= distance)
            .count();
        (near as f64 >= REGULAR_SHARE * gaps.len() as f64).then_some(median)
    }
}

/// The upper quartile of whole points that come and go: it moves little from value to value, so it is followed and not searched for.
#[derive(Clone, Debug)]
struct Level {
    counts: [u32; 101],
    total: u32,
    at: usize,
    /// Values below `at`.
    below: u32,
}

impl Default for Level {
    fn default() -> Self {
        Self {
            counts: [0; 101],
            total: 0,
            at: 0,
            below: 0,
        }
    }
}

impl Level {
    fn add(&mut self, point: u8) {
        let point = usize::from(point.min(100));
        self.counts[point] += 1;
        self.total += 1;
        self.below += u32::from(point < self.at);
        self.follow();
    }

    fn remove(&mut self, point: u8) {
        let point = usize::from(point.min(100));
        self.counts[point] -= 1;
        self.total -= 1;
        self.below -= u32::from(point < self.at);
        self.follow();
    }

    fn follow(&mut self) {
        let target = (self.total * LEVEL_QUARTILE).div_ceil(4);
        while self.below >= target && self.at > 0 {
            self.at -= 1;
            self.below -= self.counts[self.at];
        }
        while self.at < 100 && self.below + self.counts[self.at] < target {
            self.below += self.counts[self.at];
            self.at += 1;
        }
    }

    fn points(&self) -> Option<f64> {
        (self.total as usize >= FEWEST_VALUES).then_some(self.at as f64)
    }
}

fn is_fall(points: f64, level: f64) -> bool {
    level >= LOWEST_LEVEL && points < level - FALL_POINTS && points < level * FALL_RATIO
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: impl IntoIterator<Item = f64>) -> Dips {
        let mut detector = DipDetector::new(1.0);
        for (index, value) in values.into_iter().enumerate() {
            detector.add(index as f64 + 1.0, 1.0, value);
        }
        detector.dips()
    }

    #[test]
    fn regular_evaluation_is_counted_with_its_period() {
        let dips = of((0..600).map(|second| if second % 60 >= 54 { 0.05 } else { 0.97 }));
        assert_eq!(
            (dips.count, dips.period_s, dips.length_s),
            (9, Some(60.0), Some(6.0))
        );
        assert!((dips.depth.unwrap() - 0.05).abs() < 1e-9);
    }

    #[test]
    fn starvation_every_other_second_has_a_period() {
        let dips = of((0..100).map(|second| if second % 2 == 0 { 0.95 } else { 0.1 }));
        assert!(dips.count > 40 && dips.period_s == Some(2.0), "{dips:?}");
    }

    #[test]
    fn a_period_between_ticks_is_found() {
        let dips = of((0..200).map(|second| if f64::from(second) % 7.5 < 1.0 { 0.0 } else { 0.9 }));
        assert!(
            dips.period_s.is_some_and(|period| (7.0..=8.0).contains(&period)),
            "{dips:?}"
        );
    }

    #[test]
    fn steady_idle_beginning_and_ending_are_no_dips() {
        assert_eq!(of(vec![0.97; 300]).count, 0);
        assert_eq!(of(vec![0.0; 300]).count, 0);
        assert_eq!(
            of((0..300).map(|second| if second < 40 { 0.0 } else { 0.95 })).count,
            0
        );
        assert_eq!(
            of((0..900).map(|second| if second < 300 { 0.95 } else { 0.0 })).count,
            0
        );
        assert_eq!(
            of((0..300).map(|second| 0.9 - f64::from(second % 10) / 100.0)).count,
            0
        );
    }

    #[test]
    fn irregular_dips_have_no_period() {
        let at = [20, 23, 61, 64, 110, 180, 184, 260];
        let dips = of((0..300).map(|second| if at.contains(&second) { 0.0 } else { 0.95 }));
        assert_eq!((dips.count, dips.period_s), (8, None));
    }

    proptest! {
        #[test]
        fn the_level_is_the_upper_quartile(points in prop::collection::vec(0u8..=100, 1..300), window in 1usize..60) {
            let mut level = Level::default();
            for (index, point) in points.iter().enumerate() {
                if index >= window {
                    level.remove(points[index - window]);
                }
                level.add(*point);
                let mut sorted = points[(index + 1).saturating_sub(window)..=index].to_vec();
                sorted.sort_unstable();
                let expected = sorted[(sorted.len() * 3).div_ceil(4) - 1];
                prop_assert_eq!(level.at, usize::from(expected));
            }
        }

        #[test]
        fn no_input_breaks_it(values in prop::collection::vec((0.0f64..10.0, -1.0f64..2.0), 0..400)) {
            let mut detector = DipDetector::new(0.05);
            let mut t = 0.0;
            for (seconds, value) in values {
                t += seconds;
                detector.add(t, seconds, value);
            }
            let dips = detector.dips();
            prop_assert!(dips.length_s.is_none_or(|length| length >= 0.0));
        }
    }
}
