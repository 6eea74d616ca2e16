//! # frozen-forward
//!
//! ## What it detects
//! Most of the step is the forward pass of a part that is not trained: backward takes a small fraction of the forward pass's time.
//!
//! ## Why it is slow
//! A frozen encoder gives the same features for the same sample. With a fixed data set and no random augmentation in front of it, every
//! epoch computes them again.
//!
//! ## Example
//! ```python
//! for x, y in loader:
//!     with torch.no_grad():
//!         features = encoder(x)
//!     loss = criterion(head(features), y)
//! ```
//!
//! ## Use instead
//! ```python
//! with torch.no_grad():
//!     features = torch.cat([encoder(x) for x, _ in in_order])
//! loader = DataLoader(TensorDataset(features, labels), batch_size=1024, shuffle=True)
//! for f, y in loader:
//!     loss = criterion(head(f), y)
//! ```
//!
//! ## Evidence
//! Stack samples in the forward pass and in backward. Backward of a model that is trained whole takes about twice as long as its forward
//! pass.
//!
//! ## Fix
//! Compute the features once, keep them in memory or in a file, and train on them. With augmentation, compute features of a few versions
//! of each sample, or run the frozen part in bf16 under `torch.inference_mode()`.
//!
//! ## When it is wrong
//! Inputs never repeat, as in a stream, or random augmentation in front of the frozen part matters. Reported only for training on CPUs,
//! where the time of both passes is that of the stacks.
//!
//! ## References
//! PyTorch's transfer learning tutorial, "ConvNet as fixed feature extractor".
//! <https://docs.pytorch.org/tutorials/beginner/transfer_learning_tutorial.html>
//!
//! ---
//! ## 检测什么
//! 一步的大部分是不训练的那部分的前向：反向只占前向时间的一小部分。
//! ## 为什么慢
//! 冻结的编码器对同一样本总给出同样的特征。数据集固定、前面没有随机增强时，每个 epoch 都在重算。
//! ## 证据
//! 前向与反向中的栈采样。整体训练的模型，反向大约是前向的两倍。
//! ## 怎么改
//! 只算一次特征，放在内存或文件里，再在其上训练。有增强时，为每个样本算几个版本的特征，或让冻结部分在 `torch.inference_mode()` 下用 bf16。
//! ## 何时不成立
//! 输入不重复（例如数据流），或冻结部分之前的随机增强不可少。只对 CPU 上的训练报告，那里两个过程的时间就是栈的时间。
//! ## 参考
//! PyTorch 的迁移学习教程“ConvNet as fixed feature extractor”。
//! <https://docs.pytorch.org/tutorials/beginner/transfer_learning_tutorial.html>

use crate::account::Span;
use crate::account::activity::Activity;
use crate::account::center::{centers, in_backward, in_optimizer};
use crate::analysis::{Analysis, Device};
use crate::candidate::{Candidate, Reach, Stretch, severity_of};
use crate::lines::in_module;
use flatout_core::{Confidence, Evidence, Severity, message, units};
use flatout_record::Phase;

pub const ID: &str = "frozen-forward";
pub const WORST: Severity = Severity::Critical;

/// The share of the time that the forward pass takes, at least.
const FORWARD: f64 = 0.3;
/// Backward takes at most this part of the forward pass. One of a model trained whole takes about twice its time, one with half of its
/// layers frozen half of that.
const BACKWARD: f64 = 0.15;
/// The forward pass of what is trained, and the loop over stored features, stay.
const CERTAIN: f64 = 0.8;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let account = analysis.account.as_ref()?;
    // Samples that repeat come from a loader; what a policy sees in reinforcement learning does not repeat.
    if analysis.device() != Device::Cpu || analysis.train_loader().is_none() || window.steps == 0 {
        return None;
    }
    let wall_s = window.wall_s();
    let of_step = |span: &Span| {
        matches!(span.phase, Some(Phase::Compute | Phase::Other))
            && matches!(span.activity, Activity::Operators | Activity::Python)
    };
    let sum = |keep: &dyn Fn(&Span) -> bool| {
        let kept = account.spans.iter().filter(|span| of_step(span) && keep(span));
        kept.map(|span| span.seconds).sum::<f64>()
    };
    let is_forward =
        |span: &Span| of_step(span) && in_module(span) && !in_backward(span) && !in_optimizer(span);
    let forward_s = sum(&is_forward);
    let backward_s = sum(&in_backward);
    let share = forward_s / wall_s;
    // Without any backward this is no training that could be told apart.
    if share < FORWARD || backward_s <= 0.0 || backward_s > forward_s * BACKWARD {
        return None;
    }
    // The call in the training loop with most of it.
    let line = centers(account, analysis.data, is_forward).first()?.site.place();
    let shown = units::percent(share);
    Some(
        Candidate::new(
            ID,
            severity_of(share),
            message!(
                en: "The forward pass of a part that is not trained takes {shown} of the time",
                zh: "不训练的那部分的前向占 {shown} 的时间"
            ),
        )
        .confidence(Confidence::Medium)
        .evidence(
            analysis.in_window(
                Evidence::new(
                    message!(en: "time in the forward pass", zh: "前向的时间"),
                    share * 100.0,
                    "%",
                )
                .against(FORWARD * 100.0),
            ),
        )
        .evidence(
            analysis.in_window(
                Evidence::new(
                    message!(en: "backward, as part of the forward pass", zh: "反向相当于前向的"),
                    backward_s / forward_s * 100.0,
                    "%",
                )
                .against(BACKWARD * 100.0),
            ),
        )
        .place(Some(&line))
        .claims(
            Stretch::Dispatch,
            Reach::Specific,
            (forward_s - backward_s).max(0.0) * CERTAIN,
            forward_s,
        )
        .or_in(Stretch::Device)
        .or_in(Stretch::Other)
        .code(
            Some(&line),
            message!(
                en: "If the samples repeat without random augmentation, compute these features once and train on them",
                zh: "若样本重复出现且没有随机增强，只算一次这些特征，再在其上训练"
            ),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};
    use flatout_core::Place;
    use serde_json::json;

    fn passes(forward: u64, backward: u64) -> Build {
        let torch = "/v/lib/python3.11/site-packages/torch";
        let module = format!("Module._call_impl ({torch}/nn/modules/module.py:9)");
        let [below, step] = [
            format!("backward ({torch}/_tensor.py:600)"),
            format!("step ({torch}/optim/adam.py:9)"),
        ];
        Build::steady(20)
            .fact("device", "cpu")
            .loader(0, json!({"num_workers": 0, "batch_size": 32}))
            .phase(Phase::Compute, 1.0)
            .stack_of(
                &["main (t.py:30)", &module, "forward (net.py:8)"],
                forward,
                Some(Phase::Compute),
                false,
            )
            .stack_of(&["main (t.py:31)", &below], backward, Some(Phase::Compute), false)
            .stack_of(&["main (t.py:32)", &step], 4, Some(Phase::Compute), false)
    }

    #[test]
    fn fires() {
        let finding = run(check, passes(90, 5)).unwrap();
        assert_eq!(finding.rule, ID);
        assert_eq!(finding.places, [Place::new("t.py", 30)]);
    }

    #[test]
    fn quiet() {
        assert!(run(check, passes(40, 60)).is_none(), "a model trained whole");
        assert!(run(check, passes(60, 20)).is_none(), "a part is frozen");
        assert!(run(check, passes(90, 0)).is_none(), "no backward was seen");
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
