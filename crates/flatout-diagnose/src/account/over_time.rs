//! What the training thread did as the run went on: the exact phase times of each stretch, split over the samples taken in it.

use super::activity::{self, Activity};
use super::frame::Frame;
use flatout_record::{Phase, RunData, StackTick};
use serde::Serialize;
use std::collections::BTreeMap;

/// A stretch is never shorter than this, and a run has at most this many.
const SHORTEST_S: f64 = 5.0;
const MOST: usize = 60;

/// Equal stretches of the run, each with the time of every activity.
#[derive(Clone, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct OverTime {
    pub start_s: f64,
    /// Length of a stretch.
    pub width_s: f64,
    pub stretches: Vec<Stretch>,
}

#[derive(Clone, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct Stretch {
    pub steps: u64,
    /// Shares of the stretch's time, the largest first; they add up to 1 where anything is known.
    pub shares: Vec<(Activity, f64)>,
}

type Split = BTreeMap<Phase, BTreeMap<Activity, f64>>;

impl OverTime {
    /// `None` without steps, or for a run of one stretch.
    pub fn new(data: &RunData) -> Option<Self> {
        // The tick of the first step begins before it: only what its phases have is known.
        let first = data.steps.iter().position(|tick| tick.steps > 0)?;
        let known = &data.steps[first..];
        let ticks = || known.iter().filter(|tick| tick.t.is_finite() && tick.dt > 0.0);
        let start_s = ticks().map(|tick| tick.t - tick.dt).reduce(f64::min)?.max(0.0);
        let end_s = ticks().map(|tick| tick.t).reduce(f64::max)?;
        let count = (((end_s - start_s) / SHORTEST_S) as usize).min(MOST);
        if count < 2 {
            return None;
        }
        let width_s = (end_s - start_s) / count as f64;
        let splits = splits(data);
        let mut seconds: Vec<BTreeMap<Activity, f64>> = vec![BTreeMap::new(); count];
        let mut steps = vec![0; count];
        for (index, tick) in ticks().enumerate() {
            let at = ((tick.t - tick.dt / 2.0 - start_s) / width_s).max(0.0) as usize;
            let at = at.min(count - 1);
            steps[at] += tick.steps;
            let mut rest = tick.dt;
            for phase in Phase::ALL {
                let spent = tick.phase_ms(phase) / 1e3;
                rest -= spent;
                spread(&mut seconds[at], split_at(&splits, tick.t, phase), phase, spent);
            }
            if rest > 0.0 && index > 0 {
                *seconds[at].entry(Activity::Unexplained).or_default() += rest;
            }
        }
        let stretches = seconds.into_iter().zip(steps).map(|(sums, steps)| {
            let all: f64 = sums.values().sum();
            let mut shares: Vec<(Activity, f64)> = sums
                .into_iter()
                .filter(|(_, spent)| *spent > 0.0)
                .map(|(activity, spent)| (activity, spent / all))
                .collect();
            shares.sort_by(|a, b| b.1.total_cmp(&a.1));
            Stretch { steps, shares }
        });
        Some(Self {
            start_s,
            width_s,
            stretches: stretches.collect(),
        })
    }
}

/// Of each line of stacks, its end and how its samples split the phases.
fn splits(data: &RunData) -> Vec<(f64, Split)> {
    let split = |tick: &StackTick| {
        let mut split = Split::new();
        for stack in tick.stacks.iter().filter(|stack| !stack.worker) {
            let frames: Vec<Frame> = stack
                .frames
                .iter()
                .filter_map(|text| Frame::parse(text))
                .collect();
            if let Some(phase) = stack.phase {
                let sums = split.entry(phase).or_default();
                *sums.entry(activity::of(stack, &frames)).or_default() += stack.time_ms();
            }
        }
        (tick.t, split)
    };
    data.stacks.iter().map(split).collect()
}

/// The samples of a phase that were taken around an instant, or else nearest to it.
fn split_at(splits: &[(f64, Split)], t: f64, phase: Phase) -> Option<&BTreeMap<Activity, f64>> {
    let with = || splits.iter().filter(|(_, split)| split.contains_key(&phase));
    let found = with().find(|(end, _)| *end >= t).or_else(|| with().next_back());
    found.and_then(|(_, split)| split.get(&phase))
}

fn spread(
    sums: &mut BTreeMap<Activity, f64>,
    sampled: Option<&BTreeMap<Activity, f64>>,
    phase: Phase,
    seconds: f64,
) {
    if seconds <= 0.0 {
        return;
    }
    let all: f64 = sampled.map_or(0.0, |sampled| sampled.values().sum());
    let Some(sampled) = sampled.filter(|_| all > 0.0) else {
        *sums.entry(activity::of_phase(phase)).or_default() += seconds;
        return;
    };
    for (activity, ms) in sampled {
        *sums.entry(*activity).or_default() += seconds * ms / all;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Build;
    use flatout_record::StackCount;

    #[test]
    fn every_stretch_adds_up() {
        let mut data = Build::steady(40).done();
        data.stacks.push(StackTick {
            t: 20.0,
            stacks: vec![StackCount {
                frames: vec!["train (train.py:9)".into()],
                count: 9,
                ms: 90.0,
                phase: Some(Phase::Compute),
                gil: true,
                ..StackCount::default()
            }],
            descheduled_ms: None,
        });
        let found = OverTime::new(&data).unwrap();
        assert!(found.stretches.len() >= 6, "{}", found.stretches.len());
        for stretch in &found.stretches {
            let sum: f64 = stretch.shares.iter().map(|(_, share)| share).sum();
            assert!((sum - 1.0).abs() < 1e-9, "{stretch:?}");
            assert!(
                stretch
                    .shares
                    .iter()
                    .any(|(activity, _)| *activity == Activity::Python)
            );
        }
    }

    #[test]
    fn no_steps_no_stretches() {
        assert!(OverTime::new(&RunData::default()).is_none());
    }
}
