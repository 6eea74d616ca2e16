//! # costly-operator
//!
//! ## What it detects
//! One line that calls operators of PyTorch directly, outside of a module, holds a large share of the step: a one-hot matmul, a constant that is computed again, a check of every tensor.
//! ## Why it is slow
//! The operator does work that the model does not need in every step, or does it in a costly way.
//! ## Evidence
//! Samples of the training thread (or of a loader worker) at this line and below it, and the source of the line.
//! ## Fix
//! Compute it once before the loop if it does not change, use a cheaper operator, or do it every N steps.
//! ## When it is wrong
//! The line is the model's own arithmetic, written by hand.
//! ## References
//! The account of the steady steps: `account.rs`. Shares from 10% as TraceML's first level.
//!
//! ---
//! ## 检测什么
//! 某一行直接调用 PyTorch 算子（不经过 module），占一步的很大一部分：one-hot 乘法、重复计算的常量、对每个 tensor 的检查。
//! ## 为什么慢
//! 该算子做了模型并非每一步都需要的工作，或做法代价太高。
//! ## 证据
//! 训练线程（或 DataLoader worker）停在该行及其调用中的采样，以及该行的源码。
//! ## 怎么改
//! 若结果不变就在循环前计算一次，换用更便宜的算子，或每 N 步做一次。
//! ## 何时不成立
//! 该行是手写的模型计算本身。
//! ## 参考
//! 稳定步骤的时间账：`account.rs`。占比从 10% 起，与 TraceML 的第一级相同。

use crate::analysis::Analysis;
use crate::candidate::Candidate;
use crate::known::{self, Known};
use flatout_core::Severity;

pub const ID: &str = "costly-operator";
pub const WORST: Severity = Severity::Critical;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    known::candidate(analysis, Known::CostlyOperator, ID)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{CostlyLine, check as run, check_empty};

    fn costly(share: f64) -> CostlyLine {
        CostlyLine::new("loss (t.py:12)", r#"x = F.one_hot(ids, n).float()"#).in_operators(share)
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
