//! The batch: a step's time is a fixed part and a part that grows with its samples. Two sizes give both parts, and the memory
//! beside them; a third verifies. Without a second size the fixed part is estimated from what the device waits.

use super::{Knob, Proposal, Situation, one};
use crate::trial::{Outcome, Settings};
use flatout_core::message;
use flatout_diagnose::analysis::Device;
use flatout_telemetry::Phase;

pub const KNOB: Knob = Knob {
    name: "batch_size",
    keys: &["loader.batch_size"],
    propose,
};
const KEY: &str = "loader.batch_size";

/// The first larger batch that is tried.
const GROWTH: u64 = 4;
/// The largest step from a measured size to one that was not.
const LEAP: u64 = 16;
/// A batch that is within this of the best is as good, and the smallest of them is taken.
pub const AS_GOOD: f64 = 0.97;
/// Of the device's memory; the rest is for what the fit does not know of.
const MEMORY_SHARE: f64 = 0.9;
/// The part of a CPU's step that is taken to be fixed before a second size was measured.
const GUESSED_FIXED: f64 = 0.15;
/// An epoch keeps at least so many steps.
const STEPS_AN_EPOCH: u64 = 10;

/// One measured size.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    batch: f64,
    step_s: f64,
    memory: Option<f64>,
}

/// `value = fixed + slope × batch`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Line {
    fixed: f64,
    slope: f64,
}

impl Line {
    fn through(a: (f64, f64), b: (f64, f64)) -> Option<Self> {
        let slope = (b.1 - a.1) / (b.0 - a.0);
        (slope.is_finite()).then(|| Self {
            fixed: (a.1 - slope * a.0).max(0.0),
            slope: slope.max(0.0),
        })
    }

    fn at(self, batch: f64) -> f64 {
        self.fixed + self.slope * batch
    }
}

fn propose(situation: &Situation) -> Vec<Proposal> {
    let Some(now) = situation.batch() else {
        return Vec::new();
    };
    if situation.best.samples.is_none() && situation.settings.get(KEY).is_none() {
        return Vec::new();
    }
    let most = most(situation, now);
    let points = points(situation);
    let time = match points.as_slice() {
        [.., a, b] => Line::through((a.batch, a.step_s), (b.batch, b.step_s)),
        _ => estimated(situation, now),
    };
    let Some(time) = time else { return Vec::new() };
    let rate = |batch: u64| batch as f64 / time.at(batch as f64);
    let measured = points.len() > 1;
    let reach = if measured { now * LEAP } else { now * GROWTH };
    let highest = most.min(reach);
    let sizes =
        std::iter::successors(Some(now * 2), |batch| Some(batch * 2)).take_while(|batch| *batch <= highest);
    let sizes: Vec<u64> = sizes
        .filter(|batch| situation.limits.within(KEY, *batch))
        .collect();
    let Some(best) = sizes.iter().map(|batch| rate(*batch)).reduce(f64::max) else {
        return Vec::new();
    };
    let Some(batch) = sizes.into_iter().find(|batch| rate(*batch) >= best * AS_GOOD) else {
        return Vec::new();
    };
    let fixed = flatout_core::units::percent(time.fixed / time.at(now as f64));
    vec![Proposal {
        knob: KNOB.name,
        changes: one(KEY, batch),
        gain: rate(batch) / rate(now),
        why: message!(en: "{fixed} of a step does not depend on its samples", zh: "一步中有 {fixed} 的时间与样本数无关"),
        changes_numbers: true,
    }]
}

/// Trials that differ from the best in the batch only, by size.
fn points(situation: &Situation) -> Vec<Point> {
    let others = situation.settings.without(KEY);
    let mut points: Vec<Point> = situation
        .trials
        .iter()
        .filter(|done| done.settings.without(KEY) == others)
        .filter_map(|done| match &done.outcome {
            Outcome::Measured(measured) if measured.steps > 0 && !measured.cut => {
                let samples = measured
                    .samples
                    .or_else(|| set(&done.settings).map(|batch| batch * measured.steps))?;
                Some(Point {
                    batch: samples as f64 / measured.steps as f64,
                    step_s: measured.seconds / measured.steps as f64,
                    memory: measured.memory_bytes.map(|bytes| bytes as f64),
                })
            }
            _ => None,
        })
        .collect();
    points.sort_by(|a, b| a.batch.total_cmp(&b.batch));
    points.dedup_by(|a, b| (a.batch - b.batch).abs() < 0.5);
    points
}

fn set(settings: &Settings) -> Option<u64> {
    settings.get(KEY)?.parse().ok()
}

/// The largest batch that may be tried: within the memory by its fit, below one that did not fit, a part of the data.
fn most(situation: &Situation, now: u64) -> u64 {
    let by_data = situation
        .data_length()
        .map_or(u64::MAX, |length| (length / STEPS_AN_EPOCH).max(now));
    let asked = situation.limits.highest(KEY).unwrap_or(u64::MAX);
    let failed = situation
        .trials
        .iter()
        .filter(|done| matches!(done.outcome, Outcome::OutOfMemory { .. }));
    let below = failed
        .filter_map(|done| set(&done.settings))
        .map(|batch| batch.saturating_sub(1))
        .min()
        .unwrap_or(u64::MAX);
    let hurtful = situation
        .hurtful_batch
        .map_or(u64::MAX, |batch| batch.saturating_sub(1));
    by_data
        .min(hurtful)
        .min(asked)
        .min(below)
        .min(by_memory(situation).unwrap_or(u64::MAX))
}

fn by_memory(situation: &Situation) -> Option<u64> {
    if situation.analysis.device() != Device::Cuda {
        return None;
    }
    let total = situation.analysis.busiest_gpu()?.mem_total_bytes? * MEMORY_SHARE;
    let points: Vec<(f64, f64)> = points(situation)
        .iter()
        .filter_map(|point| Some((point.batch, point.memory?)))
        .collect();
    let line = match points.as_slice() {
        [.., a, b] => Line::through(*a, *b)?,
        // One size alone: all of it may grow with the batch.
        [one] => Line {
            fixed: 0.0,
            slope: one.1 / one.0,
        },
        [] => return None,
    };
    (line.slope > 0.0).then(|| ((total - line.fixed) / line.slope).max(1.0) as u64)
}

/// From the one size there is: on a GPU the fixed part is what the device waits for its host; on the CPU what the rule about
/// small batches found, else a modest guess that the next size will correct.
fn estimated(situation: &Situation, now: u64) -> Option<Line> {
    let step_s = situation.best.seconds / situation.best.steps.max(1) as f64;
    let window = situation.analysis.window.as_ref();
    let share = match (situation.analysis.device(), window) {
        (Device::Cuda, Some(window)) => situation.analysis.dispatch_idle_s()? / window.wall_s(),
        _ => match situation.expected(&[KEY]) {
            // The rule's gain is for four times the batch: 1 - 1/gain of the time goes, which is 3/4 of the fixed part.
            Some(gain) => (1.0 - 1.0 / gain) * 4.0 / 3.0,
            None => window.map_or(1.0, |window| window.share(Phase::Compute)) * GUESSED_FIXED,
        },
    };
    let fixed = share.clamp(0.0, 0.99) * step_s;
    Some(Line {
        fixed,
        slope: (step_s - fixed) / now as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sizes_give_both_parts() {
        let line = Line::through((64.0, 0.012), (256.0, 0.018)).unwrap();
        assert!((line.fixed - 0.010).abs() < 1e-12 && (line.at(1024.0) - 0.042).abs() < 1e-12);
        // Faster with more samples cannot be: noise, then, and no slope.
        assert_eq!(Line::through((64.0, 0.02), (128.0, 0.01)).unwrap().slope, 0.0);
        assert!(Line::through((64.0, 0.02), (64.0, 0.01)).is_none());
    }
}
