//! # python-loop-per-sample
//!
//! ## What it detects
//! A Python loop prepares the samples: characters, tokens, pixels or points, one by one.
//!
//! ## Why it is slow
//! The interpreter needs about 0.1 µs for the simplest operation; an array operation processes thousands of values in that time.
//!
//! ## Example
//! ```python
//! tokens = [self.vocabulary[character] for character in text]
//! ```
//!
//! ## Use instead
//! ```python
//! tokens = self.table[np.frombuffer(text.encode(), dtype=np.uint8)]
//! ```
//!
//! ## Evidence
//! Stack samples of the training thread (or of a DataLoader worker) in this line and the functions it calls, and the source of the
//! line.
//!
//! ## Fix
//! Replace the loop with operations on whole arrays, or prepare the result once before training.
//!
//! ## When it is wrong
//! The loop is short, and the work is in the functions that it calls.
//!
//! ## References
//! The guide "Why was the GPU idle?" explains how time is assigned to lines. TraceML also warns from 10% of the time.
//! See also `slow-batch-code` and `dataframe-row-per-sample`.
//! <https://github.com/flatout/flatout/blob/main/docs/guide/diagnose.md>
//! <https://numpy.org/doc/stable/user/basics.broadcasting.html>
//!
//! ---
//! ## 检测什么
//! 用 Python 循环准备样本：逐个字符、token、像素或点。
//! ## 为什么慢
//! 解释器做最简单的操作也要约 0.1 微秒；数组运算在这段时间里能处理上千个元素。
//! ## 证据
//! 训练线程（或 DataLoader worker）停在该行及其调用中的采样，以及该行的源码。
//! ## 怎么改
//! 用整个数组的运算代替循环，或在训练前一次性准备好结果。
//! ## 何时不成立
//! 循环很短，而工作在它调用的函数里。
//! ## 参考
//! 指南“GPU 为什么空闲？”说明了时间如何归到各行代码。TraceML 同样从 10% 起告警。
//! 另见 `slow-batch-code`、`dataframe-row-per-sample`。
//! <https://github.com/flatout/flatout/blob/main/docs/guide/diagnose.md>
//! <https://numpy.org/doc/stable/user/basics.broadcasting.html>

use crate::analysis::Analysis;
use crate::candidate::Candidate;
use crate::known::{self, Known};
use flatout_core::Severity;

pub const ID: &str = "python-loop-per-sample";
pub const WORST: Severity = Severity::Critical;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    known::candidate(analysis, Known::PythonLoopPerSample, ID)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{CostlyLine, check as run, check_empty};

    fn costly(share: f64) -> CostlyLine {
        CostlyLine::new("encode (t.py:12)", r#"out.append(table[token])"#)
            .in_loop("for token in text")
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
