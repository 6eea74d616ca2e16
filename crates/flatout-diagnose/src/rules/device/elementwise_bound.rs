//! # elementwise-bound
//!
//! ## What it detects
//! The GPU is busy but spends much of the step in elementwise and reduction kernels, which move memory and compute little.
//!
//! ## Why it is slow
//! Each operator reads its inputs from memory and writes its result back, and the next one reads it again, while the arithmetic units
//! wait. A compiler fuses a chain of operators into one kernel that reads and writes only once.
//!
//! ## Example
//! ```python
//! def forward(self, x):
//!     return x * torch.sigmoid(x) + self.bias
//! ```
//!
//! ## Use instead
//! ```python
//! @torch.compile
//! def forward(self, x):
//!     return x * torch.sigmoid(x) + self.bias
//! ```
//!
//! ## Evidence
//! The time in elementwise, reduction and softmax kernels, from GPU traces, and the line that launches most of them.
//!
//! ## Fix
//! `torch.compile(model)`. Without it: in-place and fused operators, mixed precision (half the bytes), and `channels_last` for
//! convolutions.
//!
//! ## When it is wrong
//! A few large operators that do not follow each other cannot be fused. Some programs cannot be compiled by `torch.compile`.
//!
//! ## References
//! He, "Making Deep Learning Go Brrrr From First Principles" (2022). Ansel et al., "PyTorch 2" (2024): TorchInductor trains 1.4 times
//! faster in the geometric mean over 180 models.
//! <https://horace.io/brrr_intro.html>
//!
//! ---
//! ## 检测什么
//! GPU 很忙，但一步中的很多时间花在逐元素和归约 kernel 上，它们主要读写内存，计算很少。
//! ## 为什么慢
//! 每个算子从内存读输入、把结果写回，下一个再读一遍，计算单元在等待。编译器把一串算子变成一个 kernel，只读写一次。
//! ## 证据
//! 跟踪得到的逐元素、归约和 softmax kernel 的时间，以及下发其中大部分的代码行。
//! ## 怎么改
//! `torch.compile(model)`；不用它时：原地与融合算子、混合精度（字节减半）、卷积用 `channels_last`。
//! ## 何时不成立
//! 少数互不相连的大算子无法融合。`torch.compile` 处理不了的程序。
//! ## 参考
//! He《Making Deep Learning Go Brrrr From First Principles》（2022）：受内存限制的算子与融合。PyTorch 2 论文（2024）：TorchInductor 在 180 个模型上训练几何平均快 1.4 倍。
//! <https://horace.io/brrr_intro.html>

use crate::account::activity::Activity;
use crate::account::center::{in_backward, in_optimizer, single_lines};
use crate::analysis::kernels::MEMORY_BOUND;
use crate::analysis::{Analysis, Device, compiles};
use crate::candidate::{Candidate, Reach, Stretch, severity_of};
use flatout_core::{Confidence, Evidence, Place, Severity, message, units};

pub const ID: &str = "elementwise-bound";
pub const WORST: Severity = Severity::Critical;

/// The GPU must be what limits.
const GPU_BUSY: f64 = 0.7;
/// In a transformer under autocast a quarter to a third of the time is elementwise.
const SHARE: f64 = 0.5;
/// Of that time, fusing removes two thirds where chains are long, and a seventh surely.
const GOES: f64 = 0.66;
const SURELY: f64 = 0.15;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let kernels = analysis.kernels.as_ref()?;
    if analysis.device() != Device::Cuda || analysis.device_busy_share()? < GPU_BUSY {
        return None;
    }
    let share = kernels.share(&MEMORY_BOUND);
    if share < SHARE || tried_to_compile(analysis) || super::attention_unfused::check(analysis).is_some() {
        return None;
    }
    let shown = units::percent(share);
    let line = kernels.line_of(&MEMORY_BOUND).filter(|line| line.share >= 0.3);
    let place = line
        .as_ref()
        .map(|line| line.place())
        .or_else(|| costliest_line(analysis));
    let candidate = Candidate::new(
        ID,
        // Fusing chains of operators is a chance, not a fault: what surely goes decides.
        severity_of(share * SURELY),
        message!(
            en: "Memory-bound elementwise and reduction kernels take {shown} of the time",
            zh: "逐元素与归约 kernel 占 {shown} 的时间：受内存带宽限制"
        ),
    )
    .confidence(Confidence::Medium)
    .evidence(
        analysis.in_window(
            Evidence::new(
                message!(en: "time in memory-bound kernels", zh: "受内存限制的 kernel 的时间"),
                share * 100.0,
                "%",
            )
            .against(SHARE * 100.0),
        ),
    )
    .place(place.as_ref())
    .claims(
        Stretch::Device,
        Reach::Likely,
        share * SURELY * window.wall_s(),
        share * GOES * window.wall_s(),
    )
    .setting(
        "compile",
        None,
        "default",
        message!(
            en: "torch.compile(model): fuses chains of operators into one kernel",
            zh: "torch.compile(model)：连续的算子变成一个 kernel"
        ),
    );
    Some(match place {
        Some(place) => candidate.code(
            Some(&place),
            message!(
                en: "Most of these kernels are launched here: compile this function, or use a fused operator",
                zh: "大部分由此处下发：编译这个函数，或使用融合算子"
            ),
        ),
        None => candidate,
    })
}

/// Where launches were not recorded: the line outside of backward and the optimizer at which the host is for most of the GPU's time.
fn costliest_line(analysis: &Analysis) -> Option<Place> {
    let account = analysis.account.as_ref()?;
    let lines = single_lines(account, analysis.data, |span| {
        span.activity == Activity::GpuComputing && !in_backward(span) && !in_optimizer(span)
    });
    lines.first().map(|center| center.hot.place())
}

/// Where the compiler was asked for, other rules say what became of it.
fn tried_to_compile(analysis: &Analysis) -> bool {
    analysis.facts.switch("compile.called") == Some(true) || compiles::errors(analysis.data).count > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};
    use flatout_core::Place;
    use flatout_record::KernelKind;

    fn chains(ms: f64) -> Build {
        Build::steady(20)
            .batch(512)
            .gpu(|gpu| gpu.util = Some(0.95))
            .fact("amp.dtype", "bf16")
            .kernels(&[
                (KernelKind::Elementwise, ms),
                (KernelKind::TensorCore, 950.0 - ms),
            ])
            .launch(&["main (t.py:9)", "mix (t.py:5)"], KernelKind::Elementwise, ms)
    }

    #[test]
    fn fires() {
        let finding = run(check, chains(700.0)).unwrap();
        assert_eq!(finding.places, [Place::new("t.py", 5)]);
        assert!(finding.title.en.contains("70%"), "{}", finding.title.en);
    }

    #[test]
    fn quiet() {
        assert!(run(check, chains(200.0)).is_none());
        assert!(run(check, chains(700.0).fact("compile.called", true)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
