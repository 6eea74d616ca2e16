//! The loader: workers by the seeds' formula and what the machine allows, prefetching, persistence, pinning.

use super::{LARGE_DATA, SMALL_DATA, advice, and};
use crate::advise::{Advice, Question};
use crate::machine::Machine;
use flatout_core::{message, units};

/// The seeds' formula: never more than this many workers a GPU.
const MOST_WORKERS: u64 = 8;
/// The seeds' formula: a worker for each so many samples of a batch.
const SAMPLES_A_WORKER: u64 = 32;
/// The seeds' rule for several GPUs: `min(workers × GPUs, 32)`.
const MOST_WORKERS_ALL: u64 = 32;
/// What a worker with torch loaded takes at least.
const WORKER_BYTES: u64 = 512 << 20;

pub(super) fn workers(machine: &Machine, question: &Question, batch: u64) -> Advice {
    let usable = machine.cpus.count() as u64;
    let gpus = machine.gpus.len().max(1) as u64;
    let formula = (usable / 2)
        .min(MOST_WORKERS)
        .min((batch / SAMPLES_A_WORKER).max(1));
    let online = machine.cpus.online;
    let limits = message!(
        en: "min(cores/2, {MOST_WORKERS}, batch/{SAMPLES_A_WORKER}) with {usable} usable CPUs (of {online}; \
        affinity and cgroup)",
        zh: "min(核数/2, {MOST_WORKERS}, batch/{SAMPLES_A_WORKER})，可用 CPU 为 {usable} 个（共 {online} 个；按 affinity 与 cgroup）"
    );
    if usable < 2 {
        let reason = message!(en: "only {usable} CPU is usable: a worker would compete with training for it", zh: "只有 {usable} 个可用 CPU：worker 会与训练抢占");
        return advice("loader.num_workers", 0, reason);
    }
    let mut count = formula;
    let mut reason = limits;
    if gpus > 1 {
        count = (formula * gpus)
            .min(MOST_WORKERS_ALL)
            .min(usable.saturating_sub(gpus).max(1));
        reason = and(
            reason,
            message!(en: "for all {gpus} GPUs together: min(workers × GPUs, {MOST_WORKERS_ALL}), limited by \
            the CPUs", zh: "{gpus} 个 GPU 合计：min(workers × GPU 数, {MOST_WORKERS_ALL})，且不超过 CPU"),
        );
    }
    if question.samples.is_some_and(|samples| samples < SMALL_DATA) && count > 4 {
        count = 4;
        reason = and(
            reason,
            message!(en: "4 for datasets below 100k samples", zh: "样本少于 10 万，取 4"),
        );
    }
    let by_memory = machine
        .memory_bytes
        .map_or(u64::MAX, |bytes| bytes / 2 / WORKER_BYTES);
    if count > by_memory {
        count = by_memory;
        let memory = units::bytes(machine.memory_bytes.unwrap_or_default() as f64);
        reason = and(
            reason,
            message!(en: "half of {memory} holds {count}", zh: "{memory} 内存的一半可容纳 {count} 个"),
        );
    }
    advice("loader.num_workers", count, reason)
}

pub(super) fn prefetch(question: &Question) -> Advice {
    if question.samples.is_some_and(|samples| samples > LARGE_DATA) {
        let reason = message!(en: "more than 1M samples: a deeper queue evens out slow reads", zh: "样本超过 100 万：更深的队列可抹平慢读取");
        return advice("loader.prefetch_factor", 4, reason);
    }
    advice(
        "loader.prefetch_factor",
        2,
        message!(en: "two batches per worker; 4 if waits come in bursts", zh: "每个 worker 预取两个 batch；等待成串出现时取 4"),
    )
}

pub(super) fn persistent() -> Advice {
    let reason = message!(en: "keeps workers alive between epochs", zh: "不必每轮重新启动 worker");
    advice("loader.persistent_workers", "on", reason)
}

pub(super) fn pinning(machine: &Machine) -> Advice {
    if machine.gpus.is_empty() {
        return advice(
            "loader.pin_memory",
            "off",
            message!(en: "there is no GPU to copy to", zh: "没有需要拷贝到的 GPU"),
        );
    }
    advice(
        "loader.pin_memory",
        "on",
        message!(en: "copies from pinned memory overlap with computation (with non_blocking=True)", zh: "锁页内存的拷贝可与计算并行（配合 non_blocking=True）"),
    )
}
