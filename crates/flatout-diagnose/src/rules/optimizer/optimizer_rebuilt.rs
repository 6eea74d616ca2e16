//! # optimizer-rebuilt
//!
//! ## What it detects
//! A new optimizer is created repeatedly during training, at every step or every few steps.
//!
//! ## Why it is slow
//! Creating an optimizer iterates over all parameters, and its first step allocates its state. The state is also lost: momentum and
//! Adam's second moments start from zero each time, so training needs more steps.
//!
//! ## Example
//! ```python
//! for x, y in loader:
//!     optimizer = torch.optim.Adam(model.parameters(), lr=schedule(step))
//!     train_step(x, y, optimizer)
//! ```
//!
//! ## Use instead
//! ```python
//! optimizer = torch.optim.Adam(model.parameters())
//! for x, y in loader:
//!     optimizer.param_groups[0]["lr"] = schedule(step)
//!     train_step(x, y, optimizer)
//! ```
//!
//! ## Evidence
//! The number of optimizers created, compared with the steps, and the line that created the last one.
//!
//! ## Fix
//! Create the optimizer once, before the loop. To change the learning rate, set `group["lr"]` or use a scheduler; to add parameters,
//! call `add_param_group`.
//!
//! ## When it is wrong
//! Many models are trained one after the other (cross-validation, ensembles), for a few steps each.
//!
//! ## References
//! PyTorch's documentation of `torch.optim`: the optimizer holds the current state.
//! <https://docs.pytorch.org/docs/stable/optim.html>
//!
//! ---
//! ## 检测什么
//! 训练过程中一再创建新的优化器，每一步或每几步一次。
//! ## 为什么慢
//! 创建时要遍历所有参数，每个新优化器的第一步又要重新分配状态。它还会遗忘：动量和 Adam 的二阶矩每次从零开始，训练需要更多步。
//! ## 证据
//! 创建了多少个优化器，对比步数，以及创建最后一个的代码行。
//! ## 怎么改
//! 在循环之前创建一次。要换学习率就改 `group["lr"]` 或用 scheduler；有新参数就用 `add_param_group`。
//! ## 何时不成立
//! 依次训练许多模型（交叉验证、集成），每个只有几步。
//! ## 参考
//! PyTorch 的 `torch.optim` 页面：优化器对象保存当前状态。
//! <https://docs.pytorch.org/docs/stable/optim.html>

use crate::analysis::Analysis;
use crate::candidate::{Candidate, Reach, Stretch, severity_of};
use flatout_core::{Confidence, Evidence, Place, Severity, message};

pub const ID: &str = "optimizer-rebuilt";
pub const WORST: Severity = Severity::Critical;

/// Two or three optimizers and a few phases of training stay below.
const MADE: f64 = 10.0;
/// A new one at least every so many steps.
const STEPS: f64 = 20.0;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let made = analysis
        .facts
        .number("optimizer.made")
        .filter(|made| *made >= MADE)?;
    let steps: u64 = analysis.data.steps.iter().map(|tick| tick.steps).sum();
    if made * STEPS < steps as f64 {
        return None;
    }
    let place = analysis.facts.place("optimizer.made");
    let (count, of) = (made.round(), steps);
    let candidate = Candidate::new(
        ID,
        Severity::Warning,
        message!(
            en: "{count} optimizers were created in {of} steps: each one starts without its state",
            zh: "{of} 步中创建了 {count} 个优化器：每个都从没有状态开始"
        ),
    )
    .confidence(Confidence::High)
    .evidence(analysis.in_run(
        Evidence::new(message!(en: "optimizers created", zh: "创建的优化器"), made, "").against(MADE),
    ))
    .place(place.as_ref())
    .code(
        place.as_ref(),
        message!(
            en: "Create the optimizer once, before the loop; to change the learning rate, set group[\"lr\"] \
            or use a scheduler",
            zh: "在循环之前创建一次优化器；要换学习率就改 group[\"lr\"] 或用 scheduler"
        ),
    );
    // What the line itself costs surely goes; the state that is allocated again, too.
    let share = place.map_or(0.0, |place| at_line(analysis, &place));
    if share <= 0.0 {
        return Some(candidate);
    }
    let mut candidate = candidate
        .claims(
            Stretch::Dispatch,
            Reach::Measured,
            share * 0.7 * window.wall_s(),
            share * window.wall_s(),
        )
        .or_in(Stretch::Other)
        .stands_alone();
    candidate.finding.severity = severity_of(share).max(Severity::Warning);
    Some(candidate)
}

/// The share of the time at a line and below it.
fn at_line(analysis: &Analysis, place: &Place) -> f64 {
    let Some(account) = &analysis.account else {
        return 0.0;
    };
    let there = account
        .spans
        .iter()
        .filter(|span| span.own().any(|frame| frame.place() == *place));
    there.map(|span| span.seconds).sum::<f64>() / account.wall_s
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};
    use flatout_record::Phase;

    /// 2000 steps.
    fn made(count: u64) -> Build {
        Build::steady(20).fact_at("optimizer.made", count, 31)
    }

    #[test]
    fn fires() {
        let finding = run(check, made(2000)).unwrap();
        assert_eq!((finding.severity, finding.gain), (Severity::Warning, None));
        assert_eq!(finding.places, [Place::new("t.py", 31)]);
    }

    #[test]
    fn claims_the_time_of_its_line() {
        let adam = "Adam.__init__ (/v/lib/python3.11/site-packages/torch/optim/adam.py:9)";
        let build = made(2000)
            .stack_of(&["main (t.py:31)", adam], 40, Some(Phase::Compute), false)
            .stack_of(&["main (t.py:33)"], 60, Some(Phase::Compute), false);
        let finding = &crate::diagnose(&build.done()).findings[0];
        assert_eq!(
            (finding.rule.as_str(), finding.severity),
            (ID, Severity::Critical)
        );
        assert!((finding.gain.unwrap().high - 1.0 / 0.6).abs() < 0.05);
    }

    #[test]
    fn quiet() {
        assert!(run(check, made(3)).is_none());
        assert!(run(check, made(50)).is_none(), "one every forty steps");
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
