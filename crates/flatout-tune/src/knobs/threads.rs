//! PyTorch's own threads, on the CPU: with loader workers beside them they fight for the same cores, and small steps lose more
//! by waking threads than they gain.

use super::cost::Cost;
use super::{Knob, Proposal, Situation, one};
use crate::machine::Machine;
use flatout_core::message;
use std::collections::BTreeSet;

pub const KNOB: Knob = Knob {
    name: "threads",
    keys: &["threads.torch"],
    propose,
    variants,
};

/// On the CPU one thread, and half of all.
fn variants(machine: &Machine) -> Vec<(&'static str, String)> {
    let half = machine.cpus.count() / 2;
    let counts = if half > 1 { vec![1, half] } else { vec![1] };
    let on_cpu = counts.into_iter().filter(|_| machine.gpus.is_empty());
    on_cpu.map(|count| ("threads.torch", count.to_string())).collect()
}

fn propose(situation: &Situation) -> Vec<Proposal> {
    if situation.on_gpu() || situation.settings.get("threads.torch").is_some() {
        return Vec::new();
    }
    let Some(threads) = situation
        .analysis
        .facts
        .number("threads.torch")
        .map(|threads| threads as u64)
    else {
        return Vec::new();
    };
    let usable = situation.machine.cpus.count() as u64;
    let workers = situation.workers();
    let beside = usable.saturating_sub(workers).max(1);
    let cost = Cost::of(situation);
    let tried = cost.iter().flat_map(|cost| cost.threads_tried());
    let counts: BTreeSet<u64> = tried.chain([beside]).collect();
    let gain = |wanted: u64| {
        let told = situation
            .own_ratio("threads.torch", &wanted.to_string())
            .is_some();
        let rule = situation
            .expected(&["threads.torch"])
            .filter(|_| wanted == beside && !told);
        Some((
            wanted,
            rule.or_else(|| Some(cost.as_ref()?.gain_by_threads(wanted as f64)))?,
        ))
    };
    let other = |wanted: &u64| *wanted != threads && situation.limits.within("threads.torch", *wanted);
    let best = counts
        .into_iter()
        .filter(other)
        .filter_map(gain)
        .max_by(|a, b| a.1.total_cmp(&b.1));
    let Some((wanted, gain)) = best else {
        return Vec::new();
    };
    vec![Proposal {
        knob: KNOB.name,
        changes: one("threads.torch", wanted),
        gain: Some(gain),
        worth: gain,
        why: message!(
            en: "{threads} threads and {workers} workers on {usable} usable CPUs",
            zh: "{usable} 个可用 CPU 上有 {threads} 个线程和 {workers} 个 worker"
        ),
        changes_numbers: false,
    }]
}
