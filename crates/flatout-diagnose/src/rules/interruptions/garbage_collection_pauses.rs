//! # garbage-collection-pauses
//!
//! ## What it detects
//! Python's garbage collector takes a noticeable share of the training process's time.
//!
//! ## Why it is slow
//! A full collection traverses every object of the process. With a dataset of Python objects this takes long, and nothing else runs
//! in the meantime.
//!
//! ## Example
//! ```python
//! for x, y in loader:
//!     train_step(x, y)
//!     gc.collect()
//! ```
//!
//! ## Use instead
//! ```python
//! gc.freeze()
//! for x, y in loader:
//!     train_step(x, y)
//! ```
//!
//! ## Evidence
//! The number of collections in the steady part, and their time.
//!
//! ## Fix
//! Remove `gc.collect()` from the loop. Call `gc.freeze()` once the program is set up, so that long-lived objects are no longer
//! traversed.
//!
//! ## When it is wrong
//! The collections free GPU memory that would otherwise run out.
//!
//! ## References
//! Python's documentation of `gc.freeze`. Instagram Engineering on the cost of the collector in long-lived processes.
//! <https://docs.python.org/3/library/gc.html#gc.freeze>
//!
//! ---
//! ## 检测什么
//! Python 的垃圾回收占用了训练进程可见的时间。
//! ## 为什么慢
//! 完整回收要遍历进程的全部对象；数据集由 Python 对象组成时很慢，其间什么都不运行。
//! ## 证据
//! 稳定阶段内的回收次数和所用时间。
//! ## 怎么改
//! 把 `gc.collect()` 移出循环；程序初始化完成后调用 `gc.freeze()`，使长期存在的对象不再被遍历。
//! ## 何时不成立
//! 回收释放了否则会耗尽的显存。
//! ## 参考
//! Python 文档中的 `gc.freeze`。Instagram 关于长时间运行的进程中回收代价的说明。
//! <https://docs.python.org/3/library/gc.html#gc.freeze>

use crate::analysis::Analysis;
use crate::candidate::{Candidate, Reach, Stretch, severity_of};
use crate::known::{Known, costs};
use flatout_core::{Evidence, Severity, message, units};

pub const ID: &str = "garbage-collection-pauses";
pub const WORST: Severity = Severity::Critical;

const SHARE: f64 = 0.05;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let collections = &analysis.spans.collection;
    let share = collections.seconds / window.wall_s();
    if share < SHARE || is_called(analysis, collections.seconds) {
        return None;
    }
    let (shown, times) = (units::percent(share), collections.count);
    let frozen = analysis.facts.is_applied("gc.freeze");
    Some(
        Candidate::new(
            ID,
            severity_of(share),
            message!(
                en: "Garbage collection takes {shown} of the time ({times} collections)",
                zh: "Python 垃圾回收占 {shown} 的时间（{times} 次）"
            ),
        )
        .evidence(
            analysis.in_window(
                Evidence::new(
                    message!(en: "time in garbage collection", zh: "垃圾回收的时间"),
                    share * 100.0,
                    "%",
                )
                .against(SHARE * 100.0),
            ),
        )
        // A collection runs wherever the program stands: between the steps or in the middle of one.
        .claims(
            Stretch::Other,
            Reach::Measured,
            collections.seconds * 0.5,
            collections.seconds,
        )
        .or_in(Stretch::Dispatch)
        .setting(
            "gc.freeze",
            frozen.then(|| "on".to_owned()),
            "on",
            message!(
                en: "gc.freeze() before the first step: objects created until then are no longer traversed",
                zh: "在第一步之前调用 gc.freeze()：此前已有的对象不再被遍历"
            ),
        )
        .code(
            analysis.loop_place().as_ref(),
            message!(
                en: "Call gc.freeze() once before the loop; remove any gc.collect() inside it",
                zh: "在循环前调用一次 gc.freeze()；循环内若有 gc.collect() 则移出"
            ),
        ),
    )
}

/// Whether the program itself calls the collector: then its line is the finding.
fn is_called(analysis: &Analysis, seconds: f64) -> bool {
    let called = costs(analysis)
        .into_iter()
        .filter(|cost| cost.known == Known::MemoryReleased);
    called.map(|cost| cost.seconds).sum::<f64>() >= seconds / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};
    use flatout_core::Fix;
    use flatout_record::{EventKind, Phase};

    fn collecting(duration_ms: f64) -> Build {
        Build::steady(20)
            .phase(Phase::Other, duration_ms / 1e3 + 0.02)
            .phase(Phase::Compute, 0.5)
            .each_second(move || EventKind::GarbageCollection {
                count: 10,
                duration_ms,
            })
    }

    #[test]
    fn fires() {
        assert!(run(check, collecting(300.0)).is_some());
        assert_eq!(causes(collecting(300.0)), [ID]);
    }

    #[test]
    fn what_is_frozen_is_not_advised_again() {
        let settings = |build: Build| {
            let fixes = run(check, build).unwrap().fixes;
            let named = |fix: &Fix| matches!(fix, Fix::Setting { setting, .. } if setting == "gc.freeze");
            fixes.iter().filter(|fix| named(fix)).count()
        };
        assert_eq!(settings(collecting(300.0)), 1);
        assert_eq!(settings(collecting(300.0).fact("apply.gc.freeze", true)), 0);
    }

    #[test]
    fn quiet() {
        assert!(run(check, collecting(3.0)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
