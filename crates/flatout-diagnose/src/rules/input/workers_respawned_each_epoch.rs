//! # workers-respawned-each-epoch
//!
//! ## What it detects
//! The DataLoader workers are restarted at each epoch, and their startup takes a noticeable share of the time.
//!
//! ## Why it is slow
//! With `persistent_workers=False`, every `for batch in loader` forks or spawns all workers, sends the dataset to them, and waits for
//! the first batch with an empty queue.
//!
//! ## Example
//! ```python
//! loader = DataLoader(dataset, num_workers=8)
//! ```
//!
//! ## Use instead
//! ```python
//! loader = DataLoader(dataset, num_workers=8, persistent_workers=True)
//! ```
//!
//! ## Evidence
//! How often the DataLoader's iterator was created in the steady part, the time until each first batch, and the time spent starting
//! and stopping workers.
//!
//! ## Fix
//! Set `persistent_workers=True`.
//!
//! ## When it is wrong
//! The dataset is changed in the main process between epochs: the restart passes the change on to the workers.
//!
//! ## References
//! PyTorch's `DataLoader` documentation on `persistent_workers`.
//! <https://docs.pytorch.org/docs/stable/data.html>
//!
//! ---
//! ## 检测什么
//! loader 的 worker 每个 epoch 都重新启动，启动占用了可见的时间。
//! ## 为什么慢
//! `persistent_workers=False` 时，每次 `for batch in loader` 都要 fork 或 spawn 全部 worker、把数据集复制过去，并在空队列上等第一个 batch。
//! ## 证据
//! 稳定阶段内创建迭代器的次数、每次等到第一个 batch 的时间，以及启动和结束 worker 的时间。
//! ## 怎么改
//! `persistent_workers=True`。
//! ## 何时不成立
//! 两个 epoch 之间在主进程中修改数据集，并依靠重启把修改传给 worker。
//! ## 参考
//! PyTorch `DataLoader` 文档中的 `persistent_workers`。
//! <https://docs.pytorch.org/docs/stable/data.html>

use crate::analysis::Analysis;
use crate::candidate::{Candidate, Reach, Stretch, severity_of};
use flatout_core::{Evidence, Severity, message, units};

pub const ID: &str = "workers-respawned-each-epoch";
pub const WORST: Severity = Severity::Critical;

/// Once may be the window's edge; three are a habit.
const STARTS: u64 = 3;
/// The share of the time from which it is worth a line: PyTorch's plugin speaks of loader time from 5%.
const SHARE: f64 = 0.05;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let loader = analysis.train_loader()?;
    let workers = loader.num_workers.filter(|workers| *workers > 0)?;
    if loader.persistent_workers == Some(true) || loader.starts < STARTS {
        return None;
    }
    let (least_s, most_s) = analysis.restart_s(loader.start_s);
    let share = least_s / window.wall_s();
    if share < SHARE {
        return None;
    }
    let starts = loader.starts;
    let each = units::duration(least_s / starts as f64);
    // A first batch has to be made in any case: one batch's work a start stays.
    let stays_s = loader.prepare_ms().unwrap_or(0.0) / 1e3 * starts as f64;
    let goes_s = |spent_s: f64| (spent_s - stays_s).max(spent_s * 0.2);
    Some(
        Candidate::new(
            ID,
            severity_of(share),
            message!(
                en: "Starting {workers} workers {starts} times took {each} each time",
                zh: "{workers} 个 worker 重新启动了 {starts} 次，每次 {each}"
            ),
        )
        .detail(message!(
            en: "Each epoch stops the workers, and the next one starts with an empty queue; steps wait until \
            the new workers deliver.",
            zh: "每个 epoch 结束时 worker 被销毁，下一个 epoch 从空队列开始，训练要等新的 worker 送来数据。"
        ))
        .evidence(analysis.in_window(
            Evidence::new(message!(en: "time starting and stopping workers", zh: "启动和结束 worker 的时间"), share * 100.0, "%")
                .against(SHARE * 100.0),
        ))
        .evidence(analysis.in_window(
            Evidence::new(message!(en: "worker starts", zh: "worker 启动次数"), starts as f64, "")
                .against(STARTS as f64),
        ))
        .place(loader.place.as_ref())
        .claims(Stretch::Data, Reach::Measured, goes_s(least_s) * 0.7, goes_s(most_s))
        .explains(most_s)
        .setting(
            "loader.persistent_workers",
            Some("false".into()),
            "true",
            message!(
                en: "persistent_workers=True: the workers stay alive between epochs",
                zh: "persistent_workers=True：worker 在 epoch 之间保持存活"
            ),
        )
        .code(
            loader.place.as_ref(),
            message!(en: "DataLoader(…, persistent_workers=True)", zh: "DataLoader(…, persistent_workers=True)"),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};
    use flatout_record::{EventKind, Phase};
    use serde_json::json;

    fn epochs(persistent: bool, duration_ms: f64) -> Build {
        Build::steady(20)
            .phase(Phase::Data, 0.4)
            .phase(Phase::Compute, 0.6)
            .cpus(4)
            .loader(0, json!({"num_workers": 2, "persistent_workers": persistent}))
            .each_second(|| EventKind::LoaderStart {
                loader: 0,
                workers: 2,
                duration_ms,
            })
    }

    #[test]
    fn fires() {
        let finding = run(check, epochs(false, 350.0)).unwrap();
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!(causes(epochs(false, 350.0)), [ID]);
    }

    #[test]
    fn quiet() {
        assert!(run(check, epochs(true, 350.0)).is_none());
        assert!(run(check, epochs(false, 5.0)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
