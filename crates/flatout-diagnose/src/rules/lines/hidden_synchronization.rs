//! # hidden-synchronization
//!
//! ## What it detects
//! A line of the step needs a value from the GPU to go on: a tensor in `if`, `nonzero`, a boolean mask, `.any()`, `.item()`, and the GPU's trace shows several such waits per step.
//! ## Why it is slow
//! The host stops until the GPU has finished everything, and the GPU idles until the host launches again.
//! ## Evidence
//! Samples of the training thread (or of a loader worker) at this line and below it, and the source of the line.
//! ## Fix
//! Keep the decision on the device (`torch.where`, `clamp`, masks by multiplication), or check every N steps.
//! ## When it is wrong
//! The value decides which computation comes next.
//! ## References
//! The account of the steady steps: `account.rs`. Shares from 10% as TraceML's first level.
//!
//! ---
//! ## 检测什么
//! 一步之内的某一行需要 GPU 上的值才能继续：`if` 中的 tensor、`nonzero`、布尔掩码、`.any()`、`.item()`，且 GPU 的记录显示每步有多次这样的等待。
//! ## 为什么慢
//! 主机停下来等 GPU 全部算完，GPU 又空等主机再次下发。
//! ## 证据
//! 训练线程（或 DataLoader worker）停在该行及其调用中的采样，以及该行的源码。
//! ## 怎么改
//! 把判断留在设备上（`torch.where`、`clamp`、乘以掩码），或每 N 步检查一次。
//! ## 何时不成立
//! 该值决定接下来做哪种计算。
//! ## 参考
//! 稳定步骤的时间账：`account.rs`。占比从 10% 起，与 TraceML 的第一级相同。

use crate::analysis::Analysis;
use crate::candidate::Candidate;
use crate::known::{self, Known};
use flatout_core::Severity;

pub const ID: &str = "hidden-synchronization";
pub const WORST: Severity = Severity::Critical;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    known::candidate(analysis, Known::HiddenSync, ID)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{CostlyLine, check as run, check_empty};

    fn costly(share: f64) -> CostlyLine {
        CostlyLine::new("loss (t.py:12)", r#"if (h.abs() > LIMIT).any():"#)
            .in_operators(share)
            .syncs(24)
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
