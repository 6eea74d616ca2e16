//! # data-set-copied-per-worker
//!
//! ## What it detects
//! Each loader worker comes to hold a large memory of its own: a copy of the data set.
//! ## Why it is slow
//! A forked worker shares the parent's memory until it writes to it; reading a Python object writes its reference count, so
//! a data set of Python objects (lists, dicts, strings) is copied page by page into every worker. Memory runs out, and
//! copying and cache misses slow the items down.
//! ## Evidence
//! Memory that a worker shares with no other process, times the workers.
//! ## Fix
//! Keep the data in a few arrays or tensors (NumPy, Arrow, a memory-mapped file), not in Python objects; or fewer workers.
//! ## When it is wrong
//! Workers with large buffers of their own by design (decoders, a cache in each worker).
//! ## References
//! PyTorch issue 13246, "DataLoader num_workers > 0 causes CPU memory from parent process to be replicated".

use crate::analysis::Analysis;
use crate::candidate::Candidate;
use flatout_core::{Confidence, Evidence, Severity, message, units};

pub const ID: &str = "data-set-copied-per-worker";
pub const WORST: Severity = Severity::Warning;

/// A forked worker of PyTorch 2 has some 60 to 100 MiB of its own without any data set.
const EACH_BYTES: f64 = 256.0 * 1048576.0;
/// A spawned one imports PyTorch anew.
const SPAWNED_BYTES: f64 = 512.0 * 1048576.0;
/// What all workers together must hold before it is worth a line.
const TOGETHER_BYTES: f64 = 1024.0 * 1048576.0;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    analysis.window.as_ref()?;
    let loader = analysis.train_loader()?;
    let count = analysis.workers.count;
    let each = analysis.workers.private_bytes_each?;
    let scope = format!("loader.{}", loader.id);
    let context = analysis.facts.scoped("loader.multiprocessing_context", &scope);
    let spawned = context.and_then(|fact| fact.value.as_str()).is_some_and(|name| name != "fork");
    let usual = if spawned { SPAWNED_BYTES } else { 0.0 };
    if count < 2 || each < EACH_BYTES + usual || (each - usual) * (count as f64) < TOGETHER_BYTES {
        return None;
    }
    let (shown, together) = (units::bytes(each), units::bytes(each * count as f64));
    Some(
        Candidate::new(
            ID,
            Severity::Warning,
            message!(
                en: "Each of {count} workers holds {shown} of its own, {together} together: copies of the data set",
                zh: "{count} 个 worker 各自独占 {shown} 内存，共 {together}：数据集被复制了"
            ),
        )
        .detail(message!(
            en: "Reading Python objects writes their reference counts, so a forked worker copies every page that it reads.",
            zh: "读取 Python 对象会改写其引用计数，fork 出的 worker 每读一页就会复制一页。"
        ))
        .confidence(Confidence::Medium)
        .evidence(analysis.in_window(
            Evidence::new(message!(en: "memory of a worker alone", zh: "单个 worker 独占的内存"), each / 1048576.0, "MiB")
                .against((EACH_BYTES + usual) / 1048576.0),
        ))
        .place(loader.place.as_ref())
        .code(
            loader.place.as_ref(),
            message!(
                en: "Keep the data set in tensors or NumPy arrays (or a memory-mapped file), not in lists and dicts",
                zh: "把数据集存成 tensor 或 NumPy 数组（或内存映射文件），不要用 list 和 dict"
            ),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};
    use serde_json::json;

    fn holding(megabytes: u64) -> Build {
        Build::steady(20).cpus(8).workers(4, 0.2, megabytes << 20).loader(0, json!({"num_workers": 4}))
    }

    #[test]
    fn fires() {
        assert!(run(check, holding(600)).is_some());
        assert_eq!(causes(holding(600)), [ID]);
    }

    #[test]
    fn quiet() {
        assert!(run(check, holding(80)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
