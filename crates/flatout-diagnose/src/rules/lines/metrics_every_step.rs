//! # metrics-every-step
//!
//! ## What it detects
//! scikit-learn, SciPy or another library computes metrics on the CPU at every step.
//!
//! ## Why it is slow
//! The predictions are copied to the CPU, and the loop waits for the library while the GPU idles.
//!
//! ## Example
//! ```python
//! auc = roc_auc_score(y.cpu(), logits.detach().cpu())
//! ```
//!
//! ## Use instead
//! ```python
//! metric = torchmetrics.AUROC(task="binary").cuda()
//! metric.update(logits.detach(), y)
//! ```
//!
//! ## Evidence
//! Stack samples of the training thread (or of a DataLoader worker) in this line and the functions it calls, and the source of the
//! line.
//!
//! ## Fix
//! Compute the metric every N steps or once per epoch, or compute it on the GPU, where the predictions already are.
//!
//! ## When it is wrong
//! The metric decides what the next step does.
//!
//! ## References
//! The guide "Why was the GPU idle?" explains how time is assigned to lines. TraceML also warns from 10% of the time.
//! <https://lightning.ai/docs/torchmetrics/stable/>
//!
//! ---
//! ## 检测什么
//! 每一步都用 scikit-learn、SciPy 等库在 CPU 上计算指标。
//! ## 为什么慢
//! 预测被拷贝到 CPU，循环等待库的结果；设备空闲。
//! ## 证据
//! 训练线程（或 DataLoader worker）停在该行及其调用中的采样，以及该行的源码。
//! ## 怎么改
//! 每 N 步或每个 epoch 计算一次，或直接在预测所在的 tensor 上计算。
//! ## 何时不成立
//! 下一步的行为取决于该指标。
//! ## 参考
//! 指南“GPU 为什么空闲？”说明了时间如何归到各行代码。TraceML 同样从 10% 起告警。
//! <https://lightning.ai/docs/torchmetrics/stable/>

use crate::analysis::Analysis;
use crate::candidate::Candidate;
use crate::known::{self, Known};
use flatout_core::Severity;

pub const ID: &str = "metrics-every-step";
pub const WORST: Severity = Severity::Critical;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    known::candidate(analysis, Known::Metrics, ID)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{CostlyLine, check as run, check_empty};

    fn costly(share: f64) -> CostlyLine {
        CostlyLine::new("score (t.py:12)", r#"auc = roc_auc_score(y, p)"#)
            .calls("roc_auc_score (/v/lib/python3.11/site-packages/sklearn/metrics/_ranking.py:9)")
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
