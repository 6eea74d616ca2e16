//! # blocking-call-in-loop
//!
//! ## What it detects
//! The training loop sleeps, reads or writes files, or waits for a lock, another thread or another process.
//!
//! ## Why it is slow
//! No work is launched in the meantime, so the GPU runs out of work.
//!
//! ## Example
//! ```python
//! for x, y in loader:
//!     loss = train_step(x, y)
//!     with open("status.json", "w") as file:
//!         json.dump({"step": step}, file)
//! ```
//!
//! ## Use instead
//! ```python
//! for step, (x, y) in enumerate(loader):
//!     loss = train_step(x, y)
//!     if step % 500 == 0:
//!         with open("status.json", "w") as file:
//!             json.dump({"step": step}, file)
//! ```
//!
//! ## Evidence
//! Stack samples of the training thread (or of a DataLoader worker) in this line and the functions it calls, and the source of the
//! line.
//!
//! ## Fix
//! Move the call out of the loop, make it every N steps, or do it in another thread.
//!
//! ## When it is wrong
//! The wait is intended, such as a rate limit.
//!
//! ## References
//! The guide "Why was the GPU idle?" explains how time is assigned to lines. TraceML also warns from 10% of the time.
//! See also `logging-every-step` and `checkpoint-too-often`.
//! <https://github.com/flatout/flatout/blob/main/docs/guide/diagnose.md>
//! <https://docs.python.org/3/library/concurrent.futures.html>
//!
//! ---
//! ## 检测什么
//! 训练线程在循环内睡眠、读写文件，或等待锁、线程或其他进程。
//! ## 为什么慢
//! 其间没有任何计算下发，设备会无事可做。
//! ## 证据
//! 训练线程（或 DataLoader worker）停在该行及其调用中的采样，以及该行的源码。
//! ## 怎么改
//! 把调用移出循环、每 N 步做一次，或放到另一个线程。
//! ## 何时不成立
//! 等待正是程序的目的，例如必须遵守的速率限制。
//! ## 参考
//! 指南“GPU 为什么空闲？”说明了时间如何归到各行代码。TraceML 同样从 10% 起告警。
//! 另见 `logging-every-step`、`checkpoint-too-often`。
//! <https://github.com/flatout/flatout/blob/main/docs/guide/diagnose.md>
//! <https://docs.python.org/3/library/concurrent.futures.html>

use crate::analysis::Analysis;
use crate::candidate::Candidate;
use crate::known::{self, Known};
use flatout_core::Severity;

pub const ID: &str = "blocking-call-in-loop";
pub const WORST: Severity = Severity::Critical;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    known::candidate(analysis, Known::BlockingCall, ID)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{CostlyLine, check as run, check_empty};

    fn costly(share: f64) -> CostlyLine {
        CostlyLine::new("poll (t.py:12)", r#"time.sleep(0.01)"#)
            .blocked(flatout_record::Blocked::Sleep)
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
