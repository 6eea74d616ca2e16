//! # cpu-metric-in-step
//!
//! ## What it detects
//! A scikit-learn or SciPy metric is computed at every step of a training loop.
//!
//! ## Why it is slow
//! The predictions are copied to the CPU, the CPU computes, and the GPU waits. Metrics that sort (`roc_auc_score`) take milliseconds
//! by themselves.
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
//! A function of `sklearn.metrics` or `scipy.stats` is called at every step, without an interval.
//!
//! ## Fix
//! Collect predictions on the GPU and compute the metric once per epoch, or use `torchmetrics`, which stays on the GPU.
//!
//! ## When it is wrong
//! The loop has only a few long steps.
//!
//! ## References
//! torchmetrics documentation.
//! <https://lightning.ai/docs/torchmetrics/stable/>
//!
//! ---
//! ## 检测什么
//! 训练循环的每一步都计算 scikit-learn 或 SciPy 的指标。
//! ## 为什么慢
//! 预测值要拷到主机，由 CPU 计算，GPU 等待。需要排序的指标（`roc_auc_score`）本身就要几毫秒。
//! ## 证据
//! 在每一步的路径上调用 `sklearn.metrics` 或 `scipy.stats` 的函数，没有间隔条件。
//! ## 怎么改
//! 在设备上收集预测值，每个 epoch 计算一次；或使用留在 GPU 上的 `torchmetrics`。
//! ## 何时不成立
//! 步数很少、每步很长的循环。
//! ## 参考
//! torchmetrics 文档“Overview”。
//! <https://lightning.ai/docs/torchmetrics/stable/>

use crate::rules::prelude::*;

pub const ID: &str = "cpu-metric-in-step";
pub const SEVERITY: Severity = Severity::Warning;
pub const CHECK: Check = Check::Module(check);

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    for (call, hot) in cuda_step_calls(project, module) {
        let is_metric = call
            .call_name()
            .is_some_and(|name| name.starts_with("sklearn.metrics.") || name.starts_with("scipy.stats."));
        if hot != Hot::Step || !is_metric {
            continue;
        }
        let text = call.callee().map_or("", Code::text);
        report
            .at(
                call,
                message!(en: "`{text}` is computed on the CPU at every step", zh: "`{text}` 在每一步都由 CPU 计算"),
            )
            .advice(message!(
                en: "collect the values on the GPU and compute the metric once per epoch",
                zh: "在 GPU 上收集，每个 epoch 计算一次"
            ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\nfrom sklearn.metrics import roc_auc_score\nmodel.cuda()\nfor x, y in loader:\n    out = model(x)\n    out.mean().backward()\n    auc = roc_auc_score(y, out.detach().cpu())\n";

    #[test]
    fn fires() {
        assert_eq!(findings_of(ID, &[("train.py", FIRES)]).len(), 1);
    }

    #[test]
    fn quiet() {
        let after = FIRES.replace("    auc =", "auc =");
        assert!(findings_of(ID, &[("train.py", &after)]).is_empty());
    }

    #[test]
    fn look_alike() {
        let own = FIRES.replace("from sklearn.metrics", "from torchmetrics.functional");
        assert!(findings_of(ID, &[("train.py", &own)]).is_empty());
    }
}
