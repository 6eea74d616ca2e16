//! # data-set-copied-per-worker
//!
//! ## What it detects
//! Each DataLoader worker gradually acquires a large private memory: a copy of the dataset.
//!
//! ## Why it is slow
//! A forked worker shares its parent's memory until it writes to it. Reading a Python object writes its reference count, so a dataset
//! of Python objects (lists, dicts, strings) is copied page by page into every worker. Memory runs out, and the copying slows down
//! every sample.
//!
//! ## Example
//! ```python
//! self.paths = [str(path) for path in folder.rglob("*.jpg")]  # 10 million strings
//! ```
//!
//! ## Use instead
//! ```python
//! self.paths = np.array([str(path) for path in folder.rglob("*.jpg")])
//! ```
//!
//! ## Evidence
//! Memory that a worker shares with no other process, times the number of workers; or its growth while batches are prepared,
//! projected over one pass over the data and limited by the memory of the training process.
//!
//! ## Fix
//! Keep the data in a few arrays or tensors (NumPy, Arrow, a memory-mapped file) instead of Python objects, or use fewer workers.
//!
//! ## When it is wrong
//! Workers that have large buffers by design (decoders, a cache in each worker).
//!
//! ## References
//! PyTorch issue 13246, "DataLoader num_workers > 0 causes CPU memory from parent process to be replicated".
//! <https://github.com/pytorch/pytorch/issues/13246>
//!
//! ---
//! ## 检测什么
//! 每个 DataLoader worker 都逐渐独占大量内存：数据集的一份副本。
//! ## 为什么慢
//! fork 出的 worker 与父进程共享内存，直到有人写入；而读取 Python 对象会改写其引用计数，所以由 Python 对象（list、dict、字符串）组成的数据集会被逐页复制到每个 worker。内存会耗尽，复制和缓存未命中也会拖慢取样。
//! ## 证据
//! worker 不与其他进程共享的内存乘以 worker 数；或者它在产出 batch 时不断增长，以及读完一遍数据会增长到多少（至多为 fork 它的训练进程的内存）。
//! ## 怎么改
//! 把数据存成少数几个数组或 tensor（NumPy、Arrow、内存映射文件），不要用 Python 对象；或减少 worker。
//! ## 何时不成立
//! worker 本来就需要很大的自有缓冲区（解码器、每个 worker 一份缓存）。
//! ## 参考
//! PyTorch issue 13246：“DataLoader num_workers > 0 causes CPU memory from parent process to be replicated”。
//! <https://github.com/pytorch/pytorch/issues/13246>

use crate::analysis::Analysis;
use crate::analysis::loaders::Loader;
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE};
use flatout_core::{Confidence, Evidence, Severity, message, units};
use flatout_record::Phase;

pub const ID: &str = "data-set-copied-per-worker";
pub const WORST: Severity = Severity::Warning;

/// A forked worker of PyTorch 2 has some 60 to 100 MiB of its own without any data set.
const EACH_BYTES: f64 = 256.0 * 1048576.0;
/// A spawned one imports PyTorch anew.
const SPAWNED_BYTES: f64 = 512.0 * 1048576.0;
/// What all workers together must hold before it is worth a line.
const TOGETHER_BYTES: f64 = 1024.0 * 1048576.0;
/// A worker's buffers are filled with its first batches; what it gains seconds later than that is kept.
const GROWTH_BYTES: f64 = 16.0 * 1048576.0;

/// What each worker holds of its own: now, or after one pass over the data.
struct Held {
    bytes: f64,
    growth: Option<f64>,
}

/// Held now, when that is much already; else what the growth so far comes to.
fn held(analysis: &Analysis, loader: &Loader, usual: f64) -> Option<Held> {
    let workers = &analysis.workers;
    let now = workers.private_bytes_each?;
    let much = |bytes: f64| {
        bytes >= EACH_BYTES + usual && (bytes - usual) * (workers.count as f64) >= TOGETHER_BYTES
    };
    if much(now) {
        return Some(Held {
            bytes: now,
            growth: None,
        });
    }
    let rate = workers.private_growth_each_s?;
    let growth = Some(rate * workers.private_growth_over_s).filter(|grown| *grown >= GROWTH_BYTES)?;
    let batches = loader.length? as f64 / loader.batch_size.filter(|size| *size > 0)? as f64;
    let batches_s = loader.prepared as f64 / analysis.window.as_ref()?.wall_s();
    let pass_s = batches / batches_s.max(1e-9);
    let bytes = now.max(rate * pass_s).min(workers.parent_bytes?);
    much(bytes).then_some(Held {
        bytes,
        growth: Some(growth),
    })
}

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let loader = analysis.train_loader()?;
    let count = analysis.workers.count;
    let usual = if loader.spawned { SPAWNED_BYTES } else { 0.0 };
    if count < 2 {
        return None;
    }
    let Held { bytes: each, growth } = held(analysis, loader, usual)?;
    let (shown, together) = (units::bytes(each), units::bytes(each * count as f64));
    let title = match growth.map(units::bytes) {
        None => message!(
            en: "Each of {count} workers holds {shown} of its own, {together} in total: copies of the dataset",
            zh: "{count} 个 worker 各自独占 {shown} 内存，共 {together}：数据集被复制了"
        ),
        Some(grown) => message!(
            en: "Each of {count} workers copies the dataset as it reads: {grown} so far, about {shown} after \
            one pass, {together} in total",
            zh: "{count} 个 worker 边读边复制数据集：目前各增长 {grown}，读完一遍各约 {shown}，共 {together}"
        ),
    };
    let mut candidate = Candidate::new(ID, Severity::Warning, title)
        .detail(message!(
            en: "Reading a Python object writes its reference count, so a forked worker copies every page it \
            reads.",
            zh: "读取 Python 对象会改写其引用计数，fork 出的 worker 每读一页就会复制一页。"
        ))
        .confidence(Confidence::Medium)
        .evidence(
            analysis.in_window(
                Evidence::new(
                    message!(en: "private memory of a worker", zh: "单个 worker 独占的内存"),
                    each / 1048576.0,
                    "MiB",
                )
                .against((EACH_BYTES + usual) / 1048576.0),
            ),
        )
        .place(loader.place.as_ref())
        .code(
            loader.place.as_ref(),
            message!(
                en: "Keep the dataset in tensors or NumPy arrays (or a memory-mapped file), not in lists and \
                dicts",
                zh: "把数据集存成 tensor 或 NumPy 数组（或内存映射文件），不要用 list 和 dict"
            ),
        );
    if let Some(growth) = growth {
        let what = message!(en: "growth of a worker's private memory", zh: "单个 worker 独占内存的增长");
        let grown = Evidence::new(what, growth / 1048576.0, "MiB").against(GROWTH_BYTES / 1048576.0);
        candidate = candidate.evidence(analysis.in_window(grown));
    }
    // How much of an item's time the copying is cannot be read off; but where steps wait for workers that copy, that is one reason
    // they do, and no further one has to be looked for.
    if window.share(Phase::Data) >= WARNING_SHARE {
        let waited_s = window.seconds(Phase::Data);
        candidate = candidate
            .claims(Stretch::Data, Reach::General, 0.0, waited_s)
            .stands_alone()
            .evidence(analysis.phase_evidence(Phase::Data, WARNING_SHARE));
    }
    Some(candidate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};
    use serde_json::json;

    fn holding(megabytes: u64) -> Build {
        Build::steady(20)
            .cpus(8)
            .workers(4, 0.2, megabytes << 20)
            .loader(0, json!({"num_workers": 4}))
    }

    #[test]
    fn fires() {
        assert!(run(check, holding(600)).is_some());
        assert_eq!(causes(holding(600)), [ID]);
    }

    #[test]
    fn copying_explains_the_wait() {
        let waiting = holding(600).phase(Phase::Data, 0.25).phase(Phase::Compute, 0.7);
        assert_eq!(causes(waiting), [ID], "no second reason for the same wait");
    }

    #[test]
    fn growth_counts_before_it_is_much() {
        let after = |megabytes: u64| {
            let mut data = holding(30)
                .loader(0, json!({"length": 100_000, "batch_size": 100}))
                .worker_cost(0, 10.0, 1.0, 10)
                .done();
            for (second, sample) in data.samples.iter_mut().enumerate() {
                for worker in sample.processes.values_mut() {
                    // Ready after four seconds; read every four.
                    let grown = megabytes * (second as u64 / 4).saturating_sub(1);
                    worker.private_bytes = Some((30 + 40 * u64::from(second >= 4) + grown) << 20);
                }
            }
            for sample in &mut data.samples {
                sample.processes.get_mut(&100).unwrap().rss_bytes = Some(900 << 20);
            }
            data
        };
        let grown = after(20);
        let finding = check(&Analysis::new(&grown)).unwrap().finding;
        assert!(
            finding.evidence[0].value <= 900.0,
            "no more than there is to copy"
        );
        assert!(
            check(&Analysis::new(&after(0))).is_none(),
            "filling its buffers is no growth"
        );
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
