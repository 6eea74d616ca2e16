//! # logging-every-step
//!
//! ## What it detects
//! Printing, logging or writing events takes a large share of every step.
//!
//! ## Why it is slow
//! Formatting, writing and flushing run in the training thread. Reading values of GPU tensors also waits for the GPU.
//!
//! ## Example
//! ```python
//! for step, (x, y) in enumerate(loader):
//!     loss = train_step(x, y)
//!     print(step, loss.item(), flush=True)
//! ```
//!
//! ## Use instead
//! ```python
//! for step, (x, y) in enumerate(loader):
//!     loss = train_step(x, y)
//!     if step % 100 == 0:
//!         print(step, loss.item())
//! ```
//!
//! ## Evidence
//! Stack samples of the training thread (or of a DataLoader worker) in this line and the functions it calls, and the source of the
//! line.
//!
//! ## Fix
//! Log every N steps, keep files open, and do not flush after each line.
//!
//! ## When it is wrong
//! The output of every step is needed: write it from another thread.
//!
//! ## References
//! The guide "Why was the GPU idle?" explains how time is assigned to lines. TraceML also warns from 10% of the time.
//! See also `metrics-every-step` and `hidden-synchronization`.
//! <https://github.com/flatout/flatout/blob/main/docs/guide/diagnose.md>
//! <https://docs.pytorch.org/docs/stable/tensorboard.html>
//!
//! ---
//! ## 检测什么
//! 打印、写日志或写事件文件占用每一步的大量时间。
//! ## 为什么慢
//! 格式化、写入和 flush 都在训练线程中进行；读取设备上的值还要等待设备。
//! ## 证据
//! 训练线程（或 DataLoader worker）停在该行及其调用中的采样，以及该行的源码。
//! ## 怎么改
//! 每 N 步记录一次，保持文件打开，不要逐行 flush。
//! ## 何时不成立
//! 每一步的输出都不可少：可交给另一个线程。
//! ## 参考
//! 指南“GPU 为什么空闲？”说明了时间如何归到各行代码。TraceML 同样从 10% 起告警。
//! 另见 `metrics-every-step`、`hidden-synchronization`。
//! <https://github.com/flatout/flatout/blob/main/docs/guide/diagnose.md>
//! <https://docs.pytorch.org/docs/stable/tensorboard.html>

use crate::analysis::Analysis;
use crate::candidate::Candidate;
use crate::known::{self, Known};
use flatout_core::Severity;

pub const ID: &str = "logging-every-step";
pub const WORST: Severity = Severity::Critical;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    known::candidate(analysis, Known::Logging, ID)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{CostlyLine, check as run, check_empty};

    fn costly(share: f64) -> CostlyLine {
        CostlyLine::new("report (t.py:12)", r#"print(step, loss.item(), flush=True)"#).between_steps(share)
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
