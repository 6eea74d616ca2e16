//! # unequal-shards
//!
//! ## What it detects
//! One rank gets larger batches than the others and holds them up.
//!
//! ## Why it is slow
//! A step takes as long as its largest batch: the other ranks wait for that rank at every step.
//!
//! ## Example
//! ```python
//! loader = DataLoader(parts[rank], batch_size=128 if rank == 0 else 64)
//! ```
//!
//! ## Use instead
//! ```python
//! loader = DataLoader(dataset, batch_size=64, sampler=DistributedSampler(dataset))
//! ```
//!
//! ## Evidence
//! Samples per step of each rank, and how long the other ranks wait for the one with the most.
//!
//! ## Fix
//! Give every rank the same batch size and a `DistributedSampler`, so that all get the same number of samples. For texts of different
//! lengths, group them by length.
//!
//! ## When it is wrong
//! Ranks on different GPUs may have unequal batches on purpose: the faster GPU gets the larger batch, and nobody waits for it.
//!
//! ## References
//! PyTorch's documentation of `DistributedSampler`, and of `Join` for uneven inputs.
//! <https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler>
//!
//! ---
//! ## 检测什么
//! 一个 rank 的 batch 比其他的大，拖慢了其他 rank。
//! ## 为什么慢
//! 一步的时间由最大的 batch 决定：其他 rank 每一步都要等它。
//! ## 证据
//! 每个 rank 每步的样本数，以及其他 rank 等待的时间。
//! ## 怎么改
//! 让每个 rank 用相同的 batch 大小和 `DistributedSampler`，分到同样多的样本。文本长短不一时，按长度分组。
//! ## 何时不成立
//! GPU 型号不同时，可能有意让 batch 不同：此时更快的 GPU 用更大的 batch，没有 rank 会等它。
//! ## 参考
//! PyTorch 文档：`DistributedSampler`，以及处理不均匀输入的 `Join`。
//! <https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler>

use super::slow_rank::{claiming, with_evidence};
use crate::analysis::Analysis;
use crate::candidate::{Candidate, severity_of};
use flatout_core::{Evidence, Severity, message, units};

pub const ID: &str = "unequal-shards";
pub const WORST: Severity = Severity::Critical;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let slow = analysis.ranks.as_ref()?.slow.as_ref()?;
    let (own, others) = slow.samples?;
    let (rank, share) = (slow.rank, units::percent(slow.late_share));
    let (more, less) = (units::significant(own), units::significant(others));
    let place = analysis
        .train_loader()
        .and_then(|loader| {
            analysis
                .facts
                .scoped("loader.batch_size", &format!("loader.{}", loader.id))
        })
        .and_then(|fact| fact.place.clone());
    let candidate = Candidate::new(
        ID,
        severity_of(slow.late_share),
        message!(
            en: "Rank {rank} gets {more} samples per step, others {less} and wait {share} of it",
            zh: "rank {rank} 每步 {more} 个样本，其他 rank {less} 个：它们每步等待 {share}"
        ),
    )
    .place(place.as_ref())
    .evidence(analysis.in_window(Evidence::new(
        message!(en: "samples per step on rank {rank}", zh: "rank {rank} 每步的样本数"),
        own,
        "",
    )))
    .evidence(analysis.in_window(Evidence::new(
        message!(en: "samples per step on the other ranks (median)", zh: "其他 rank 每步的样本数（中位数）"),
        others,
        "",
    )))
    .code(
        place.as_ref(),
        message!(
            en: "Give every rank the same batch size and a DistributedSampler",
            zh: "让每个 rank 使用相同的 batch 大小和 DistributedSampler"
        ),
    );
    Some(claiming(analysis, with_evidence(analysis, candidate, slow), slow))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check_empty};
    use flatout_record::RunData;

    fn pair(batch: u64) -> RunData {
        let slow = Build::steady(20).batch(batch).collective(0.0, 20.0, 500.0);
        let first = Build::steady(20).batch(32).collective(500.0, 20.0, 0.0);
        first.rank(1, slow.done()).done()
    }

    fn rules(data: &RunData) -> Vec<String> {
        let findings = crate::diagnose(data).findings;
        findings.into_iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn fires() {
        let found = rules(&pair(96));
        assert_eq!(found[0], ID, "{found:?}");
        assert!(!found.contains(&"slow-rank".to_owned()));
    }

    #[test]
    fn quiet() {
        let found = rules(&pair(32));
        assert!(!found.contains(&ID.to_owned()) && found.contains(&"slow-rank".to_owned()));
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
