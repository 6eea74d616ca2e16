//! # loader-starved
//!
//! ## What it detects
//! Steps wait for batches, and no more specific rule explains why.
//!
//! ## Why it is slow
//! While the training process waits for the next batch, the device has nothing to do.
//!
//! ## Example
//! ```python
//! loader = DataLoader(SlowDataset(files), num_workers=2)
//! ```
//!
//! ## Use instead
//! ```python
//! loader = DataLoader(SlowDataset(files), num_workers=8, prefetch_factor=4)
//! ```
//!
//! ## Evidence
//! The share of the steady part spent waiting for batches.
//!
//! ## Fix
//! Find out what makes a batch slow: a line of `__getitem__` in the stack samples, the storage, or the collate function.
//!
//! ## When it is wrong
//! The loop waits on purpose, for example for a simulator or live data.
//!
//! ## References
//! TraceML warns from 10% and reports 20% as critical; gpuprof uses 15% and 30%.
//! <https://docs.pytorch.org/docs/stable/data.html>
//!
//! ---
//! ## 检测什么
//! 训练在等 batch，而没有更具体的规则能说明原因。
//! ## 为什么慢
//! 训练进程等待下一个 batch 时，设备无事可做。
//! ## 证据
//! 稳定阶段中等待 batch 的时间。
//! ## 怎么改
//! 查清一个 batch 的成本：调用栈中 `__getitem__` 的哪一行、存储、collate。
//! ## 何时不成立
//! 循环本来就要等待（模拟器、实时数据流）。
//! ## 参考
//! TraceML 从 10% 起警告、20% 为严重；gpuprof 为 15% 和 30%。
//! <https://docs.pytorch.org/docs/stable/data.html>

use crate::analysis::Analysis;
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE, severity_of};
use flatout_core::{Severity, message, units};
use flatout_record::Phase;

pub const ID: &str = "loader-starved";
pub const WORST: Severity = Severity::Critical;

/// A wait without a reason is a warning from gpuprof's level on; below it, it may be what handing batches over costs on CPUs
/// that the training itself keeps busy.
const UNEXPLAINED: f64 = 0.15;
/// A shorter wait a step is the fixed cost of handing a batch over (0.05 to 0.2 ms measured in-process with PyTorch 2).
const WAIT_MS: f64 = 0.2;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let share = window.share(Phase::Data);
    if share < WARNING_SHARE || window.ms_per_step(Phase::Data) < WAIT_MS {
        return None;
    }
    let shown = units::percent(share);
    let wait = units::duration(window.ms_per_step(Phase::Data) / 1e3);
    let loader = analysis.train_loader();
    let place = loader.and_then(|loader| loader.place.as_ref());
    let how = if loader.is_some() {
        message!(
            en: "Time the dataset's __getitem__ and collate_fn separately to find what makes a batch slow",
            zh: "找出一个 batch 的成本：单独测量数据集的 __getitem__ 和 collate_fn 的耗时"
        )
    } else {
        // Not PyTorch's loader: what makes the batches is not known.
        message!(
            en: "Make batches cheaper at this line, and prepare the next batches while a step runs",
            zh: "降低此处生成 batch 的成本，并在计算当前一步的同时准备后面的 batch"
        )
    };
    Some(
        Candidate::new(
            ID,
            if share < UNEXPLAINED {
                Severity::Information
            } else {
                severity_of(share)
            },
            message!(
                en: "Steps spend {shown} of their time waiting for batches, {wait} per step",
                zh: "训练有 {shown} 的时间在等待 batch，每步 {wait}"
            ),
        )
        .evidence(analysis.phase_evidence(Phase::Data, WARNING_SHARE))
        .place(place)
        .claims(Stretch::Data, Reach::General, 0.0, window.seconds(Phase::Data))
        .code(place, how),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};

    #[test]
    fn fires() {
        let build = || {
            Build::steady(20)
                .phase(Phase::Data, 0.25)
                .phase(Phase::Compute, 0.7)
        };
        assert_eq!(run(check, build()).unwrap().severity, Severity::Warning);
        assert_eq!(causes(build()), [ID]);
    }

    #[test]
    fn quiet() {
        assert!(run(check, Build::steady(20).phase(Phase::Data, 0.05)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
