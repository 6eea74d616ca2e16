//! # slow-sampler
//!
//! ## What it detects
//! Choosing the indices of the next batch takes a large share of the time.
//!
//! ## Why it is slow
//! The sampler runs in the training process, even with workers, and processes the whole dataset for each index.
//!
//! ## Example
//! ```python
//! def __iter__(self):
//!     for _ in range(len(self.weights)):
//!         yield random.choices(range(len(self.weights)), self.weights)[0]
//! ```
//!
//! ## Use instead
//! ```python
//! def __iter__(self):
//!     yield from torch.multinomial(self.weights, len(self.weights), replacement=True).tolist()
//! ```
//!
//! ## Evidence
//! Stack samples of the training thread (or of a DataLoader worker) in this line and the functions it calls, and the source of the
//! line.
//!
//! ## Fix
//! Draw the indices of a whole epoch at once with `torch.randperm`, `torch.multinomial` or NumPy.
//!
//! ## When it is wrong
//! The indices depend on the result of the last step: make a single draw cheaper instead.
//!
//! ## References
//! The guide "Why was the GPU idle?" explains how time is assigned to lines. TraceML also warns from 10% of the time.
//! See also `rows-fetched-one-by-one` and `slow-batch-code`.
//! <https://github.com/flatout/flatout/blob/main/docs/guide/diagnose.md>
//! <https://docs.pytorch.org/docs/stable/data.html#data-loading-order-and-sampler>
//!
//! ---
//! ## 检测什么
//! 选取下一个 batch 的索引占用大量时间。
//! ## 为什么慢
//! sampler 在训练进程中运行（有 worker 时也一样），每取一个索引都遍历整个数据集。
//! ## 证据
//! 训练线程（或 DataLoader worker）停在该行及其调用中的采样，以及该行的源码。
//! ## 怎么改
//! 用 `torch.randperm`、`torch.multinomial` 或 NumPy 一次性生成整个 epoch 的索引。
//! ## 何时不成立
//! 索引取决于上一步的结果时：应降低单次抽取的成本。
//! ## 参考
//! 指南“GPU 为什么空闲？”说明了时间如何归到各行代码。TraceML 同样从 10% 起告警。
//! 另见 `rows-fetched-one-by-one`、`slow-batch-code`。
//! <https://github.com/flatout/flatout/blob/main/docs/guide/diagnose.md>
//! <https://docs.pytorch.org/docs/stable/data.html#data-loading-order-and-sampler>

use crate::analysis::Analysis;
use crate::candidate::Candidate;
use crate::known::{self, Known};
use flatout_core::Severity;

pub const ID: &str = "slow-sampler";
pub const WORST: Severity = Severity::Critical;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    known::candidate(analysis, Known::SlowSampler, ID)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{CostlyLine, check as run, check_empty};

    fn costly(share: f64) -> CostlyLine {
        CostlyLine::new(
            "BalancedSampler.__iter__ (t.py:12)",
            r#"yield random.choices(self.all, self.weights)[0]"#,
        )
        .in_batches(share)
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
