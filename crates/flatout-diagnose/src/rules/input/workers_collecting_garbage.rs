//! # workers-collecting-garbage
//!
//! ## What it detects
//! Steps wait for forked workers that spend a noticeable part of their time in Python's garbage collector.
//!
//! ## Why it is slow
//! A forked worker inherits every object of the program: the dataset and all modules. Preparing a batch creates thousands of objects,
//! so full collections occur often; each one traverses all inherited objects too, and copies every page it writes to.
//!
//! ## Example
//! ```python
//! loader = DataLoader(dataset, num_workers=8)
//! ```
//!
//! ## Use instead
//! ```python
//! def freeze(worker):
//!     gc.freeze()
//!
//! loader = DataLoader(dataset, num_workers=8, worker_init_fn=freeze)
//! ```
//!
//! ## Evidence
//! The workers' time in garbage collection compared with their time in `__getitem__` and `collate_fn`, and the time steps wait for
//! batches.
//!
//! ## Fix
//! Call `gc.freeze()` when a worker starts, so that inherited objects are no longer traversed. If a batch consists of very many
//! objects, also call `gc.set_threshold(100_000)` there.
//!
//! ## When it is wrong
//! The dataset drops many objects in reference cycles: with a higher threshold they stay in memory longer.
//!
//! ## References
//! Python's documentation of `gc.freeze`.
//! <https://docs.python.org/3/library/gc.html#gc.freeze>
//!
//! ---
//! ## 检测什么
//! 训练在等待 fork 出来的 worker，而它们有可见的一部分时间花在 Python 垃圾回收上。
//! ## 为什么慢
//! fork 出来的 worker 带着程序当时的全部对象：数据集和所有模块。每个 batch 会产生成千上万个对象，于是完整回收一再发生，每次都要遍历那些旧对象，并复制所写到的每个内存页。
//! ## 证据
//! worker 的回收时间与 `__getitem__`、`collate_fn` 时间之比，以及训练等待 batch 的时间。
//! ## 怎么改
//! 在 worker 启动时调用 `gc.freeze()`：此前已有的对象不再被遍历。一个 batch 由大量对象构成时，再调用 `gc.set_threshold(100_000)`。
//! ## 何时不成立
//! 数据集产生大量循环引用的垃圾：阈值提高后它们会停留更久。
//! ## 参考
//! Python 文档中的 `gc.freeze`。
//! <https://docs.python.org/3/library/gc.html#gc.freeze>

use crate::analysis::Analysis;
use crate::candidate::{Candidate, Reach, Stretch, severity_of};
use flatout_core::{Evidence, Severity, message, units};
use flatout_record::Phase;

pub const ID: &str = "workers-collecting-garbage";
pub const WORST: Severity = Severity::Critical;

/// Of all time, what goes when the workers no longer collect: PyTorch's plugin speaks of loader time from 5%.
const SHARE: f64 = 0.05;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let starved = analysis.starved_by_workers()?;
    let (window, loader) = (starved.window, starved.loader);
    let work_s = loader.fetch_s + loader.collate_s;
    let part = (loader.garbage_s.filter(|_| work_s > 0.0)? / work_s).min(1.0);
    if loader.spawned {
        // Those begin with nothing but what they import, and only forked ones can be frozen from here.
        return None;
    }
    // Steps that wait go as fast as batches come, and those would come so much sooner.
    let possible_s = (window.wall_s() * part).min(window.seconds(Phase::Data));
    let share = possible_s / window.wall_s();
    if share < SHARE {
        return None;
    }
    let shown = units::percent(part);
    let frozen = analysis.facts.is_applied("gc.freeze");
    Some(
        Candidate::new(
            ID,
            severity_of(share),
            message!(
                en: "The workers spend {shown} of their time in garbage collection",
                zh: "worker 有 {shown} 的时间花在垃圾回收上"
            ),
        )
        .detail(message!(
            en: "A forked worker traverses every object inherited from the program at each full collection, \
            and copies the pages it touches.",
            zh: "fork 出来的 worker 在每次完整回收时都会遍历从程序带来的全部对象，并复制碰到的内存页。"
        ))
        .evidence(analysis.in_window(
            Evidence::new(message!(en: "worker time in garbage collection", zh: "worker 的垃圾回收时间"), part * 100.0, "%")
                .against(SHARE * 100.0),
        ))
        .evidence(analysis.phase_evidence(Phase::Data, SHARE))
        .place(loader.place.as_ref())
        .claims(Stretch::Data, Reach::Measured, possible_s * 0.5, possible_s)
        .setting(
            "gc.freeze",
            frozen.then(|| "on".to_owned()),
            "on",
            message!(
                en: "gc.freeze() in every worker: objects inherited from the program are no longer traversed",
                zh: "在每个 worker 中调用 gc.freeze()：从程序带来的对象不再被遍历"
            ),
        )
        .code(
            loader.place.as_ref(),
            message!(
                en: "Use DataLoader(…, worker_init_fn=freeze), where freeze(worker) calls gc.freeze() and \
                gc.set_threshold(100_000)",
                zh: "DataLoader(…, worker_init_fn=freeze)，其中函数 freeze(worker) 调用 gc.freeze() 和 gc.set_threshold(100_000)"
            ),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};
    use flatout_core::Fix;
    use flatout_record::EventKind;
    use serde_json::json;

    fn waiting(data: f64, garbage_ms: Option<f64>) -> Build {
        Build::steady(20)
            .phase(Phase::Data, data)
            .phase(Phase::Compute, 1.0 - data)
            .cpus(4)
            .loader(0, json!({"num_workers": 4}))
            .each_second(move || EventKind::Workers {
                loader: 0,
                fetch_ms: 3000.0,
                collate_ms: 200.0,
                garbage_ms,
                batches: 50,
            })
    }

    #[test]
    fn fires() {
        let finding = run(check, waiting(0.6, Some(800.0))).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        assert!(causes(waiting(0.6, Some(800.0))).contains(&ID.to_owned()));
    }

    #[test]
    fn what_is_frozen_is_not_advised_again() {
        let settings = |build: Build| {
            let fixes = run(check, build).unwrap().fixes;
            fixes
                .iter()
                .filter(|fix| matches!(fix, Fix::Setting { .. }))
                .count()
        };
        assert_eq!(settings(waiting(0.6, Some(800.0))), 1);
        assert_eq!(
            settings(waiting(0.6, Some(800.0)).fact("apply.gc.freeze", true)),
            0
        );
    }

    #[test]
    fn quiet() {
        // Next to nothing, nobody waits, or an older record that does not tell.
        assert!(run(check, waiting(0.6, Some(60.0))).is_none());
        assert!(run(check, waiting(0.04, Some(800.0))).is_none());
        assert!(run(check, waiting(0.6, None)).is_none());
        // Workers that were not forked have nothing to walk.
        let spawned = json!({"num_workers": 4, "multiprocessing_context": "spawn"});
        assert!(run(check, waiting(0.6, Some(800.0)).loader(0, spawned)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
