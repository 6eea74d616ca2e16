//! # loader-rebuilt
//!
//! ## What it detects
//! One line builds a new `DataLoader` again and again during training, and the program waits for its first batches.
//!
//! ## Why it is slow
//! A new DataLoader starts its workers again, sends them the dataset, and begins with an empty queue.
//!
//! ## Example
//! ```python
//! for epoch in range(epochs):
//!     loader = DataLoader(dataset, shuffle=True, num_workers=8)
//!     for x, y in loader:
//!         train_step(x, y)
//! ```
//!
//! ## Use instead
//! ```python
//! loader = DataLoader(dataset, shuffle=True, num_workers=8, persistent_workers=True)
//! for epoch in range(epochs):
//!     for x, y in loader:
//!         train_step(x, y)
//! ```
//!
//! ## Evidence
//! DataLoaders built at one source line in the steady part, and the time until their first batches.
//!
//! ## Fix
//! Build the DataLoader once, before the loop, with `persistent_workers=True`.
//!
//! ## When it is wrong
//! The dataset differs each time by design (curriculum, folds): the cost is then unavoidable.
//!
//! ## References
//! PyTorch's `DataLoader` documentation: workers start when the iterator is created.
//! <https://docs.pytorch.org/docs/stable/data.html>
//!
//! ---
//! ## 检测什么
//! 训练过程中同一行代码一再新建 `DataLoader`，并且要等它的第一批 batch。
//! ## 为什么慢
//! 新的 loader 要重新启动 worker、把数据集交给它们，并且队列是空的。
//! ## 证据
//! 稳定阶段内同一源码行新建的 loader 数量，以及等到第一批 batch 的时间。
//! ## 怎么改
//! 在循环之前只建一次 loader，并设置 `persistent_workers=True`。
//! ## 何时不成立
//! 每次数据集本来就不同（课程学习、交叉验证）：那是必要的代价。
//! ## 参考
//! PyTorch 的 `DataLoader` 文档：创建迭代器时启动 worker。
//! <https://docs.pytorch.org/docs/stable/data.html>

use crate::analysis::Analysis;
use crate::analysis::loaders::Loader;
use crate::candidate::{Candidate, Reach, Stretch, severity_of};
use flatout_core::{Evidence, Place, Severity, message, units};
use std::collections::BTreeMap;

pub const ID: &str = "loader-rebuilt";
pub const WORST: Severity = Severity::Critical;

/// Loaders of one line that were started within the window: one for training and one for evaluation are usual.
const REBUILT: usize = 3;
/// PyTorch's plugin speaks of loader time from 5%.
const SHARE: f64 = 0.05;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let mut by_place: BTreeMap<&Place, Vec<&Loader>> = BTreeMap::new();
    for loader in analysis
        .loaders
        .iter()
        .filter(|loader| loader.starts > 0 && loader.eval_batches == 0)
    {
        if let Some(place) = &loader.place {
            by_place.entry(place).or_default().push(loader);
        }
    }
    let (place, loaders) = by_place.into_iter().max_by_key(|(_, loaders)| loaders.len())?;
    if loaders.len() < REBUILT {
        return None;
    }
    let start_s: f64 = loaders.iter().map(|loader| loader.start_s).sum();
    // The work of each first batch stays whatever is mended.
    let stays_s: f64 = loaders
        .iter()
        .filter_map(|loader| loader.prepare_ms())
        .sum::<f64>()
        / 1e3;
    let (least_s, most_s) = analysis.restart_s(start_s);
    let goes_s = |spent_s: f64| (spent_s - stays_s).max(0.0);
    let share = goes_s(least_s) / window.wall_s();
    if share < SHARE {
        return None;
    }
    let (times, each) = (loaders.len(), units::duration(start_s / loaders.len() as f64));
    Some(
        Candidate::new(
            ID,
            severity_of(share),
            message!(
                en: "The DataLoader was rebuilt {times} times; the first batch took {each} each time",
                zh: "DataLoader 重新构建了 {times} 次，每次首个 batch 要等 {each}"
            ),
        )
        .evidence(
            analysis.in_window(
                Evidence::new(
                    message!(en: "DataLoaders built at this line", zh: "该行构建的 DataLoader 数"),
                    times as f64,
                    "",
                )
                .against(REBUILT as f64),
            ),
        )
        .evidence(
            analysis.in_window(
                Evidence::new(
                    message!(en: "time waiting for first batches", zh: "等待首个 batch 的时间"),
                    share * 100.0,
                    "%",
                )
                .against(SHARE * 100.0),
            ),
        )
        .place(Some(place))
        .claims(
            Stretch::Data,
            Reach::Measured,
            goes_s(least_s) * 0.7,
            goes_s(most_s),
        )
        .explains(most_s)
        .code(
            Some(place),
            message!(
                en: "Build the DataLoader once, before the loop, with persistent_workers=True",
                zh: "在循环之前只构建一次 DataLoader，并设置 persistent_workers=True"
            ),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};
    use flatout_record::{EventKind, Phase};
    use serde_json::json;

    fn rebuilding(loaders: u64) -> Build {
        let mut build = Build::steady(20)
            .phase(Phase::Data, 0.4)
            .phase(Phase::Compute, 0.6)
            .cpus(4);
        for loader in 0..loaders {
            build = build.loader(loader, json!({"num_workers": 2})).event(
                5.0 + loader as f64,
                EventKind::LoaderStart {
                    loader,
                    workers: 2,
                    duration_ms: 500.0,
                },
            );
        }
        build
    }

    #[test]
    fn fires() {
        assert!(run(check, rebuilding(12)).is_some());
        assert!(causes(rebuilding(12)).contains(&ID.to_owned()));
    }

    #[test]
    fn quiet() {
        assert!(run(check, rebuilding(1)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
