//! # costly-operator
//!
//! ## What it detects
//! One line that calls PyTorch operators directly, outside a module, takes a large share of the step: a one-hot matmul, a constant
//! that is recomputed, a check of every tensor.
//!
//! ## Why it is slow
//! The operator does work that the model does not need at every step, or does it in an expensive way.
//!
//! ## Example
//! ```python
//! features = F.one_hot(ids, 50_000).float() @ table
//! ```
//!
//! ## Use instead
//! ```python
//! features = F.embedding(ids, table)
//! ```
//!
//! ## Evidence
//! Stack samples of the training thread (or of a DataLoader worker) in this line and the functions it calls, and the source of the
//! line.
//!
//! ## Fix
//! If the result does not change, compute it once before the loop. Otherwise use a cheaper operator, or run it every N steps.
//!
//! ## When it is wrong
//! The line is the model's own arithmetic, written by hand.
//!
//! ## References
//! The guide "Why was the GPU idle?" explains how time is assigned to lines. TraceML also warns from 10% of the time.
//! See also `python-loop-in-step` and `elementwise-bound`.
//! <https://github.com/flatout/flatout/blob/main/docs/guide/diagnose.md>
//! <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>
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
//! 指南“GPU 为什么空闲？”说明了时间如何归到各行代码。TraceML 同样从 10% 起告警。
//! 另见 `python-loop-in-step`、`elementwise-bound`。
//! <https://github.com/flatout/flatout/blob/main/docs/guide/diagnose.md>
//! <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>

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
    use crate::testing::{Build, CostlyLine, check as run, check_empty};

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

    fn convolution(share: f64) -> Build {
        let line = CostlyLine::new("forward (t.py:12)", "wet = F.conv1d(dry, response)");
        line.in_operators(share).build().fact("device", "cpu")
    }

    #[test]
    fn fires_for_a_convolution_that_is_not_trained() {
        let finding = run(check, convolution(0.9)).unwrap();
        assert_eq!((finding.rule.as_str(), finding.places[0].line), (ID, 12));
    }

    #[test]
    fn quiet() {
        assert!(run(check, costly(0.05).build()).is_none());
        // Backward takes half as long: it is the model.
        assert!(run(check, convolution(0.6)).is_none());
        let other = CostlyLine::new("other (t.py:12)", "x = self.rows[index] + 1").between_steps(0.05);
        assert!(run(check, other.build()).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
