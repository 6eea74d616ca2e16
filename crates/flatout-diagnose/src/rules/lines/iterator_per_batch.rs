//! # iterator-per-batch
//!
//! ## What it detects
//! The loop calls `next(iter(loader))` for every batch.
//! ## Why it is slow
//! Each call starts the epoch again: it shuffles all indices, starts the workers and throws their other batches away.
//! ## Evidence
//! Samples of the training thread (or of a loader worker) at this line and below it, and the source of the line.
//! ## Fix
//! Build the iterator once and call `next()` on it; start a new one when it is exhausted.
//! ## When it is wrong
//! Never harmful, except that batches then differ from each other, as they should.
//! ## References
//! The account of the steady steps: `account.rs`. Shares from 10% as TraceML's first level.
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
//! 稳定步骤的时间账：`account.rs`。占比从 10% 起，与 TraceML 的第一级相同。

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
