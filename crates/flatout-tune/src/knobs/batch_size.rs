//! The batch: a step's time is a fixed part and a part that grows with its samples. Two small sizes give both parts, and the memory
//! beside them; a trial of the size they predict verifies.

use super::cost::{Cost, Line, points};
use super::{Knob, Proposal, Situation, loader, one};
use crate::trial::{Outcome, Settings};
use flatout_core::message;
use flatout_diagnose::analysis::Device;
use std::collections::BTreeSet;

pub const KNOB: Knob = Knob {
    name: "batch_size",
    keys: &["loader.batch_size"],
    propose,
    variants: |_| Vec::new(),
};
const KEY: &str = "loader.batch_size";

/// How far beyond the present size: with one size, with others taken beside it, and with two that were tried.
const GROWTH: [u64; 3] = [4, 8, 16];
/// A batch that is within this of the best is as good, and the smallest of them is taken.
pub const AS_GOOD: f64 = 0.97;
/// Of the device's memory; the rest is for what the fit does not know of.
const MEMORY_SHARE: f64 = 0.9;
/// A batch whose worth nothing tells is tried after what promises more.
const UNKNOWN_WORTH: f64 = 1.05;
/// An epoch keeps at least so many steps.
const STEPS_AN_EPOCH: u64 = 10;

fn propose(situation: &Situation) -> Vec<Proposal> {
    let Some(now) = situation.batch() else {
        return Vec::new();
    };
    if situation.best.samples.is_none() && situation.settings.get(KEY).is_none() {
        return Vec::new();
    }
    let Some(cost) = Cost::of(situation) else {
        return Vec::new();
    };
    let highest = most(situation, now).min(now.saturating_mul(growth(situation)));
    let sizes = std::iter::successors(now.checked_mul(2), |batch| batch.checked_mul(2))
        .take_while(|batch| *batch <= highest)
        .filter(|batch| situation.limits.within(KEY, *batch));
    let workers = [vec![situation.workers()], loader::counts(situation, &cost)].concat();
    let parts = cost.batches_a_step(now);
    let choices: Vec<(u64, u64, f64)> = sizes.map(|batch| fed(&cost, batch, parts, &workers)).collect();
    let Some(best) = choices.iter().map(|(_, _, gain)| *gain).reduce(f64::max) else {
        return Vec::new();
    };
    let Some((batch, workers, gain)) = choices.into_iter().find(|(_, _, gain)| *gain >= best * AS_GOOD)
    else {
        return Vec::new();
    };
    let mut changes = one(KEY, batch);
    if workers != situation.workers() {
        changes = changes.with(&loader::workers(situation, &cost, workers));
    } else if workers > 0 {
        changes = changes.with(&loader::together(situation));
    }
    let fixed = flatout_core::units::percent(cost.fixed_share());
    // One size alone does not tell how a step grows with its samples.
    let known = !cost.is_guess();
    vec![Proposal {
        knob: KNOB.name,
        changes,
        gain: (known && cost.tells(workers)).then_some(gain),
        worth: if known { gain } else { UNKNOWN_WORTH },
        why: message!(en: "{fixed} of each step does not depend on the number of samples", zh: "一步中有 {fixed} 的时间与样本数无关"),
        changes_numbers: true,
    }]
}

/// A larger batch, of which a step takes so many, may need more workers: the first of these that is within 3% of the best of them.
fn fed(cost: &Cost, batch: u64, parts: f64, workers: &[u64]) -> (u64, u64, f64) {
    let gain = |count: u64| cost.gain(batch as f64 * parts, count);
    let best = workers.iter().map(|count| gain(*count)).fold(0.0, f64::max);
    let chosen = workers.iter().find(|count| gain(**count) >= best * AS_GOOD);
    let count = chosen.copied().unwrap_or_default();
    (batch, count, gain(count))
}

/// Two batches that were tried carry further than one with sizes beside it, and that further than one alone.
fn growth(situation: &Situation) -> u64 {
    let measured = situation
        .trials
        .iter()
        .filter_map(|done| Some((set(&done.settings), !done.outcome.measured()?.sizes.is_empty())));
    let (tried, taken): (BTreeSet<Option<u64>>, Vec<bool>) = measured.unzip();
    match (tried.len(), taken.contains(&true)) {
        (0 | 1, false) => GROWTH[0],
        (0 | 1, true) => GROWTH[1],
        _ => GROWTH[2],
    }
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

/// What the memory holds by the fit through the two largest sizes.
fn by_memory(situation: &Situation) -> Option<u64> {
    let on_gpu = situation.analysis.device() == Device::Cuda;
    let total = if on_gpu {
        situation.analysis.busiest_gpu()?.mem_total_bytes?
    } else {
        situation.machine.memory_bytes? as f64
    };
    let points: Vec<(f64, f64)> = points(situation)
        .iter()
        .filter_map(|point| Some((point.batch, point.memory?)))
        .collect();
    let line = match points.as_slice() {
        [.., a, b] => Line::through(*a, *b)?,
        // One size alone: on a GPU all of it may grow with the batch; of a process most is the program itself.
        [one] if on_gpu => Line {
            fixed: 0.0,
            slope: one.1 / one.0,
        },
        _ => return None,
    };
    (line.slope > 0.0).then(|| ((total * MEMORY_SHARE - line.fixed) / line.slope).max(1.0) as u64)
}
