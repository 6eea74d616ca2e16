//! How batches are made: whole batches instead of one call per sample. The probe proves for each data set that they are equal, and says so
//! where they are not; then the trial counts as not applied. Whole batches need no workers, so both are proposed together.

use super::cost::Cost;
use super::{Knob, Proposal, Situation};
use crate::trial::Settings;
use flatout_core::{message, units};
use flatout_diagnose::{Analysis, advice};
use flatout_record::Phase;

pub const KNOB: Knob = Knob {
    name: "fetching",
    keys: &[BATCHED, "loader.resident", THREADS, TRIM, "step.graph"],
    propose,
    variants: |_| Vec::new(),
};

const BATCHED: &str = "loader.batched";
const WORKERS: &str = "loader.num_workers";
const THREADS: &str = "loader.threads";
const TRIM: &str = "padding.trim";
/// More threads take turns on the lock.
const MOST_THREADS: u64 = 8;
/// The part of a batch's making that must be outside of the lock, and the samples that tell.
const RELEASED: f64 = 0.5;
const FEWEST: u64 = 20;
/// After everything that promises more.
const LOOK_WORTH: f64 = 1.03;
/// The most of a step's computing that shorter batches save.
const MOST_TRIMMED: f64 = 0.9;
/// Below this wait there is nothing to gain that could be measured.
const WAIT_SHARE: f64 = 0.03;
/// The part of the waiting that goes with whole batches: of a TensorDataset with 20 columns, 98%.
const SAVED: f64 = 0.9;
/// Data sets whose items are plain indexing, whatever the program does with them.
const PLAIN: [&str; 2] = ["TensorDataset", "Subset"];

fn propose(situation: &Situation) -> Vec<Proposal> {
    let share = Cost::of(situation).map_or(0.0, |cost| cost.wait_share());
    let each = [
        batched(situation, share),
        threads(situation, share),
        trimmed(situation),
    ];
    each.into_iter().flatten().collect()
}

fn batched(situation: &Situation, share: f64) -> Option<Proposal> {
    let dataset = situation
        .analysis
        .facts
        .text("loader.dataset")
        .unwrap_or_default();
    let known = PLAIN.contains(&dataset.as_str()) || situation.limits.asked(BATCHED);
    let open = situation.allows(BATCHED) && situation.settings.get(BATCHED).is_none();
    if !known || !open || share < WAIT_SHARE {
        return None;
    }
    let mut changes = Settings::default();
    changes.set(BATCHED, "on");
    if situation.workers() > 0 && situation.allows(WORKERS) {
        changes.set(WORKERS, 0);
    }
    let gain = 1.0 / (1.0 - share * SAVED);
    Some(Proposal {
        knob: KNOB.name,
        changes,
        gain: Some(gain),
        worth: gain,
        why: message!(en: "the dataset can be indexed by whole batches", zh: "数据集可以按整个 batch 取值"),
        changes_numbers: false,
    })
}

/// Threads instead of workers: where items let go of the interpreter's lock while they are made. How much they gain only a trial tells.
fn threads(situation: &Situation, share: f64) -> Option<Proposal> {
    let analysis = situation.analysis;
    let loader = analysis.train_loader()?;
    let usable = situation.machine.cpus.count() as u64;
    let count = usable.saturating_sub(1).min(MOST_THREADS);
    let open = situation.allows(THREADS) && situation.settings.get(THREADS).is_none();
    if !open || share < WAIT_SHARE || situation.workers() > 0 || loader.iterable || count == 0 {
        return None;
    }
    let released = 1.0 - locked(analysis)?;
    if released < RELEASED || !situation.limits.within(THREADS, count) {
        return None;
    }
    let all = 1.0 / (1.0 - share * released * SAVED);
    // Workers do the same without the lock: where they can be used, they come first.
    let can_work = !loader.spawned || loader.can_spawn == Some(true);
    let workers = can_work && situation.allows(WORKERS) && advice::workers(analysis, loader).is_some();
    Some(Proposal {
        knob: KNOB.name,
        changes: super::one(THREADS, count),
        gain: None,
        worth: if workers { all.min(LOOK_WORTH) } else { all },
        why: message!(
            en: "batches are made outside of the interpreter's lock, so threads can make them",
            zh: "制作 batch 时不占用解释器锁，可以交给线程"
        ),
        changes_numbers: false,
    })
}

/// The part of the samples within the making of batches that held the interpreter's lock.
fn locked(analysis: &Analysis) -> Option<f64> {
    let stacks = analysis.data.stacks.iter().flat_map(|tick| &tick.stacks);
    let making = stacks.filter(|stack| stack.phase == Some(Phase::Data) && !stack.worker);
    let (held, all) = making.fold((0, 0), |(held, all), stack| {
        (held + if stack.gil { stack.count } else { 0 }, all + stack.count)
    });
    (all >= FEWEST).then(|| held as f64 / all as f64)
}

/// Columns of padding that no row of a batch needs, where a mask tells which those are.
fn trimmed(situation: &Situation) -> Option<Proposal> {
    let analysis = situation.analysis;
    let masked = analysis.of_the_input("padding.mask")?.value == true;
    let share = analysis.of_the_input(TRIM)?.value.as_f64()?;
    let open = situation.allows(TRIM) && situation.settings.get(TRIM).is_none();
    if !masked || !open || share < WAIT_SHARE {
        return None;
    }
    let shorter = 1.0 / (1.0 - share.min(MOST_TRIMMED));
    let gain = Cost::of(situation).map_or(shorter, |cost| cost.gain_by_computing(shorter));
    let percent = units::percent(share);
    Some(Proposal {
        knob: KNOB.name,
        changes: super::one(TRIM, "on"),
        gain: Some(gain),
        worth: gain,
        why: message!(
            en: "{percent} of each batch is padding that no row needs",
            zh: "每个 batch 有 {percent} 是没有任何一行需要的填充"
        ),
        changes_numbers: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_record::{RunData, StackCount, StackTick};

    fn made(gil: bool, count: u64) -> RunData {
        let stack = |gil, count| StackCount {
            count,
            gil,
            phase: Some(Phase::Data),
            ..StackCount::default()
        };
        RunData {
            stacks: vec![StackTick {
                t: 1.0,
                stacks: vec![stack(gil, count), stack(!gil, 10)],
                descheduled_ms: None,
            }],
            ..RunData::default()
        }
    }

    #[test]
    fn threads_need_the_lock_to_be_free() {
        let part = |data: &RunData| locked(&Analysis::new(data));
        assert_eq!(part(&made(true, 30)), Some(0.75));
        assert_eq!(part(&made(false, 30)), Some(0.25));
        assert_eq!(part(&made(false, 1)), None);
    }
}
