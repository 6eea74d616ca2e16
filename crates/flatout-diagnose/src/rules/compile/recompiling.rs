//! # recompiling
//!
//! ## What it detects
//! The compiled model is compiled again and again.
//! ## Why it is slow
//! A compilation takes seconds. When a shape, a Python number or a flag in its guards changes each time, it starts over, and
//! after eight times the compiler gives up and runs without.
//! ## Evidence
//! Recompilations counted by the compiler and the seconds they took within the steady part, and the last reason.
//! ## Fix
//! Keep shapes equal (`drop_last=True`, padding to a few lengths), pass changing numbers as tensors, or `dynamic=True`.
//! ## When it is wrong
//! A few different shapes on purpose, each compiled once at the start.
//! ## References
//! PyTorch's guide on recompilation; its limit is eight a function.
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
            en: "The compiled model was compiled again {count} times",
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
            en: "Keep shapes equal (drop_last=True, padding to few lengths), or compile with dynamic=True",
            zh: "保持形状一致（drop_last=True、填充到少数几种长度），或使用 dynamic=True 编译"
        ),
    );
    let seconds = compiles::seconds_within(analysis.data, window.range());
    let candidate = if seconds > 0.0 {
        let what = message!(en: "compiling within the steady part", zh: "稳定阶段中的编译时间");
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
    let what = message!(en: "functions the compiler gave up after that", zh: "之后编译器放弃的函数数");
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
