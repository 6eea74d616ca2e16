//! # python-loop-in-step
//!
//! ## What it detects
//! A Python loop in forward, in the loss or elsewhere in the step iterates over samples, time steps, classes or parameters.
//!
//! ## Why it is slow
//! Each iteration launches its own operators. The interpreter and the launches take longer than the arithmetic.
//!
//! ## Example
//! ```python
//! loss = sum(criterion(out[i], y[i]) for i in range(len(y))) / len(y)
//! ```
//!
//! ## Use instead
//! ```python
//! loss = criterion(out, y)
//! ```
//!
//! ## Evidence
//! Stack samples of the training thread (or of a DataLoader worker) in this line and the functions it calls, and the source of the
//! line.
//!
//! ## Fix
//! Replace the loop with one operation over the whole dimension: batched matmul, cumsum, gather, `nn.LSTM`, `torch.vmap`.
//!
//! ## When it is wrong
//! The loop iterates over a few large layers, and its time is the model's own work.
//!
//! ## References
//! The guide "Why was the GPU idle?" explains how time is assigned to lines. TraceML also warns from 10% of the time.
//! See also `host-bound-dispatch` and `tiny-kernels`.
//! <https://github.com/flatout/flatout/blob/main/docs/guide/diagnose.md>
//! <https://docs.pytorch.org/docs/stable/notes/broadcasting.html>
//!
//! ---
//! ## 检测什么
//! forward、loss 或步骤中其他地方的 Python 循环，逐个处理样本、时间步、类别或参数。
//! ## 为什么慢
//! 每一轮都下发自己的算子；解释器和下发的开销超过计算本身。
//! ## 证据
//! 训练线程（或 DataLoader worker）停在该行及其调用中的采样，以及该行的源码。
//! ## 怎么改
//! 用对整个维度的一次运算代替循环：批量 matmul、cumsum、gather、`nn.LSTM`、`torch.vmap`。
//! ## 何时不成立
//! 循环只经过几个大的层，其时间就是模型本身的计算。
//! ## 参考
//! 指南“GPU 为什么空闲？”说明了时间如何归到各行代码。TraceML 同样从 10% 起告警。
//! 另见 `host-bound-dispatch`、`tiny-kernels`。
//! <https://github.com/flatout/flatout/blob/main/docs/guide/diagnose.md>
//! <https://docs.pytorch.org/docs/stable/notes/broadcasting.html>

use crate::analysis::Analysis;
use crate::candidate::Candidate;
use crate::known::{self, Known};
use flatout_core::Severity;

pub const ID: &str = "python-loop-in-step";
pub const WORST: Severity = Severity::Critical;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    known::candidate(analysis, Known::PythonLoopInStep, ID)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{CostlyLine, check as run, check_empty};

    fn costly(share: f64) -> CostlyLine {
        CostlyLine::new("forward (t.py:12)", r#"h = cell(x[:, t], h)"#)
            .in_loop("for t in range(x.size(1))")
            .between_steps(share)
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
