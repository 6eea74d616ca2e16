//! The loader: workers, prefetching, persistence and pinning, proposed together because they interact.

use super::cost::{COPIED, Cost};
use super::{AS_GOOD, Knob, Proposal, Situation};
use crate::limits::Limits;
use crate::machine::Machine;
use crate::trial::Settings;
use flatout_core::message;
use flatout_diagnose::advice;

pub const KNOB: Knob = Knob {
    name: "loader",
    keys: &[WORKERS, PREFETCH, PERSISTENT, PINNED],
    propose,
    variants: |_| Vec::new(),
};

const WORKERS: &str = "loader.num_workers";
/// Below this wait there is nothing to gain that could be measured.
const WAIT_SHARE: f64 = 0.03;
/// Above this one, other workers are looked at once for each batch size, whatever is predicted: how the loader and the batch act on
/// each other is more than the costs know.
const LOOK_SHARE: f64 = 0.15;
const PREFETCH: &str = "loader.prefetch_factor";
pub const PERSISTENT: &str = "loader.persistent_workers";
pub const PINNED: &str = "loader.pin_memory";
/// A switch of its own, too: forked workers would walk all that the program has when they collect garbage.
pub const FREEZE: &str = "gc.freeze";
/// Of the waiting, what a longer queue may save: it only evens out.
const EVENED: f64 = 0.25;
/// After everything that promises more.
const LOOK_WORTH: f64 = 1.03;

fn propose(situation: &Situation) -> Vec<Proposal> {
    if situation.analysis.train_loader().is_none() {
        return unseen(situation);
    }
    let analysis = situation.analysis;
    let Some(loader) = analysis.train_loader().filter(|_| analysis.window.is_some()) else {
        return Vec::new();
    };
    let Some(cost) = Cost::of(situation) else {
        return Vec::new();
    };
    let usable = situation.machine.cpus.count() as u64;
    let now = situation.workers();
    let share = cost.wait_share();
    let along = along(situation, &cost);
    if share < WAIT_SHARE && now <= usable {
        return along.into_iter().collect();
    }
    let mut all: Vec<Proposal> = Vec::new();
    for count in counts(situation, &cost) {
        let changes = workers(situation, &cost, count);
        let one = proposal(changes, cost.gain_by_workers(count), share);
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
    // A longer queue makes no more batches, and where another thread may take them over, there is nothing to even out.
    let uneven = now > 0 && cost.is_supplied() && !cost.takes_over();
    if uneven && situation.allows(PREFETCH) {
        let factor = situation.number(PREFETCH).or(loader.prefetch_factor).unwrap_or(2);
        if factor < 8 && situation.limits.within(PREFETCH, factor * 2) {
            let mut changes = together(situation);
            changes.set(PREFETCH, factor * 2);
            let gain = cost.gain_by_workers(now) / (1.0 - share * EVENED);
            all.push(proposal(changes, gain, share));
        }
    }
    all.extend(along);
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
        why: message!(en: "how the program loads its data could not be observed", zh: "看不到程序自己的数据加载过程"),
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
    // Workers that are spawned would end a program that is not made for them.
    let cannot_begin = now == 0 && loader.spawned && loader.can_spawn == Some(false);
    let most = match cannot_begin {
        true => 0,
        false => advice::most_workers(loader).unwrap_or(usable),
    };
    counts.retain(|count| *count <= most && !cost.is_unknown(*count));
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// So many workers, and what goes along with them; on the CPU, fewer threads for the steps.
pub fn workers(situation: &Situation, cost: &Cost, count: u64) -> Settings {
    let mut changes = if count > 0 {
        together(situation)
    } else {
        Settings::default()
    };
    changes.set(WORKERS, count);
    if let Some(threads) = cost.other_threads(count) {
        changes.set("threads.torch", threads);
    }
    changes
}

/// Settings with these changes, without what only workers have where there are none; what came along with those goes with them, but
/// for what the search began with.
pub fn sensible(settings: &Settings, changes: &Settings, start: &Settings) -> Settings {
    let mut changed = settings.with(changes);
    if changed.get(WORKERS) == Some("0") {
        changed.0.retain(|key, _| key != PERSISTENT && key != PREFETCH);
    }
    if changes.get(WORKERS) == Some("0") && start.get(FREEZE).is_none() {
        changed.0.retain(|key, _| key != FREEZE);
    }
    changed
}

/// Workers stay between epochs, leave what they have from the program alone when they collect garbage, and their batches are pinned where
/// there is a GPU.
pub fn together(situation: &Situation) -> Settings {
    let mut changes = Settings::default();
    let Some(loader) = situation.analysis.train_loader() else {
        return changes;
    };
    let unset = |key: &str, own: bool| !own && situation.settings.get(key).is_none() && situation.allows(key);
    if unset(PERSISTENT, loader.persistent_workers == Some(true)) {
        changes.set(PERSISTENT, "on");
    }
    if situation.on_gpu() && unset(PINNED, loader.pin_memory != Some(false)) {
        changes.set(PINNED, "on");
    }
    if unset(FREEZE, loader.spawned) {
        changes.set(FREEZE, "on");
    }
    changes
}

/// What goes along with workers, for those there are; without any, pinned memory alone.
fn along(situation: &Situation, cost: &Cost) -> Option<Proposal> {
    let copying = situation.analysis.copying_share();
    let mut changes = together(situation);
    let now = situation.workers();
    let gain = if now > 0 {
        cost.gain_by_workers(now)
    } else {
        changes.0.retain(|key, _| key == PINNED);
        1.0 / (1.0 - copying * COPIED)
    };
    if changes.0.is_empty() || (now == 0 && copying < WAIT_SHARE) {
        return None;
    }
    let share = cost.wait_share();
    if changes.get(PINNED).is_none() || (now > 0 && share >= copying) {
        return Some(proposal(changes, gain, share));
    }
    let percent = flatout_core::units::percent(copying);
    Some(Proposal {
        why: message!(en: "copying from pageable memory takes {percent} of the time", zh: "{percent} 的时间在从非锁页内存拷贝"),
        ..proposal(changes, gain, share)
    })
}

fn proposal(changes: Settings, gain: f64, share: f64) -> Proposal {
    let percent = flatout_core::units::percent(share);
    Proposal {
        knob: KNOB.name,
        changes,
        gain: Some(gain),
        worth: gain,
        why: message!(en: "steps spend {percent} of their time waiting for batches", zh: "{percent} 的时间在等待 batch"),
        changes_numbers: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_along_with_workers_goes_with_them() {
        let settings = |text: &str| {
            let mut all = Settings::default();
            for (key, value) in text.split(',').filter_map(|pair| pair.split_once('=')) {
                all.set(key, value);
            }
            all
        };
        let best =
            settings("gc.freeze=on,loader.batch_size=64,loader.num_workers=4,loader.persistent_workers=on");
        let (none, start) = (super::super::one(WORKERS, 0), Settings::default());
        let without = settings("loader.batch_size=64,loader.num_workers=0");
        assert_eq!(sensible(&best, &none, &start), without);
        // What the search began with stays, and so does what is proposed for the program itself.
        let frozen = super::super::one(FREEZE, "on");
        assert_eq!(sensible(&best, &none, &frozen).get(FREEZE), Some("on"));
        assert_eq!(sensible(&without, &frozen, &start).get(FREEZE), Some("on"));
    }
}
