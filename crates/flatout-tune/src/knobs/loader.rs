//! The loader: workers, prefetching, persistence and pinning, proposed together because they interact.

use super::cost::Cost;
use super::{AS_GOOD, Knob, Proposal, Situation};
use crate::limits::Limits;
use crate::machine::Machine;
use crate::trial::Settings;
use flatout_core::message;
use flatout_diagnose::advice;
use flatout_diagnose::analysis::loaders::Loader;
use flatout_diagnose::analysis::window::Window;
use flatout_telemetry::Phase;

pub const KNOB: Knob = Knob {
    name: "loader",
    keys: &[
        WORKERS,
        "loader.prefetch_factor",
        "loader.persistent_workers",
        PINNED,
    ],
    propose,
    variants: |_| Vec::new(),
};

const WORKERS: &str = "loader.num_workers";
/// Below this wait there is nothing to gain that could be measured.
const WAIT_SHARE: f64 = 0.03;
/// Above this one, other workers are looked at once for each batch size, whatever is predicted: how the loader and the batch act on
/// each other is more than the costs know.
const LOOK_SHARE: f64 = 0.15;
const PINNED: &str = "loader.pin_memory";
/// Of the waiting, what a longer queue may save: it only evens out.
const EVENED: f64 = 0.25;
/// Of the copying, what pinned memory saves.
const COPIED: f64 = 0.5;
/// After everything that promises more.
const LOOK_WORTH: f64 = 1.03;

fn propose(situation: &Situation) -> Vec<Proposal> {
    if situation.analysis.train_loader().is_none() {
        return unseen(situation);
    }
    let (Some(loader), Some(window)) = (
        situation.analysis.train_loader(),
        situation.analysis.window.as_ref(),
    ) else {
        return Vec::new();
    };
    let (Some(cost), Some(batch)) = (Cost::of(situation), situation.batch()) else {
        return Vec::new();
    };
    let usable = situation.machine.cpus.count() as u64;
    let now = situation.workers();
    let share = cost.wait_share();
    if share < WAIT_SHARE && now <= usable {
        return pinned(situation, loader, window, &cost).into_iter().collect();
    }
    let mut all: Vec<Proposal> = Vec::new();
    for count in counts(situation, &cost) {
        let changes = workers(situation, &cost, count);
        let one = proposal(changes, cost.gain(batch as f64, count), share);
        all.push(Proposal {
            gain: one.gain.filter(|_| cost.tells(count)),
            ..one
        });
    }
    // Of numbers that promise the same, the fewest workers come first.
    let most = all.iter().map(|one| one.worth).fold(0.0, f64::max);
    if let Some(fewest) = all.iter_mut().find(|one| one.worth >= most * AS_GOOD) {
        fewest.worth = most;
    }
    if share >= LOOK_SHARE
        && !cost.is_fed()
        && !looked(situation)
        && let Some(best) = all.iter_mut().rev().max_by(|a, b| a.worth.total_cmp(&b.worth))
    {
        best.worth = best.worth.max(LOOK_WORTH);
    }
    // A longer queue makes no more batches.
    if now > 0 && cost.is_supplied() && situation.allows("loader.prefetch_factor") {
        let factor = situation
            .number("loader.prefetch_factor")
            .or(loader.prefetch_factor)
            .unwrap_or(2);
        if factor < 8 && situation.limits.within("loader.prefetch_factor", factor * 2) {
            let mut changes = together(situation, loader);
            changes.set("loader.prefetch_factor", factor * 2);
            let saved = if changes.get(PINNED).is_some() {
                by_pinning(window, &cost)
            } else {
                share * EVENED
            };
            all.push(proposal(changes, 1.0 / (1.0 - saved), share));
        }
    }
    all.extend(pinned(situation, loader, window, &cost));
    all
}

/// Whether another number of workers was tried with the batch there is now.
fn looked(situation: &Situation) -> bool {
    let same = |a: &Settings, key: &str| a.get(key) == situation.settings.get(key);
    let mut trials = situation.trials.iter();
    trials.any(|done| same(&done.settings, "loader.batch_size") && !same(&done.settings, WORKERS))
}

/// Workers of a program whose loader nobody sees, by its own argument: twice as many, or half. Nothing tells what they are worth.
fn unseen(situation: &Situation) -> Vec<Proposal> {
    let Some(now) = situation.number(WORKERS).filter(|_| situation.allows(WORKERS)) else {
        return Vec::new();
    };
    let usable = situation.machine.cpus.count() as u64;
    let counts = [(now * 2).max(1), now / 2];
    let sensible =
        |count: &u64| *count != now && *count <= usable && situation.limits.within(WORKERS, *count);
    let each = counts.into_iter().filter(sensible).map(|count| Proposal {
        knob: KNOB.name,
        changes: super::one(WORKERS, count),
        gain: None,
        worth: LOOK_WORTH,
        why: message!(en: "the program's own loading cannot be seen", zh: "看不到程序自己的数据加载过程"),
        changes_numbers: false,
    });
    each.collect()
}

/// Each is a process with batches of its own.
const MOST_FED: u64 = 32;

/// Numbers of workers that some steps of a trial are fed by, each with the threads that the steps may have beside them.
pub fn feeding(limits: &Limits, machine: &Machine) -> Vec<(u64, Option<u64>)> {
    let usable = machine.cpus.count() as u64;
    let most = limits
        .highest(WORKERS)
        .unwrap_or(usable)
        .min(usable)
        .min(MOST_FED);
    let mut counts = vec![0, 1, most / 2, most];
    counts.sort_unstable();
    counts.retain(|count| limits.allows(WORKERS) && limits.within(WORKERS, *count));
    counts.dedup();
    let beside = |count: u64| usable.saturating_sub(count).max(1);
    let threads = |count: u64| (count > 0 && limits.allows("threads.torch")).then(|| beside(count));
    counts.into_iter().map(|count| (count, threads(count))).collect()
}

/// Numbers of workers worth a trial, other than the present one.
pub fn counts(situation: &Situation, cost: &Cost) -> Vec<u64> {
    let Some(loader) = situation
        .analysis
        .train_loader()
        .filter(|_| situation.allows(WORKERS))
    else {
        return Vec::new();
    };
    let usable = situation.machine.cpus.count() as u64;
    let now = situation.workers();
    let asked = situation.limits.highest(WORKERS).unwrap_or(0);
    let suggested = advice::workers(situation.analysis, loader).unwrap_or(1);
    let mut counts = vec![
        suggested,
        usable.saturating_sub(1),
        usable,
        usable / 2,
        now * 2,
        now / 2,
        asked,
        0,
    ];
    counts.retain(|count| *count != now && *count <= usable && situation.limits.within(WORKERS, *count));
    counts.retain(|count| !cost.is_unknown(*count));
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// So many workers, and what goes along with them; on the CPU, fewer threads for the steps.
pub fn workers(situation: &Situation, cost: &Cost, count: u64) -> Settings {
    let mut changes = match situation.analysis.train_loader() {
        Some(loader) if count > 0 => together(situation, loader),
        _ => Settings::default(),
    };
    changes.set(WORKERS, count);
    if let Some(threads) = cost.other_threads(count) {
        changes.set("threads.torch", threads);
    }
    changes
}

/// Workers stay between epochs, and their batches are pinned where there is a GPU.
fn together(situation: &Situation, loader: &Loader) -> Settings {
    let mut changes = Settings::default();
    let unset = |key: &str, own: bool| !own && situation.settings.get(key).is_none() && situation.allows(key);
    if unset(
        "loader.persistent_workers",
        loader.persistent_workers == Some(true),
    ) {
        changes.set("loader.persistent_workers", "on");
    }
    if situation.on_gpu() && unset(PINNED, loader.pin_memory != Some(false)) {
        changes.set(PINNED, "on");
    }
    changes
}

fn pinned(situation: &Situation, loader: &Loader, window: &Window, cost: &Cost) -> Option<Proposal> {
    let share = window.share(Phase::Transfer);
    if !situation.on_gpu()
        || loader.pin_memory != Some(false)
        || !situation.allows(PINNED)
        || share < WAIT_SHARE
    {
        return None;
    }
    let percent = flatout_core::units::percent(share);
    let gain = 1.0 / (1.0 - by_pinning(window, cost));
    Some(Proposal {
        knob: KNOB.name,
        changes: super::one(PINNED, "on"),
        gain: Some(gain),
        worth: gain,
        why: message!(en: "{percent} of the time is copying from pageable memory", zh: "{percent} 的时间在从非锁页内存拷贝"),
        changes_numbers: false,
    })
}

/// The part of the time that pinned memory saves: some of the copying, and where workers supply enough, the waiting, which then is only
/// taking batches over. A thread of its own does that along with pinning.
fn by_pinning(window: &Window, cost: &Cost) -> f64 {
    let taking = if cost.has_workers() && cost.is_supplied() {
        cost.wait_share()
    } else {
        0.0
    };
    taking + window.share(Phase::Transfer) * COPIED
}

fn proposal(changes: Settings, gain: f64, share: f64) -> Proposal {
    let percent = flatout_core::units::percent(share);
    Proposal {
        knob: KNOB.name,
        changes,
        gain: Some(gain),
        worth: gain,
        why: message!(en: "{percent} of the time the steps wait for batches", zh: "{percent} 的时间在等待 batch"),
        changes_numbers: false,
    }
}
