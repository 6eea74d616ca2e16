//! # dense-embedding-gradients
//!
//! ## What it detects
//! Large embedding tables get dense gradients, although a batch looks up a small part of their rows, and the optimizer takes a visible
//! part of the step.
//!
//! ## Why it is slow
//! Backward fills a gradient as large as the table with zeros, and the optimizer reads and writes the whole table and its state at every
//! step. The time depends on the size of the table, not on the batch.
//!
//! ## Example
//! ```python
//! self.items = nn.Embedding(2_000_000, 64)
//! optimizer = torch.optim.Adam(model.parameters())
//! ```
//!
//! ## Use instead
//! ```python
//! self.items = nn.Embedding(2_000_000, 64, sparse=True)
//! tables = torch.optim.SparseAdam([model.items.weight])
//! optimizer = torch.optim.Adam(rest_of_the_parameters)
//! ```
//!
//! ## Evidence
//! The graph of a few steps: the size of each table with a dense gradient and the rows that the batch looked up. Stack samples in the
//! optimizer.
//!
//! ## Fix
//! `nn.Embedding(…, sparse=True)`, with `torch.optim.SparseAdam` for the tables (or SGD without momentum for everything). Hash or prune
//! ids that hardly occur.
//!
//! ## When it is wrong
//! Weight decay or momentum must change rows that a batch does not contain. SparseAdam updates only the rows of the batch, so losses
//! differ slightly.
//!
//! ## References
//! PyTorch's documentation of `torch.nn.Embedding` and `torch.optim.SparseAdam`.
//! <https://docs.pytorch.org/docs/stable/generated/torch.optim.SparseAdam.html>
//!
//! ---
//! ## 检测什么
//! 大的 embedding 表得到稠密梯度，而一个 batch 只查其中很少的行，同时优化器占了一步中可见的一部分。
//! ## 为什么慢
//! 反向要把与整张表同样大的梯度填零，优化器每一步又读写整张表及其状态。时间取决于表的大小，而不是 batch。
//! ## 证据
//! 几步的计算图：每张有稠密梯度的表的大小，以及 batch 查到的行数。优化器中的栈采样。
//! ## 怎么改
//! `nn.Embedding(…, sparse=True)`，表用 `torch.optim.SparseAdam`（或全部用不带动量的 SGD）。很少出现的 id 可以哈希或去掉。
//! ## 何时不成立
//! 权重衰减或动量必须改变 batch 里没有的行。SparseAdam 只更新 batch 的行，loss 会略有不同。
//! ## 参考
//! PyTorch 的 `torch.nn.Embedding` 与 `torch.optim.SparseAdam` 页面。
//! <https://docs.pytorch.org/docs/stable/generated/torch.optim.SparseAdam.html>

use crate::account::activity::Activity;
use crate::account::center::{centers, in_optimizer};
use crate::analysis::{Analysis, Device};
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE, severity_of};
use flatout_core::{Confidence, Evidence, Severity, message, units};

pub const ID: &str = "dense-embedding-gradients";
pub const WORST: Severity = Severity::Critical;

/// A smaller table is updated in microseconds.
const VALUES: f64 = 1e6;
/// The part of the rows that a batch looks up, at most.
const USED: f64 = 0.1;
/// The tables may share the optimizer's time with the other parameters.
const CERTAIN: f64 = 0.6;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let account = analysis.account.as_ref()?;
    let values = analysis
        .facts
        .number("embedding.gradient_values")
        .filter(|values| *values >= VALUES)?;
    let used = analysis.facts.number("embedding.used_values")? / values;
    if used > USED {
        return None;
    }
    let updating = account.spans.iter().filter(|span| in_optimizer(span));
    let updating_s: f64 = updating.map(|span| span.seconds).sum();
    let wall_s = window.wall_s();
    let share = updating_s / wall_s;
    if share < WARNING_SHARE {
        return None;
    }
    // A gradient of that size is fresh memory at every step.
    let faults_s = account.seconds(Activity::FaultingPages);
    let wasted = 1.0 - used;
    let line = centers(account, analysis.data, in_optimizer)
        .first()
        .map(|center| center.hot.place());
    let (size, looked_up) = (units::count(values), units::percent(used));
    let first = match analysis.device() {
        Device::Cuda => Stretch::Device,
        _ => Stretch::Dispatch,
    };
    Some(
        Candidate::new(
            ID,
            severity_of(share),
            message!(
                en: "The optimizer updates {size} embedding values per step; the batch uses {looked_up} of them",
                zh: "优化器每步更新 {size} 个 embedding 值，batch 只用到其中 {looked_up}"
            ),
        )
        .confidence(Confidence::High)
        .evidence(
            analysis.in_window(
                Evidence::new(
                    message!(en: "time in the optimizer", zh: "优化器的时间"),
                    share * 100.0,
                    "%",
                )
                .against(WARNING_SHARE * 100.0),
            ),
        )
        .evidence(
            Evidence::new(
                message!(en: "part of the tables that a step uses", zh: "一步用到的表的部分"),
                used * 100.0,
                "%",
            )
            .against(USED * 100.0),
        )
        .place(line.as_ref())
        .claims(
            first,
            Reach::Measured,
            updating_s * wasted * CERTAIN,
            updating_s * wasted,
        )
        .or_in(Stretch::Device)
        .or_in(Stretch::Other)
        .up_to((updating_s + faults_s) * wasted)
        .code(
            line.as_ref(),
            message!(
                en: "nn.Embedding(…, sparse=True) with torch.optim.SparseAdam for the tables and the present optimizer \
                for the rest; rows outside the batch are then left as they are",
                zh: "nn.Embedding(…, sparse=True)，表用 torch.optim.SparseAdam，其余仍用现在的优化器；此时 batch 之外的行保持不变"
            ),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};
    use flatout_core::Place;
    use flatout_record::Phase;

    fn table(values: f64, used: f64, updating: u64) -> Build {
        let step = "step (/v/lib/python3.11/site-packages/torch/optim/adam.py:9)";
        let backward = "backward (/v/lib/python3.11/site-packages/torch/_tensor.py:600)";
        Build::steady(20)
            .fact("device", "cpu")
            .fact("embedding.gradient_values", values)
            .fact("embedding.used_values", used)
            .phase(Phase::Compute, 1.0)
            .stack_of(
                &["main (t.py:31)", backward],
                100 - updating,
                Some(Phase::Compute),
                false,
            )
            .stack_of(&["main (t.py:32)", step], updating, Some(Phase::Compute), false)
    }

    #[test]
    fn fires() {
        let finding = run(check, table(13e6, 4e4, 60)).unwrap();
        assert_eq!(
            (finding.rule.as_str(), finding.severity),
            (ID, Severity::Critical)
        );
        assert_eq!(finding.places, [Place::new("t.py", 32)]);
        let first = &crate::diagnose(&table(13e6, 4e4, 60).done()).findings[0];
        let gain = first.gain.unwrap();
        assert!(first.rule == ID && gain.low > 1.4 && gain.high > 2.2, "{gain:?}");
    }

    #[test]
    fn quiet() {
        assert!(run(check, table(13e6, 8e6, 60)).is_none(), "most rows are used");
        assert!(run(check, table(13e4, 4e2, 60)).is_none(), "a small table");
        assert!(run(check, table(13e6, 4e4, 2)).is_none(), "a fast update");
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
