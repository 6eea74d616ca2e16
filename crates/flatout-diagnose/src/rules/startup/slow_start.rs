//! # slow-start
//!
//! ## What it detects
//! The time before the first step is a noticeable part of the run.
//!
//! ## Why it is slow
//! Reading and preparing all data, building the model and importing modules repeat at every start, every restart after a crash, and
//! every trial of a search.
//!
//! ## Example
//! ```python
//! features = compute_features(pd.read_csv("prices.csv"))  # 4 minutes
//! ```
//!
//! ## Use instead
//! ```python
//! if not os.path.exists("features.npy"):
//!     np.save("features.npy", compute_features(pd.read_csv("prices.csv")))
//! features = np.load("features.npy", mmap_mode="r")
//! ```
//!
//! ## Evidence
//! Seconds until the first step, their share of the run, and the line where the main thread was most often.
//!
//! ## Fix
//! Keep prepared data on disk (a cache next to the source), read data lazily, or prepare it in parallel.
//!
//! ## When it is wrong
//! The run was stopped early: the longer it runs, the less the startup matters.
//!
//! ## References
//! Importing PyTorch and starting CUDA takes 5 to 15 s; the rest is the program's own.
//! See also `slow-end` and `data-read-again`.
//! <https://docs.python.org/3/using/cmdline.html#cmdoption-X>
//!
//! ---
//! ## 检测什么
//! 第一步之前花了很长时间，而且对本次运行来说有影响。
//! ## 为什么慢
//! 读取和准备全部数据、构建模型、import：每次启动、崩溃后的每次重启、搜索中的每次试验都要重来一遍。
//! ## 证据
//! 到第一步的秒数及其占运行的比例；主线程停留最多的那一行。
//! ## 怎么改
//! 把准备好的数据保存在磁盘上（放在源数据旁边的缓存），按需读取，并行准备。
//! ## 何时不成立
//! 被提前中止的运行：运行越久，启动占比越小。
//! ## 参考
//! import PyTorch 和启动 CUDA 需要 5 到 15 秒；超出的部分是程序自己的。
//! 另见 `slow-end`、`data-read-again`。
//! <https://docs.python.org/3/using/cmdline.html#cmdoption-X>

use crate::analysis::Analysis;
use crate::analysis::stacks::hot_lines;
use crate::candidate::{Candidate, severity_of};
use flatout_core::{Evidence, Gain, Severity, message, units};
use flatout_record::{Phase, StackCount};

pub const ID: &str = "slow-start";
pub const WORST: Severity = Severity::Warning;

/// What importing PyTorch, starting CUDA and the first batch may take.
const USUAL_S: f64 = 20.0;
/// Of the whole run.
const SHARE: f64 = 0.2;
/// A line is named when the main thread stood in it this often before the first step.
const LINE_SHARE: f64 = 0.1;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let (first_s, total_s) = (window.first_step_s, analysis.time.total_s);
    let share = first_s / total_s.max(first_s);
    if first_s < USUAL_S || share < SHARE {
        return None;
    }
    // What can go is what lies beyond the usual: in a short run that is little, however large the whole.
    let beyond = (first_s - USUAL_S) / total_s.max(first_s);
    let (shown, of) = (units::duration(first_s), units::percent(share));
    // Stacks are told up to a minute later, with those of the first steps: these have a phase by which they are told apart.
    let early = |stack: &StackCount| !stack.worker && matches!(stack.phase, None | Some(Phase::Other));
    let lines = hot_lines(analysis.data, (0.0, (first_s - 60.0).max(0.0)), early);
    let hot = lines.first().filter(|line| line.share >= LINE_SHARE);
    Some(
        Candidate::new(
            ID,
            severity_of(beyond).min(WORST),
            message!(
                en: "The first step started after {shown}, {of} of the run",
                zh: "第一步在 {shown} 之后才开始，占整个运行的 {of}"
            ),
        )
        .evidence(
            Evidence::new(
                message!(en: "time before the first step", zh: "第一步之前的时间"),
                first_s,
                "s",
            )
            .against(USUAL_S)
            .over(0.0, first_s),
        )
        .evidence(
            Evidence::new(
                message!(en: "share of the run", zh: "占整个运行"),
                share * 100.0,
                "%",
            )
            .against(SHARE * 100.0),
        )
        .place(hot.map(|line| &line.place))
        .gain(Gain::from_removed_shares(0.0, beyond))
        .code(
            hot.map(|line| &line.place),
            message!(
                en: "Cache what startup computes in a file, or read the data as the steps need it",
                zh: "把启动时计算的结果缓存到文件，或在训练时按需读取数据"
            ),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check_empty};

    fn after(seconds: f64) -> flatout_record::RunData {
        let mut data = Build::steady(20).done();
        for tick in &mut data.steps {
            tick.t += seconds;
        }
        data.info.exit = None;
        data
    }

    #[test]
    fn fires() {
        assert!(check(&Analysis::new(&after(40.0))).is_some());
        assert_eq!(crate::diagnose(&after(40.0)).findings[0].rule, ID);
    }

    #[test]
    fn the_line_is_one_of_the_start() {
        let build = Build::steady(20).stack(&["<module> (train.py:3)"], 300).stack_of(
            &["<module> (train.py:90)"],
            900,
            Some(Phase::Compute),
            false,
        );
        let mut data = build.done();
        for tick in &mut data.steps {
            tick.t += 40.0;
        }
        let found = check(&Analysis::new(&data))
            .map(|candidate| format!("{candidate:?}"))
            .unwrap_or_default();
        assert!(
            found.contains("line: 3") && !found.contains("line: 90"),
            "{found}"
        );
    }

    #[test]
    fn quiet() {
        assert!(check(&Analysis::new(&after(4.0))).is_none());
        // A little beyond the usual in a short run: worth a note.
        let short = check(&Analysis::new(&after(19.0))).unwrap();
        assert_eq!(short.finding.severity, Severity::Information);
        assert!(causes(Build::steady(20)).is_empty());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
