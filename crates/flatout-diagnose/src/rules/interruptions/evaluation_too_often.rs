//! # evaluation-too-often
//!
//! ## What it detects
//! Evaluation between training steps takes a large share of the time.
//!
//! ## Why it is slow
//! Nothing is learned during evaluation. Evaluating after every short epoch, or every few steps, can cost more than the training it
//! measures.
//!
//! ## Example
//! ```python
//! for epoch in range(epochs):
//!     train_epoch(model, loader)
//!     validate(model, validation_loader)
//! ```
//!
//! ## Use instead
//! ```python
//! for epoch in range(epochs):
//!     train_epoch(model, loader)
//!     if epoch % 5 == 0 or epoch == epochs - 1:
//!         validate(model, validation_loader)
//! ```
//!
//! ## Evidence
//! The share of the steady part spent in evaluation (between `eval()` and `train()`, or in loops under `no_grad`), how often, and how
//! long each evaluation takes.
//!
//! ## Fix
//! Evaluate so rarely that it takes at most 5% of the time, or evaluate on part of the validation data.
//!
//! ## When it is wrong
//! The purpose of the run is evaluation, or early stopping needs a score after every epoch.
//!
//! ## References
//! Typical configurations evaluate every 5 epochs. nsys-ai treats differences below 5% as noise.
//! See also `evaluation-every-epoch`, `evaluation-every-step` and `periodic-dips`.
//! <https://huggingface.co/docs/transformers/main_classes/trainer>
//!
//! ---
//! ## 检测什么
//! 训练步骤之间的评估一再占用大量时间。
//! ## 为什么慢
//! 评估时不学习。每个短 epoch 之后或每隔几步就评估，代价可能超过它所衡量的训练。
//! ## 证据
//! 稳定阶段中评估（`eval()` … `train()`，或 `no_grad` 下的循环）的时间、次数、每次多久。
//! ## 怎么改
//! 降低评估频率，使其只占二十分之一的时间；或只用一部分验证数据。
//! ## 何时不成立
//! 本来就以评估为目的的运行，或需要每个 epoch 评估的早停。
//! ## 参考
//! 常见配置每 5 个 epoch 评估一次。nsys-ai 把 5% 以下的差异视为噪声。
//! 另见 `evaluation-every-epoch`、`evaluation-every-step`、`periodic-dips`。
//! <https://huggingface.co/docs/transformers/main_classes/trainer>

use crate::analysis::Analysis;
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE, severity_of};
use flatout_core::{Evidence, Severity, message, units};
use flatout_record::Phase;

pub const ID: &str = "evaluation-too-often";
pub const WORST: Severity = Severity::Critical;

/// Once is no habit.
const TIMES: u64 = 2;
/// What evaluation may cost after the fix.
const GOAL: f64 = 0.05;

/// Steps between two evaluations after the fix.
pub fn wanted_steps(analysis: &Analysis) -> Option<u64> {
    let window = analysis.window.as_ref()?;
    let times = analysis.spans.eval.count.max(1);
    let every = (window.steps / times).max(1);
    Some(every * rarer(window.share(Phase::Eval)) as u64)
}

/// How many times less often: e/k of the other time should be GOAL, k = e (1 − GOAL) / ((1 − e) GOAL).
fn rarer(share: f64) -> f64 {
    (share * (1.0 - GOAL) / ((1.0 - share).max(0.01) * GOAL))
        .ceil()
        .max(1.0)
}

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let (share, spans) = (window.share(Phase::Eval), &analysis.spans.eval);
    if share < WARNING_SHARE || spans.count < TIMES {
        return None;
    }
    let (times, each) = (spans.count, units::duration(spans.mean_s()));
    let shown = units::percent(share);
    let rarer = rarer(share);
    let every = (window.steps / times.max(1)).max(1);
    let seconds = window.seconds(Phase::Eval);
    let candidate = Candidate::new(
        ID,
        severity_of(share),
        message!(
            en: "Evaluation takes {shown} of the time: {times} × {each}, about every {every} steps",
            zh: "评估占 {shown} 的时间：共 {times} 次，每次 {each}，约每 {every} 步一次"
        ),
    )
    .evidence(analysis.phase_evidence(Phase::Eval, WARNING_SHARE))
    .evidence(analysis.in_window(
        Evidence::new(message!(en: "evaluations", zh: "评估次数"), times as f64, "").against(TIMES as f64),
    ))
    .place(set_at(analysis).as_ref())
    .place(spans.place.as_ref())
    .claims(
        Stretch::Eval,
        Reach::Measured,
        seconds * (1.0 - 1.0 / rarer),
        seconds,
    );
    // Our own trainer has a setting for it.
    if let Some(now) = analysis.facts.number("eval.interval") {
        let to = now * rarer;
        let say = message!(en: "--eval-interval {to}: evaluate every {to} epochs", zh: "--eval-interval {to}：每 {to} 个 epoch 评估一次");
        return Some(candidate.setting("eval.interval", Some(now.to_string()), to, say));
    }
    Some(candidate.code(
        spans.place.as_ref(),
        message!(
            en: "Evaluate {rarer} times less often (about every {} steps), or on fewer batches",
            zh: "把评估频率降到原来的 1/{rarer}（约每 {} 步一次），或减少评估的 batch 数",
            every * rarer as u64
        ),
    ))
}

/// Where the user sets how often a framework should evaluate.
fn set_at(analysis: &Analysis) -> Option<flatout_core::Place> {
    analysis.mention(&[
        "eval_steps",
        "eval_strategy",
        "val_check_interval",
        "check_val_every_n_epoch",
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};
    use flatout_record::EventKind;

    fn evaluating(share: f64) -> Build {
        Build::steady(20)
            .phase(Phase::Eval, share)
            .phase(Phase::Compute, 1.0 - share)
            .each_second(move || EventKind::Eval {
                duration_ms: share * 1e3,
                batches: Some(10),
                place: None,
            })
    }

    #[test]
    fn fires() {
        let finding = run(check, evaluating(0.5)).unwrap();
        assert!(finding.fixes.len() == 1 && finding.severity == Severity::Critical);
        assert_eq!(causes(evaluating(0.5)), [ID]);
    }

    #[test]
    fn our_own_trainer_has_a_setting_for_it() {
        let finding = run(check, evaluating(0.5).fact("eval.interval", 1)).unwrap();
        let [
            flatout_core::Fix::Setting {
                setting, from, to, ..
            },
        ] = &finding.fixes[..]
        else {
            panic!("{:?}", finding.fixes);
        };
        assert_eq!((setting.as_str(), from.as_deref()), ("eval.interval", Some("1")));
        assert!(to.parse::<u64>().unwrap() > 1);
    }

    #[test]
    fn quiet() {
        assert!(run(check, evaluating(0.03)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
