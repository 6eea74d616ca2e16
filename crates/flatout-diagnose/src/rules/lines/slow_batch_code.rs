//! # slow-batch-code
//!
//! ## What it detects
//! One line of the dataset, its transforms or the collate function takes much of the time that steps wait for batches.
//!
//! ## Why it is slow
//! The training thread or its workers spend that time on this line for every sample or batch.
//!
//! ## Example
//! ```python
//! def __getitem__(self, index):
//!     x = self.x[index]
//!     return (x - self.x.mean(0)) / self.x.std(0)
//! ```
//!
//! ## Use instead
//! ```python
//! def __init__(self, x):
//!     self.x = (x - x.mean(0)) / x.std(0)
//!
//! def __getitem__(self, index):
//!     return self.x[index]
//! ```
//!
//! ## Evidence
//! Stack samples of the training thread (or of a DataLoader worker) in this line and the functions it calls, and the source of the
//! line.
//!
//! ## Fix
//! Do it once before training, make it cheaper, or use more workers if CPUs are free.
//!
//! ## When it is wrong
//! The work is necessary and cannot be made cheaper: only workers or a faster CPU help.
//!
//! ## References
//! The guide "Why was the GPU idle?" explains how time is assigned to lines. TraceML also warns from 10% of the time.
//! See also `file-read-per-sample`, `python-loop-per-sample` and `slow-collate`.
//! <https://github.com/flatout/flatout/blob/main/docs/guide/diagnose.md>
//! <https://docs.pytorch.org/docs/stable/data.html>
//!
//! ---
//! ## 检测什么
//! 数据集、变换或 collate 函数中的某一行占用了等待 batch 的大部分时间。
//! ## 为什么慢
//! 训练线程或其 worker 对每个样本或 batch 都把时间花在这一行。
//! ## 证据
//! 训练线程（或 DataLoader worker）停在该行及其调用中的采样，以及该行的源码。
//! ## 怎么改
//! 在训练前一次做完、降低其成本，或在有空闲 CPU 时增加 worker。
//! ## 何时不成立
//! 这项工作必不可少且无法更便宜：只有 worker 或更快的 CPU 有用。
//! ## 参考
//! 指南“GPU 为什么空闲？”说明了时间如何归到各行代码。TraceML 同样从 10% 起告警。
//! 另见 `file-read-per-sample`、`python-loop-per-sample`、`slow-collate`。
//! <https://github.com/flatout/flatout/blob/main/docs/guide/diagnose.md>
//! <https://docs.pytorch.org/docs/stable/data.html>

use crate::analysis::Analysis;
use crate::candidate::Candidate;
use crate::known;
use flatout_core::Severity;

pub const ID: &str = "slow-batch-code";
pub const WORST: Severity = Severity::Critical;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    known::batch_code(analysis, ID)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{CostlyLine, check as run, check_empty};

    fn costly(share: f64) -> CostlyLine {
        CostlyLine::new("__getitem__ (t.py:12)", r#"x = self.blur(x)"#).in_batches(share)
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
