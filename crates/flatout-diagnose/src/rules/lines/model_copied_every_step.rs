//! # model-copied-every-step
//!
//! ## What it detects
//! The model or its `state_dict` is copied inside the loop: `copy.deepcopy`, a weight average, a snapshot.
//!
//! ## Why it is slow
//! Every parameter is allocated and copied individually from Python.
//!
//! ## Example
//! ```python
//! for x, y in loader:
//!     train_step(x, y)
//!     average = copy.deepcopy(model)
//! ```
//!
//! ## Use instead
//! ```python
//! average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999))
//! for x, y in loader:
//!     train_step(x, y)
//!     average.update_parameters(model)
//! ```
//!
//! ## Evidence
//! Stack samples of the training thread (or of a DataLoader worker) in this line and the functions it calls, and the source of the
//! line.
//!
//! ## Fix
//! Copy every N steps, or update the copy in place with `torch._foreach_lerp_` or `torch.optim.swa_utils`.
//!
//! ## When it is wrong
//! Never, as long as the copy is recent enough for its purpose.
//!
//! ## References
//! The guide "Why was the GPU idle?" explains how time is assigned to lines. TraceML also warns from 10% of the time.
//! <https://docs.pytorch.org/docs/stable/optim.html#weight-averaging-swa-and-ema>
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
//! 指南“GPU 为什么空闲？”说明了时间如何归到各行代码。TraceML 同样从 10% 起告警。
//! <https://docs.pytorch.org/docs/stable/optim.html#weight-averaging-swa-and-ema>

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
