//! # slow-collate
//!
//! ## What it detects
//! Steps wait for workers that spend more time in `collate_fn` than on the samples themselves.
//!
//! ## Why it is slow
//! `collate_fn` combines the samples of a batch. If it does so in Python (padding, lists, per-item conversion), it costs each worker
//! more than fetching.
//!
//! ## Example
//! ```python
//! def collate(samples):
//!     out = torch.zeros(len(samples), longest(samples))
//!     for i, sample in enumerate(samples):
//!         for j, token in enumerate(sample):
//!             out[i, j] = token
//!     return out
//! ```
//!
//! ## Use instead
//! ```python
//! def collate(samples):
//!     return pad_sequence([torch.as_tensor(sample) for sample in samples], batch_first=True)
//! ```
//!
//! ## Evidence
//! Time waiting for batches; the workers' time in `collate_fn` compared with `__getitem__`; and whether this work, spread over the
//! workers, fits into the time that the steps leave.
//!
//! ## Fix
//! Collate with one call on whole arrays (`torch.stack`, `pad_sequence`), or return whole batches from the dataset (`__getitems__`,
//! `batch_size=None`).
//!
//! ## When it is wrong
//! The dataset's `__getitem__` does nothing, and `collate_fn` fetches the data.
//!
//! ## References
//! TraceML warns from 10% of the time, gpuprof from 15%. PyTorch issue 106704: 0.44 million rows per second in memory with the
//! default collate function.
//! <https://github.com/pytorch/pytorch/issues/106704>
//!
//! ---
//! ## 检测什么
//! 训练在等 worker，而 worker 花在 `collate_fn` 上的时间比取样本还多。
//! ## 为什么慢
//! collate 把样本拼成 batch。若用 Python 逐项处理（填充、列表、逐个转换），每个 worker 花在这里的时间比取样还多。
//! ## 证据
//! 等待 batch 的时间；worker 在 `collate_fn` 与 `__getitem__` 中的时间之比；这些工作分摊到各 worker 后仍放不进训练留出的时间。
//! ## 怎么改
//! 对整个数组一次完成 collate（`torch.stack`、`pad_sequence`），或让数据集直接返回整个 batch（`__getitems__`、`batch_size=None`）。
//! ## 何时不成立
//! 数据集的 `__getitem__` 什么都不做，真正的取样在 `collate_fn` 里。
//! ## 参考
//! 等待占比：TraceML 10%，gpuprof 15%。PyTorch issue 106704：默认 collate 在内存中每秒 44 万行。
//! <https://github.com/pytorch/pytorch/issues/106704>

use crate::analysis::{Analysis, OVERLOAD};
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE, severity_of};
use flatout_core::{Evidence, Severity, message, units};
use flatout_record::Phase;

pub const ID: &str = "slow-collate";
pub const WORST: Severity = Severity::Critical;

/// Collating usually takes a tenth of the work; above half it is the work.
const COLLATE_SHARE: f64 = 0.5;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let starved = analysis.starved_by_workers()?;
    let loader = starved.loader;
    let work_s = loader.fetch_s + loader.collate_s;
    if loader.prepared == 0 || work_s <= 0.0 || loader.collate_s / work_s < COLLATE_SHARE {
        return None;
    }
    // Workers that could keep up are waited for because of something else.
    let load = starved.load()?;
    if !starved.overloaded()? {
        return None;
    }
    let share = loader.collate_s / work_s;
    let (shown, each) = (
        units::percent(share),
        units::duration(loader.collate_s / loader.prepared as f64),
    );
    let possible_s = starved.window.seconds(Phase::Data) * share;
    Some(
        Candidate::new(
            ID,
            severity_of(starved.share * share),
            message!(
                en: "Steps wait for collate_fn: {shown} of the workers' time, {each} per batch",
                zh: "collate_fn 占 worker 时间的 {shown}，每个 batch {each}，训练在等它"
            ),
        )
        .evidence(analysis.phase_evidence(Phase::Data, WARNING_SHARE))
        .evidence(analysis.in_window(
            Evidence::new(message!(en: "collating, share of the workers' time", zh: "collate 占 worker 时间"), share * 100.0, "%")
                .against(COLLATE_SHARE * 100.0),
        ))
        .evidence(analysis.in_window(
            Evidence::new(message!(en: "the workers' work, relative to the time the steps leave", zh: "worker 的工作量占步骤留出时间"), load * 100.0, "%")
                .against(OVERLOAD * 100.0),
        ))
        .place(loader.place.as_ref())
        .claims(Stretch::Data, Reach::Specific, possible_s * 0.3, possible_s)
        .explains(starved.window.seconds(Phase::Data))
        .code(
            loader.place.as_ref(),
            message!(
                en: "Collate whole arrays at once (torch.stack, pad_sequence) instead of item by item in \
                Python",
                zh: "一次性拼接整个数组（torch.stack、pad_sequence），不要在 Python 中逐个处理"
            ),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};
    use serde_json::json;

    fn collating(ms: f64) -> Build {
        Build::steady(20)
            .phase(Phase::Data, 0.6)
            .phase(Phase::Compute, 0.4)
            .cpus(4)
            .loader(0, json!({"num_workers": 2}))
            .worker_cost(0, 400.0, ms, 100)
    }

    #[test]
    fn fires() {
        assert!(run(check, collating(1500.0)).is_some());
        assert_eq!(causes(collating(1500.0)), [ID]);
    }

    #[test]
    fn quiet() {
        assert!(run(check, collating(40.0)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
