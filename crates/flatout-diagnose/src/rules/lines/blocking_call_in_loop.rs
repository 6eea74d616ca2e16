//! # blocking-call-in-loop
//!
//! ## What it detects
//! The training thread sleeps, reads or writes files, or waits for a lock, a thread or another process inside the loop.
//! ## Why it is slow
//! Nothing is launched meanwhile, so the device runs out of work.
//! ## Evidence
//! Samples of the training thread (or of a loader worker) at this line and below it, and the source of the line.
//! ## Fix
//! Take the call out of the loop, do it every N steps, or do it in another thread.
//! ## When it is wrong
//! The wait is what the program is for, such as a rate limit that must be kept.
//! ## References
//! The account of the steady steps: `account.rs`. Shares from 10% as TraceML's first level.
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
//! 稳定步骤的时间账：`account.rs`。占比从 10% 起，与 TraceML 的第一级相同。

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
