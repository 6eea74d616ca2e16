//! # slow-sampler
//!
//! ## What it detects
//! Choosing the indices of the next batch takes a large share of the time.
//! ## Why it is slow
//! The sampler runs in the training process, also with workers, and works through the whole data set for each index.
//! ## Evidence
//! Samples of the training thread (or of a loader worker) at this line and below it, and the source of the line.
//! ## Fix
//! Draw the indices of a whole epoch at once with `torch.randperm`, `torch.multinomial` or NumPy.
//! ## When it is wrong
//! The indices depend on the last step's result: then make one draw cheaper.
//! ## References
//! The account of the steady steps: `account.rs`. Shares from 10% as TraceML's first level.
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
//! 稳定步骤的时间账：`account.rs`。占比从 10% 起，与 TraceML 的第一级相同。

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
