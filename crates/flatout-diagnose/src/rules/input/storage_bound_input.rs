//! # storage-bound-input
//!
//! ## What it detects
//! Steps wait for workers, and the workers wait for storage: a disk, a network share or a remote service.
//!
//! ## Why it is slow
//! Fetching each sample has a latency that no CPU can shorten, and only a few requests are in flight at once.
//!
//! ## Example
//! ```python
//! dataset = ImageFolder("/mnt/nfs/images")  # a million small files
//! ```
//!
//! ## Use instead
//! ```python
//! dataset = ImageFolder("/local/images")  # copied once: cp -r /mnt/nfs/images /local/
//! ```
//!
//! ## Evidence
//! Time waiting for batches, the workers' time in `__getitem__` compared with the little CPU time they use, and I/O pressure.
//!
//! ## Fix
//! Copy the data to a local disk or into memory, and pack small files into large ones. Waiting workers use no CPU, so more workers
//! than CPUs can help here.
//!
//! ## When it is wrong
//! Workers sleep on purpose, or wait for a lock of the main process.
//!
//! ## References
//! SageMaker reports an I/O bottleneck when I/O wait is above 50%; gpuprof when the disk is above 500 MB/s while the CPU is below
//! 80%.
//! <https://docs.pytorch.org/docs/stable/data.html>
//!
//! ---
//! ## 检测什么
//! 训练在等 worker，而 worker 也在等：磁盘、网络共享或远程服务。
//! ## 为什么慢
//! 每个样本都要承受 CPU 无法缩短的延迟，而同时进行的请求很少。
//! ## 证据
//! 等待 batch 的时间；worker 在 `__getitem__` 中的时间，对比它们使用的少量 CPU；I/O 压力。
//! ## 怎么改
//! 把数据复制到本地磁盘或内存；把小文件打包成大文件；由于等待中的 worker 不需要 CPU，worker 数可以超过 CPU 数。
//! ## 何时不成立
//! worker 有意休眠，或在等主进程的锁。
//! ## 参考
//! SageMaker：I/O 等待超过 50% 即为 I/O 瓶颈。gpuprof：磁盘超过 500 MB/s 而 CPU 低于 80%。
//! <https://docs.pytorch.org/docs/stable/data.html>

use crate::analysis::Analysis;
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE, severity_of};
use flatout_core::{Confidence, Evidence, Severity, message, units};
use flatout_record::Phase;

pub const ID: &str = "storage-bound-input";
pub const WORST: Severity = Severity::Critical;

/// A worker that uses less of a CPU than this while it is in `__getitem__` all the time is waiting.
const WORKER_CPU: f64 = 0.5;
/// Shares of I/O pressure, I/O wait or disk time that confirm it.
const PRESSURE: f64 = 0.1;
/// Waiting workers suggested per usable CPU at most.
const PER_CPU: u64 = 4;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let starved = analysis.starved_by_workers()?;
    let (window, loader, workers) = (starved.window, starved.loader, starved.workers);
    let each = analysis.workers.cpus_each.filter(|cpus| *cpus < WORKER_CPU)?;
    let load = starved.load()?;
    // The workers' time must be what limits, and spent on the items.
    if !starved.overloaded()? || loader.fetch_s < loader.collate_s {
        return None;
    }
    // CPUs that others fill also keep workers waiting; that is not the storage.
    if analysis.host.cpu_util.is_some_and(|util| util >= 0.9) {
        return None;
    }
    let host = &analysis.host;
    let confirmed = [host.psi_io, host.iowait, host.disk_busy]
        .iter()
        .flatten()
        .any(|share| *share >= PRESSURE);
    let limit = analysis
        .usable_cpus()
        .map_or(workers, |usable| usable as u64 * PER_CPU);
    let suggested = ((load * workers as f64).ceil() as u64 + 1).min(limit);
    let fetch = units::duration(loader.fetch_s / loader.prepared.max(1) as f64);
    let busy = units::percent(each);
    let possible_s = window.seconds(Phase::Data);
    let mut candidate = Candidate::new(
        ID,
        severity_of(starved.share),
        message!(
            en: "Workers wait for storage: {fetch} per batch, using {busy} of a CPU each",
            zh: "worker 在等待存储：取一个 batch 需要 {fetch}，而每个 worker 只用了 {busy} 的 CPU"
        ),
    )
    .confidence(if confirmed {
        Confidence::High
    } else {
        Confidence::Medium
    })
    .evidence(analysis.phase_evidence(Phase::Data, WARNING_SHARE))
    .evidence(
        analysis.in_window(
            Evidence::new(
                message!(en: "CPU utilization of a worker", zh: "每个 worker 的 CPU 使用率"),
                each * 100.0,
                "%",
            )
            .against(WORKER_CPU * 100.0),
        ),
    )
    .place(loader.place.as_ref())
    .claims(Stretch::Data, Reach::Likely, possible_s * 0.3, possible_s)
    .code(
        loader.place.as_ref(),
        message!(
            en: "Move the data closer: to a local disk, into memory, or into a few large files instead of \
            many small ones",
            zh: "让数据更近：本地磁盘、内存，或用少量大文件代替大量小文件"
        ),
    );
    if let Some(pressure) = host.psi_io {
        let what = message!(en: "time with a process waiting for I/O", zh: "有进程在等待 I/O 的时间");
        candidate = candidate.evidence(analysis.in_window(Evidence::new(what, pressure * 100.0, "%")));
    }
    if suggested <= workers {
        return Some(candidate);
    }
    Some(candidate.setting(
        "loader.num_workers",
        Some(workers.to_string()),
        suggested,
        message!(
            en: "num_workers={suggested}: waiting workers use no CPU, and more of them keep more requests in \
            flight",
            zh: "num_workers={suggested}：等待中的 worker 不占 CPU，可同时发出更多请求"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};
    use serde_json::json;

    fn remote(cpus: f64) -> Build {
        Build::steady(20)
            .phase(Phase::Data, 0.6)
            .phase(Phase::Compute, 0.4)
            .cpus(4)
            .workers(2, cpus, 1 << 20)
            .loader(0, json!({"num_workers": 2}))
            .worker_cost(0, 1900.0, 10.0, 100)
    }

    #[test]
    fn fires() {
        assert_eq!(run(check, remote(0.05)).unwrap().confidence, Confidence::Medium);
        assert_eq!(causes(remote(0.05)), [ID]);
    }

    #[test]
    fn quiet() {
        assert!(run(check, remote(0.9)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
