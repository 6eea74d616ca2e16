//! PyTorch's own threads, on the CPU: with loader workers beside them they fight for the same cores, and small steps lose more
//! by waking threads than they gain.

use super::cost::Cost;
use super::{Knob, Proposal, Situation, one};
use flatout_core::message;

pub const KNOB: Knob = Knob {
    name: "threads",
    keys: &["threads.torch"],
    propose,
};

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
    let wanted = usable.saturating_sub(workers).max(1);
    if wanted == threads || !situation.limits.within("threads.torch", wanted) {
        return Vec::new();
    }
    let by_cost = || Some(Cost::of(situation)?.gain_by_threads(wanted as f64));
    let Some(gain) = situation.expected(&["threads.torch"]).or_else(by_cost) else {
        return Vec::new();
    };
    vec![Proposal {
        knob: KNOB.name,
        changes: one("threads.torch", wanted),
        gain,
        why: message!(
            en: "{threads} threads and {workers} workers on {usable} usable CPUs",
            zh: "{usable} 个可用 CPU 上有 {threads} 个线程和 {workers} 个 worker"
        ),
        changes_numbers: false,
    }]
}
