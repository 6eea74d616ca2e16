//! The loader: workers, prefetching, persistence and pinning, proposed together because they interact.

use super::{Knob, Proposal, Situation};
use crate::trial::Settings;
use flatout_core::message;
use flatout_diagnose::advice;
use flatout_diagnose::analysis::loaders::Loader;
use flatout_diagnose::analysis::window::Window;
use flatout_telemetry::Phase;

pub const KNOB: Knob = Knob {
    name: "loader",
    keys: &[
        "loader.num_workers",
        "loader.prefetch_factor",
        "loader.persistent_workers",
        "loader.pin_memory",
    ],
    propose,
};

/// Below this wait there is nothing to gain that could be measured.
const WAIT_SHARE: f64 = 0.03;
/// What handing a batch from process to process costs the training process (PyTorch 2: 0.2 to 0.4 ms).
const HANDOVER_MS: f64 = 0.3;

fn propose(situation: &Situation) -> Vec<Proposal> {
    let (Some(loader), Some(window)) = (
        situation.analysis.train_loader(),
        situation.analysis.window.as_ref(),
    ) else {
        return Vec::new();
    };
    let usable = situation.machine.cpus.count() as u64;
    let now = loader.num_workers.unwrap_or(0);
    let share = window.share(Phase::Data);
    if share < WAIT_SHARE && now <= usable {
        return pinned(situation, loader, window).into_iter().collect();
    }
    let asked = situation.limits.highest("loader.num_workers").unwrap_or(0);
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
    counts.retain(|count| *count <= usable && situation.limits.within("loader.num_workers", *count));
    counts.sort_unstable();
    counts.dedup();
    let mut all: Vec<Proposal> = Vec::new();
    if situation.allows("loader.num_workers") {
        for count in counts.into_iter().filter(|count| *count != now) {
            all.extend(with_workers(situation, loader, window, count));
        }
    }
    if now > 0 && situation.allows("loader.prefetch_factor") {
        let factor = loader.prefetch_factor.unwrap_or(2);
        if factor < 8 && situation.limits.within("loader.prefetch_factor", factor * 2) {
            let mut changes = together(situation, loader, now);
            changes.set("loader.prefetch_factor", factor * 2);
            // A deeper queue only evens out; without more work done it cannot gain more than the unevenness.
            all.push(proposal(changes, 1.0 + share / 4.0, share));
        }
    }
    all.extend(pinned(situation, loader, window));
    all
}

fn with_workers(situation: &Situation, loader: &Loader, window: &Window, count: u64) -> Option<Proposal> {
    let gain = predicted(situation, loader, window, count)?;
    let share = window.share(Phase::Data);
    let mut changes = if count > 0 {
        together(situation, loader, count)
    } else {
        Settings::default()
    };
    changes.set("loader.num_workers", count);
    Some(proposal(changes, gain, share))
}

/// What goes along with workers: they stay between epochs, and their batches are pinned where there is a GPU.
fn together(situation: &Situation, loader: &Loader, count: u64) -> Settings {
    let mut changes = Settings::default();
    if count > 0 && loader.persistent_workers != Some(true) && situation.allows("loader.persistent_workers") {
        changes.set("loader.persistent_workers", "on");
    }
    if situation.on_gpu() && loader.pin_memory == Some(false) && situation.allows("loader.pin_memory") {
        changes.set("loader.pin_memory", "on");
    }
    changes
}

/// The step with so many workers: as long as its own part, or as the workers need for a batch, or as all the CPU work needs on
/// the usable CPUs, whichever is longest. Without workers the batch is made in between.
fn predicted(situation: &Situation, loader: &Loader, window: &Window, count: u64) -> Option<f64> {
    let step_ms = window.step_ms();
    let rest_ms = step_ms - window.ms_per_step(Phase::Data);
    let prepare_ms = loader
        .prepare_ms()
        .unwrap_or_else(|| window.ms_per_step(Phase::Data));
    if count == 0 {
        return Some(step_ms / (rest_ms + prepare_ms));
    }
    let usable = situation.machine.cpus.count() as f64;
    let busy = situation.analysis.host.tree_cpus.unwrap_or(1.0);
    let all_cpus_ms = busy * step_ms / usable;
    let expected_ms = (rest_ms + HANDOVER_MS)
        .max(prepare_ms / count as f64)
        .max(all_cpus_ms);
    Some(step_ms / expected_ms)
}

fn pinned(situation: &Situation, loader: &Loader, window: &Window) -> Option<Proposal> {
    let share = window.share(Phase::Transfer);
    if !situation.on_gpu()
        || loader.pin_memory != Some(false)
        || !situation.allows("loader.pin_memory")
        || share < WAIT_SHARE
    {
        return None;
    }
    let percent = flatout_core::units::percent(share);
    Some(Proposal {
        knob: KNOB.name,
        changes: super::one("loader.pin_memory", "on"),
        gain: 1.0 / (1.0 - share / 2.0),
        why: message!(en: "{percent} of the time is copying from pageable memory", zh: "{percent} 的时间在从非锁页内存拷贝"),
        changes_numbers: false,
    })
}

fn proposal(changes: Settings, gain: f64, share: f64) -> Proposal {
    let percent = flatout_core::units::percent(share);
    Proposal {
        knob: KNOB.name,
        changes,
        gain,
        why: message!(en: "{percent} of the time the steps wait for batches", zh: "{percent} 的时间在等待 batch"),
        changes_numbers: false,
    }
}
