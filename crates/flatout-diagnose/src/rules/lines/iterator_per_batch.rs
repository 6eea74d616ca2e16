//! # iterator-per-batch
//!
//! ## What it detects
//! The loop calls `next(iter(loader))` for every batch.
//!
//! ## Why it is slow
//! Each call starts a new epoch: it shuffles all indices, starts the workers, and discards their other batches.
//!
//! ## Example
//! ```python
//! for step in range(steps):
//!     x, y = next(iter(loader))
//! ```
//!
//! ## Use instead
//! ```python
//! for step, (x, y) in enumerate(loader):
//!     ...
//! ```
//!
//! ## Evidence
//! Stack samples of the training thread (or of a DataLoader worker) in this line and the functions it calls, and the source of the
//! line.
//!
//! ## Fix
//! Create the iterator once and call `next()` on it. Create a new one only when it is exhausted.
//!
//! ## When it is wrong
//! Never. Note that batches then differ from each other, as they should.
//!
//! ## References
//! The guide "Why was the GPU idle?" explains how time is assigned to lines. TraceML also warns from 10% of the time.
//! See also `loader-rebuilt` and `workers-respawned-each-epoch`.
//! <https://github.com/flatout/flatout/blob/main/docs/guide/diagnose.md>
//! <https://docs.pytorch.org/docs/stable/data.html>
//!
//! ---
//! ## 检测什么
//! 循环对每个 batch 都调用 `next(iter(loader))`。
//! ## 为什么慢
//! 每次调用都重新开始一个 epoch：打乱全部索引、启动 worker，并丢弃它们的其他 batch。
//! ## 证据
//! 训练线程（或 DataLoader worker）停在该行及其调用中的采样，以及该行的源码。
//! ## 怎么改
//! 只建立一次迭代器并对它调用 `next()`；耗尽后再新建。
//! ## 何时不成立
//! 没有坏处，只是各 batch 从此互不相同，本该如此。
//! ## 参考
//! 指南“GPU 为什么空闲？”说明了时间如何归到各行代码。TraceML 同样从 10% 起告警。
//! 另见 `loader-rebuilt`、`workers-respawned-each-epoch`。
//! <https://github.com/flatout/flatout/blob/main/docs/guide/diagnose.md>
//! <https://docs.pytorch.org/docs/stable/data.html>

use crate::analysis::Analysis;
use crate::candidate::Candidate;
use crate::known::{self, Known};
use flatout_core::Severity;

pub const ID: &str = "iterator-per-batch";
pub const WORST: Severity = Severity::Critical;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    known::candidate(analysis, Known::IteratorPerBatch, ID)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{CostlyLine, check as run, check_empty};

    fn costly(share: f64) -> CostlyLine {
        CostlyLine::new("train (t.py:12)", r#"x, y = next(iter(loader))"#).in_batches(share)
    }

    #[test]
    fn fires() {
        let finding = run(check, costly(0.4).build()).unwrap();
        assert_eq!(
            (finding.rule.as_str(), finding.severity),
            (ID, Severity::Critical)
        );
        assert_eq!(finding.places[0].line, 12);
        assert_eq!(finding.fixes.len(), 1);
    }

    #[test]
    fn quiet() {
        assert!(run(check, costly(0.05).build()).is_none());
        let other = CostlyLine::new("other (t.py:12)", "x = self.rows[index] + 1").between_steps(0.05);
        assert!(run(check, other.build()).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
