//! # discarded-gradients
//!
//! ## What it detects
//! Backward runs through a part of the model whose gradients are zeroed before that part's optimizer steps.
//!
//! ## Why it is slow
//! The backward pass of that part, about twice the time of its forward pass, has no effect. Its activations are also kept in memory.
//!
//! ## Example
//! ```python
//! fake = generator(noise)
//! loss = critic(fake).mean() - critic(real).mean()
//! loss.backward()               # also through the generator
//! critic_optimizer.step()
//! ```
//!
//! ## Use instead
//! ```python
//! with torch.no_grad():
//!     fake = generator(noise)
//! ```
//!
//! ## Evidence
//! The graphs of a few steps: the arithmetic that leads only to parameters of one optimizer, and whether that optimizer steps before its
//! gradients are gone. Stack samples in backward.
//!
//! ## Fix
//! Compute the input of the trained part under `torch.no_grad()`, or call `.detach()` on it.
//!
//! ## When it is wrong
//! The program reads these gradients itself, for example to log them.
//!
//! ## References
//! PyTorch's DCGAN tutorial detaches the generated images while the discriminator learns.
//! <https://docs.pytorch.org/tutorials/beginner/dcgan_faces_tutorial.html>
//!
//! ---
//! ## 检测什么
//! 反向经过了模型的某一部分，而它的梯度在该部分的优化器更新之前就被清零。
//! ## 为什么慢
//! 这部分的反向（约为其前向的两倍）没有任何作用，其激活还占着显存。
//! ## 证据
//! 几步的计算图：只通向某一个优化器的参数的运算量，以及该优化器是否在梯度消失之前更新过。反向中的栈采样。
//! ## 怎么改
//! 在 `torch.no_grad()` 下计算被训练部分的输入，或对它调用 `.detach()`。
//! ## 何时不成立
//! 程序自己要读这些梯度，例如写日志。
//! ## 参考
//! PyTorch 的 DCGAN 教程在训练判别器时对生成的图像做了 detach。
//! <https://docs.pytorch.org/tutorials/beginner/dcgan_faces_tutorial.html>

use crate::account::Span;
use crate::account::center::in_backward;
use crate::analysis::{Analysis, Device};
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE, severity_of};
use flatout_core::{Confidence, Evidence, Severity, message, units};

pub const ID: &str = "discarded-gradients";
pub const WORST: Severity = Severity::Critical;

/// Shares of the arithmetic are not shares of the time to the last percent.
const CERTAIN: f64 = 0.7;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let account = analysis.account.as_ref()?;
    let discarded = analysis.facts.number("backward.discarded")?.clamp(0.0, 1.0);
    let line = analysis.facts.place("backward.discarded")?;
    // A backward on a GPU only launches: its time is the device's, which no line of the account tells apart.
    let here = |span: &&Span| in_backward(span) && span.own().any(|frame| frame.place() == line);
    let backward_s: f64 = account.spans.iter().filter(here).map(|span| span.seconds).sum();
    let seconds = backward_s * discarded;
    let share = seconds / window.wall_s();
    if share < WARNING_SHARE {
        return None;
    }
    let (shown, of_line) = (units::percent(share), units::percent(discarded));
    let first = match analysis.device() {
        Device::Cuda => Stretch::Device,
        _ => Stretch::Dispatch,
    };
    Some(
        Candidate::new(
            ID,
            severity_of(share),
            message!(
                en: "{of_line} of this backward pass computes gradients that are zeroed unused: {shown} of the time",
                zh: "这次反向的 {of_line} 在计算未被使用就清零的梯度：占 {shown} 的时间"
            ),
        )
        .confidence(Confidence::High)
        .evidence(
            analysis.in_window(
                Evidence::new(
                    message!(en: "time in gradients that no optimizer uses", zh: "没有优化器使用的梯度所用的时间"),
                    share * 100.0,
                    "%",
                )
                .against(WARNING_SHARE * 100.0),
            ),
        )
        .place(Some(&line))
        .claims(first, Reach::Measured, seconds * CERTAIN, seconds)
        .or_in(Stretch::Device)
        .or_in(Stretch::Other)
        // Normalization and activations take time without much arithmetic: in a measured program all of this backward went.
        .up_to(backward_s)
        .code(
            Some(&line),
            message!(
                en: "Compute what enters the trained part under torch.no_grad(), or call .detach() on it",
                zh: "在 torch.no_grad() 下计算被训练部分的输入，或对它调用 .detach()"
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

    fn critic(share: f64, samples: u64) -> Build {
        let backward = "backward (/v/lib/python3.11/site-packages/torch/_tensor.py:600)";
        let step = "step (/v/lib/python3.11/site-packages/torch/optim/adam.py:9)";
        Build::steady(20)
            .fact("device", "cpu")
            .fact_at("backward.discarded", share, 31)
            .phase(Phase::Compute, 1.0)
            .stack_of(
                &["main (t.py:31)", backward],
                samples,
                Some(Phase::Compute),
                false,
            )
            .stack_of(
                &["main (t.py:40)", backward],
                90 - samples,
                Some(Phase::Compute),
                false,
            )
            .stack_of(&["main (t.py:32)", step], 10, Some(Phase::Compute), false)
    }

    #[test]
    fn fires() {
        let finding = run(check, critic(0.6, 60)).unwrap();
        assert_eq!(
            (finding.rule.as_str(), finding.severity),
            (ID, Severity::Critical)
        );
        assert_eq!(finding.places, [Place::new("t.py", 31)]);
        let gain = crate::diagnose(&critic(0.6, 60).done()).findings[0].gain.unwrap();
        assert!(gain.low > 1.2 && gain.high < 2.6, "{gain:?}");
    }

    #[test]
    fn quiet() {
        assert!(run(check, critic(0.6, 5)).is_none(), "a fast backward");
        assert!(run(check, Build::steady(20)).is_none(), "nothing is discarded");
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
