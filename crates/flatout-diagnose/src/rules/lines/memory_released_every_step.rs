//! # memory-released-every-step
//!
//! ## What it detects
//! `gc.collect()` or `torch.cuda.empty_cache()` is called at every step.
//!
//! ## Why it is slow
//! A collection traverses every object of the program. After emptying the cache, memory must be allocated from the driver again,
//! which waits for the GPU.
//!
//! ## Example
//! ```python
//! for x, y in loader:
//!     train_step(x, y)
//!     torch.cuda.empty_cache()
//! ```
//!
//! ## Use instead
//! ```python
//! for x, y in loader:
//!     train_step(x, y)
//! ```
//!
//! ## Evidence
//! Stack samples of the training thread (or of a DataLoader worker) in this line and the functions it calls, and the source of the
//! line.
//!
//! ## Fix
//! Remove the call: Python and the caching allocator release memory on their own.
//!
//! ## When it is wrong
//! Reference cycles that hold GPU memory must be freed at once: call it every N steps then.
//!
//! ## References
//! The guide "Why was the GPU idle?" explains how time is assigned to lines. TraceML also warns from 10% of the time.
//! <https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management>
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
//! 指南“GPU 为什么空闲？”说明了时间如何归到各行代码。TraceML 同样从 10% 起告警。
//! <https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management>

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
