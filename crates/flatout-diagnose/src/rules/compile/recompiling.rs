//! # recompiling
//!
//! ## What it detects
//! The compiled model is recompiled repeatedly.
//!
//! ## Why it is slow
//! A compilation takes seconds. Whenever a shape, a Python number or a flag that the compiled code depends on changes, compilation
//! starts over. After eight recompilations of a function, the compiler gives up and runs it uncompiled.
//!
//! ## Example
//! ```python
//! loader = DataLoader(dataset, batch_size=64)
//! model = torch.compile(model)
//! ```
//!
//! ## Use instead
//! ```python
//! loader = DataLoader(dataset, batch_size=64, drop_last=True)
//! model = torch.compile(model)
//! ```
//!
//! ## Evidence
//! The number of recompilations, the time they took in the steady part, and the reason for the last one.
//!
//! ## Fix
//! Keep shapes fixed (`drop_last=True`, padding to a few lengths), pass changing numbers as tensors, or compile with `dynamic=True`.
//!
//! ## When it is wrong
//! The program uses a few different shapes on purpose, and each is compiled once at the start.
//!
//! ## References
//! PyTorch's guide on recompilation. The default limit is eight per function.
//! <https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html>
//!
//! ---
//! ## 检测什么
//! 编译后的模型一再重新编译。
//! ## 为什么慢
//! 一次编译要几秒。若形状、Python 数值或 guard 中的标志每次都变，就要重来；八次之后编译器会放弃，不编译直接运行。
//! ## 证据
//! 编译器统计的重编译次数、其在稳定阶段所用的秒数，以及最后的原因。
//! ## 怎么改
//! 保持形状一致（`drop_last=True`、填充到少数几种长度），把变化的数值作为 tensor 传入，或使用 `dynamic=True`。
//! ## 何时不成立
//! 有意使用少数几种形状，开始时各编译一次。
//! ## 参考
//! PyTorch 关于重编译的指南；每个函数上限八次。
//! <https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html>

use crate::analysis::{Analysis, compiles};
use crate::candidate::{Candidate, Reach, Stretch};
use flatout_core::{Evidence, Message, Severity, message};

pub const ID: &str = "recompiling";
pub const WORST: Severity = Severity::Warning;

/// One for the last, smaller batch and one for evaluation are usual.
const RECOMPILES: u64 = 4;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let again = compiles::of(analysis.data, "recompile");
    if again.count < RECOMPILES {
        return None;
    }
    let count = again.count;
    let given_up = compiles::given_up(analysis.data);
    let place = again
        .places
        .first()
        .cloned()
        .or_else(|| analysis.facts.place("compile.called"));
    let candidate = Candidate::new(
        ID,
        Severity::Warning,
        message!(
            en: "The compiled model was recompiled {count} times",
            zh: "编译后的模型又被重新编译了 {count} 次"
        ),
    )
    .detail(
        given_up
            .message
            .or(again.message)
            .map(Message::verbatim)
            .unwrap_or_default(),
    )
    .evidence(
        analysis.in_run(
            Evidence::new(
                message!(en: "recompilations", zh: "重新编译次数"),
                count as f64,
                "",
            )
            .against(RECOMPILES as f64),
        ),
    )
    .place(place.as_ref())
    .place(analysis.facts.place("compile.called").as_ref())
    .code(
        place.as_ref(),
        message!(
            en: "Keep input shapes fixed (drop_last=True, padding to a few lengths), or compile with \
            dynamic=True",
            zh: "保持形状一致（drop_last=True、填充到少数几种长度），或使用 dynamic=True 编译"
        ),
    );
    let seconds = compiles::seconds_within(analysis.data, window.range());
    let candidate = if seconds > 0.0 {
        let what = message!(en: "compile time in the steady part", zh: "稳定阶段中的编译时间");
        candidate
            .evidence(analysis.in_window(Evidence::new(what, seconds, "s")))
            .claims(Stretch::Dispatch, Reach::Measured, seconds * 0.8, seconds)
            .or_in(Stretch::Other)
            .stands_alone()
    } else {
        candidate
    };
    if given_up.count == 0 {
        return Some(candidate);
    }
    let what = message!(en: "functions that the compiler then gave up on", zh: "之后编译器放弃的函数数");
    Some(candidate.evidence(analysis.in_run(Evidence::new(what, given_up.count as f64, ""))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};
    use flatout_record::EventKind;

    fn again(count: u64) -> Build {
        compiled(count, 1.0, None)
    }

    fn compiled(count: u64, t: f64, duration_ms: Option<f64>) -> Build {
        let what = "recompile".to_owned();
        Build::steady(20).event(
            t,
            EventKind::Compile {
                what,
                count,
                message: None,
                place: None,
                duration_ms,
            },
        )
    }

    #[test]
    fn the_gain_is_the_time_of_compiling() {
        let gain = |t: f64| crate::diagnose(&compiled(7, t, Some(4000.0)).done()).findings[0].gain;
        let found = gain(10.0).unwrap();
        assert!((found.high - 1.0 / (1.0 - 4.0 / 19.0)).abs() < 0.02, "{found:?}");
        assert!(gain(1.0).is_none(), "the warm-up is no part of the steady steps");
    }

    #[test]
    fn fires() {
        assert!(run(check, again(7)).is_some());
        assert_eq!(causes(again(7)), [ID]);
    }

    #[test]
    fn quiet() {
        assert!(run(check, again(2)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
