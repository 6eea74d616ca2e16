//! # model-copied-every-step
//!
//! ## What it detects
//! The model or its `state_dict` is copied in the loop: `copy.deepcopy`, an average of weights, a snapshot.
//! ## Why it is slow
//! Every parameter is allocated and copied, one by one, from Python.
//! ## Evidence
//! Samples of the training thread (or of a loader worker) at this line and below it, and the source of the line.
//! ## Fix
//! Copy every N steps, or update the copy in place with `torch._foreach_lerp_` or `torch.optim.swa_utils`.
//! ## When it is wrong
//! Never harmful, as long as the copy is still current enough.
//! ## References
//! The account of the steady steps: `account.rs`. Shares from 10% as TraceML's first level.
//!
//! ---
//! ## 检测什么
//! 在循环中复制模型或其 `state_dict`：`copy.deepcopy`、权重平均、快照。
//! ## 为什么慢
//! 每个参数都由 Python 逐个分配和复制。
//! ## 证据
//! 训练线程（或 DataLoader worker）停在该行及其调用中的采样，以及该行的源码。
//! ## 怎么改
//! 每 N 步复制一次，或用 `torch._foreach_lerp_`、`torch.optim.swa_utils` 就地更新副本。
//! ## 何时不成立
//! 只要副本仍足够新，就没有坏处。
//! ## 参考
//! 稳定步骤的时间账：`account.rs`。占比从 10% 起，与 TraceML 的第一级相同。

use crate::analysis::Analysis;
use crate::candidate::Candidate;
use crate::known::{self, Known};
use flatout_core::Severity;

pub const ID: &str = "model-copied-every-step";
pub const WORST: Severity = Severity::Critical;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    known::candidate(analysis, Known::ModelCopied, ID)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{CostlyLine, check as run, check_empty};

    fn costly(share: f64) -> CostlyLine {
        CostlyLine::new("average (t.py:12)", r#"teacher = copy.deepcopy(model)"#).between_steps(share)
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
