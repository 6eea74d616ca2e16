//! # memory-released-every-step
//!
//! ## What it detects
//! `gc.collect()` or `torch.cuda.empty_cache()` runs in every step.
//! ## Why it is slow
//! A collection walks every object of the program; an emptied cache must be allocated again by the driver, which waits for the device.
//! ## Evidence
//! Samples of the training thread (or of a loader worker) at this line and below it, and the source of the line.
//! ## Fix
//! Remove the call. Python and the caching allocator release memory by themselves.
//! ## When it is wrong
//! Cycles that hold device memory must go at once: then call it every N steps.
//! ## References
//! The account of the steady steps: `account.rs`. Shares from 10% as TraceML's first level.
//!
//! ---
//! ## 检测什么
//! 每一步都调用 `gc.collect()` 或 `torch.cuda.empty_cache()`。
//! ## 为什么慢
//! 回收要遍历程序的所有对象；清空的缓存要由驱动重新分配，并等待设备。
//! ## 证据
//! 训练线程（或 DataLoader worker）停在该行及其调用中的采样，以及该行的源码。
//! ## 怎么改
//! 删除该调用。Python 和缓存分配器会自行释放内存。
//! ## 何时不成立
//! 占有显存的循环引用必须立即释放时：每 N 步调用一次。
//! ## 参考
//! 稳定步骤的时间账：`account.rs`。占比从 10% 起，与 TraceML 的第一级相同。

use crate::analysis::Analysis;
use crate::candidate::Candidate;
use crate::known::{self, Known};
use flatout_core::Severity;

pub const ID: &str = "memory-released-every-step";
pub const WORST: Severity = Severity::Critical;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    known::candidate(analysis, Known::MemoryReleased, ID)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{CostlyLine, check as run, check_empty};

    fn costly(share: f64) -> CostlyLine {
        CostlyLine::new("cleanup (t.py:12)", r#"gc.collect()"#).between_steps(share)
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
