//! # workers-read-everything
//!
//! ## What it detects
//! Every worker of a `DataLoader` iterates over the whole `IterableDataset`, so each sample appears once per worker.
//!
//! ## Why it is slow
//! With N workers, an epoch has N times as many steps over the same data. Each step costs the same, but most of them teach the model
//! nothing new.
//!
//! ## Example
//! ```python
//! def __iter__(self):
//!     return iter(read_lines(self.path))
//! ```
//!
//! ## Use instead
//! ```python
//! def __iter__(self):
//!     info = torch.utils.data.get_worker_info()
//!     return itertools.islice(read_lines(self.path), info.id, None, info.num_workers)
//! ```
//!
//! ## Evidence
//! Samples in the first batches that already appeared in an earlier batch, compared byte by byte.
//!
//! ## Fix
//! In `__iter__`, call `torch.utils.data.get_worker_info()` and take every N-th sample or file (`itertools.islice(source, info.id,
//! None, info.num_workers)`). Hugging Face's `IterableDataset` and WebDataset's `split_by_worker` do this.
//!
//! ## When it is wrong
//! The data repeats itself by design.
//!
//! ## References
//! PyTorch's documentation of `IterableDataset`: each worker has its own replica of the dataset.
//! <https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset>
//!
//! ---
//! ## 检测什么
//! `DataLoader` 的每个 worker 都遍历整个 `IterableDataset`：每个样本随 worker 数重复出现。
//! ## 为什么慢
//! 一个 epoch 的步数变成 worker 数的倍数，数据却相同。每步的工作量没变，但大部分没有让模型学到新东西。
//! ## 证据
//! 最初几个 batch 中，之前的 batch 已出现过的样本，逐字节比较。
//! ## 怎么改
//! 在 `__iter__` 中用 `torch.utils.data.get_worker_info()`，N 个 worker 各取每第 N 个样本或文件（`itertools.islice(source, info.id, None, info.num_workers)`）；Hugging Face 的 `IterableDataset` 和 WebDataset 的 `split_by_worker` 会这样做。
//! ## 何时不成立
//! 数据本来就会重复。
//! ## 参考
//! PyTorch 的 `IterableDataset` 页面：每个 worker 都有数据集对象的一份副本。
//! <https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset>

use crate::analysis::Analysis;
use crate::analysis::loaders::REPEATED;
use crate::candidate::Candidate;
use flatout_core::{Confidence, Evidence, Severity, message, units};

pub const ID: &str = "workers-read-everything";
pub const WORST: Severity = Severity::Critical;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    analysis.window.as_ref()?;
    let loader = analysis.train_loader()?;
    let workers = loader.num_workers.filter(|workers| *workers > 1)?;
    let repeated = loader.repeated.filter(|share| *share >= REPEATED)?;
    let shown = units::percent(repeated);
    let place = loader.place.clone();
    Some(
        Candidate::new(
            ID,
            Severity::Critical,
            message!(
                en: "Each of {workers} workers reads the whole dataset: {shown} of the samples are repeats",
                zh: "{workers} 个 worker 各自读取整个数据集：{shown} 的样本是重复的"
            ),
        )
        .confidence(Confidence::High)
        .evidence(
            analysis.in_run(
                Evidence::new(
                    message!(en: "samples already seen in an earlier batch", zh: "之前的 batch 已出现过的样本"),
                    repeated * 100.0,
                    "%",
                )
                .against(REPEATED * 100.0),
            ),
        )
        .place(place.as_ref())
        .code(
            place.as_ref(),
            message!(
                en: "Shard it in __iter__: info = get_worker_info(), then islice(source, info.id, None, \
                info.num_workers); an epoch then has {workers} times fewer steps",
                zh: "在 __iter__ 中：info = get_worker_info()，然后 islice(source, info.id, None, info.num_workers)；一个 epoch 的步数减为 1/{workers}"
            ),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};
    use serde_json::json;

    fn streaming(workers: u64, repeated: f64) -> Build {
        Build::steady(20)
            .loader(
                0,
                json!({"num_workers": workers, "batch_size": 32, "repeated": repeated}),
            )
            .loader_use(0, 100, 10.0)
    }

    #[test]
    fn fires() {
        let finding = run(check, streaming(4, 0.75)).unwrap();
        assert_eq!(finding.places.len(), 1);
        assert!(finding.title.en.contains("4 workers"));
    }

    #[test]
    fn quiet() {
        assert!(run(check, streaming(4, 0.02)).is_none());
        assert!(run(check, streaming(1, 0.9)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
