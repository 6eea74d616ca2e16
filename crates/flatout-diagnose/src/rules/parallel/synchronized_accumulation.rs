//! # synchronized-accumulation
//!
//! ## What it detects
//! Gradients are accumulated over several batches per optimizer step, and each `backward()` call synchronizes the ranks.
//!
//! ## Why it is slow
//! The optimizer step needs only the sum. Each synchronization transfers all gradients once more and makes every rank wait for the
//! slowest.
//!
//! ## Example
//! ```python
//! for step, (x, y) in enumerate(loader):
//!     criterion(model(x), y).backward()
//!     if step % 4 == 3:
//!         optimizer.step()
//! ```
//!
//! ## Use instead
//! ```python
//! for step, (x, y) in enumerate(loader):
//!     last = step % 4 == 3
//!     with contextlib.nullcontext() if last else model.no_sync():
//!         criterion(model(x), y).backward()
//!     if last:
//!         optimizer.step()
//! ```
//!
//! ## Evidence
//! DistributedDataParallel's gradient synchronizations per optimizer step, and their time.
//!
//! ## Fix
//! Use `with model.no_sync():` around all but the last micro-batch of a step; in Accelerate, `with accelerator.accumulate(model):`.
//! Lightning and the transformers Trainer do this automatically.
//!
//! ## When it is wrong
//! Several losses are reduced one after the other on purpose, as with alternating models.
//!
//! ## References
//! PyTorch's documentation of `DistributedDataParallel.no_sync`.
//! <https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html>
//!
//! ---
//! ## 检测什么
//! 每个优化器步累积多个 batch 的梯度，而每次 `backward()` 都在各 rank 之间同步。
//! ## 为什么慢
//! 这一步只需要梯度之和。每次同步都会把全部梯度再传一遍，并让所有 rank 等最慢的一个。
//! ## 证据
//! 每个优化器步中 DistributedDataParallel 同步梯度的次数及其时间。
//! ## 怎么改
//! 除一步中的最后一个 micro-batch 外，都放在 `with model.no_sync():` 中；Accelerate 用 `with accelerator.accumulate(model):`。Lightning 和 transformers 的 Trainer 会自动处理。
//! ## 何时不成立
//! 有意依次归约的多个损失，例如交替训练的模型。
//! ## 参考
//! PyTorch 文档：`DistributedDataParallel.no_sync`。
//! <https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html>

use crate::analysis::Analysis;
use crate::analysis::collectives::GRADIENTS;
use crate::candidate::{Candidate, Reach, Stretch, severity_of};
use flatout_core::{Evidence, Severity, message, units};

pub const ID: &str = "synchronized-accumulation";
pub const WORST: Severity = Severity::Critical;

/// One per step is needed; two models may share an optimizer's step.
const PER_STEP: f64 = 1.8;
/// A smaller loss is not worth an edit.
const LEAST_SHARE: f64 = 0.02;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref().filter(|window| window.steps > 0)?;
    let collectives = analysis.collectives.as_ref()?;
    let sites = collectives.sites.iter().filter(|site| site.op == GRADIENTS);
    let first = sites.clone().next()?;
    let count: u64 = sites.clone().map(|site| site.count).sum();
    let per_step = count as f64 / window.steps as f64;
    // Another rank's gradients come with every one of its batches too.
    let accumulates = analysis
        .facts
        .number("step.accumulation")
        .is_none_or(|batches| batches > 1.0);
    if per_step < PER_STEP || !accumulates {
        return None;
    }
    let spent: f64 = sites
        .filter_map(|site| Some(site.wait_s? + site.transfer_s?))
        .sum();
    let seconds = spent * (1.0 - 1.0 / per_step);
    let share = seconds / window.wall_s();
    if share < LEAST_SHARE && spent > 0.0 {
        return None;
    }
    let times = units::significant(per_step);
    let candidate = Candidate::new(
        ID,
        severity_of(share).max(Severity::Warning),
        message!(
            en: "Gradients are synchronized {times} times per step; once is enough",
            zh: "每步同步梯度 {times} 次，一次就够了"
        ),
    )
    .evidence(
        analysis.in_window(
            Evidence::new(
                message!(en: "gradient synchronizations per step", zh: "每步同步梯度的次数"),
                per_step,
                "",
            )
            .against(1.0),
        ),
    )
    .evidence(analysis.in_window(Evidence::new(
        message!(en: "time in the redundant synchronizations", zh: "多余同步的时间"),
        share * 100.0,
        "%",
    )))
    .place(first.place.as_ref())
    .code(
        first.place.as_ref(),
        message!(
            en: "with model.no_sync(): around all but the last micro-batch of each step",
            zh: "除一步中的最后一个 micro-batch 外，都放在 with model.no_sync(): 中"
        ),
    );
    Some(if seconds > 0.0 {
        candidate.claims(Stretch::Communication, Reach::Measured, seconds * 0.5, seconds)
    } else {
        candidate
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};

    #[test]
    fn fires() {
        // 100 synchronizations per second.
        let build = Build::steady(20).steps_per_s(25).collective(100.0, 300.0, 0.0);
        let finding = run(check, build).unwrap();
        assert!(finding.title.en.contains(" 4"), "{}", finding.title.en);
        assert_eq!(finding.places[0].to_string(), "train.py:80");
    }

    #[test]
    fn quiet() {
        assert!(run(check, Build::steady(20).collective(100.0, 300.0, 0.0)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
