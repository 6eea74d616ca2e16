//! # slow-end
//!
//! ## What it detects
//! The program is done but does not exit: PyTorch waits up to five seconds for each DataLoader worker.
//!
//! ## Why it is slow
//! When Python exits, a DataLoader with persistent workers and pinned memory waits for its workers one after the other, up to five
//! seconds each, because nothing has asked them to stop. The GPU idles, the job keeps its place in the queue, and a search pays for
//! it at every trial.
//!
//! ## Example
//! ```python
//! loader = DataLoader(dataset, num_workers=8, pin_memory=True, persistent_workers=True)
//! for x, y in loader:
//!     train_step(x, y)
//! ```
//!
//! ## Use instead
//! ```python
//! def main():
//!     loader = DataLoader(dataset, num_workers=8, pin_memory=True, persistent_workers=True)
//!     for x, y in loader:
//!         train_step(x, y)
//!
//! main()
//! ```
//!
//! ## Evidence
//! The time the main thread spent in PyTorch's wait for a worker, from stack samples, and the run's time after its last step.
//!
//! ## Fix
//! Release the DataLoader before Python exits: train inside a function, whose variables are released when it returns, or write `del
//! loader`. The workers are then asked to stop, and stop at once.
//!
//! ## When it is wrong
//! It happens once, at the end, so it does not matter in a long run.
//!
//! ## References
//! `_MultiProcessingDataLoaderIter._clean_up_worker` in `torch/utils/data/dataloader.py`.
//! <https://github.com/pytorch/pytorch/blob/main/torch/utils/data/dataloader.py>
//!
//! ---
//! ## 检测什么
//! 程序已经做完，却迟迟不退出：PyTorch 要为 DataLoader 的每个 worker 各等 5 秒。
//! ## 为什么慢
//! 使用常驻 worker 和锁页内存的 DataLoader 会在 Python 退出时被清理：逐个等待每个 worker，每个最多 5 秒，而没有人通知它们结束。这段时间
//! GPU 空闲，作业占着队列的位置，参数搜索的每次试验都要付一次。
//! ## 证据
//! 主线程停在 PyTorch 等待 worker 处的栈，折算成时间；最后一步之后的时间。
//! ## 怎么改
//! 在 Python 退出之前释放 DataLoader：把训练放进函数里（返回时变量随之释放），或写 `del loader`。这样 worker 会收到结束通知，立即退出。
//! ## 何时不成立
//! 对长时间的运行可以忽略：它只在结束时发生一次。
//! ## 参考
//! PyTorch 的 `torch/utils/data/dataloader.py` 中的 `_MultiProcessingDataLoaderIter._clean_up_worker`。
//! <https://github.com/pytorch/pytorch/blob/main/torch/utils/data/dataloader.py>

use crate::analysis::Analysis;
use crate::candidate::Candidate;
use flatout_core::{Evidence, Severity, message, units};

pub const ID: &str = "slow-end";
/// The longer a run, the less it matters.
pub const WORST: Severity = Severity::Information;

/// PyTorch's patience with one worker.
const WAITED_S: f64 = 5.0;
/// Of the whole run.
const SHARE: f64 = 0.02;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let data = analysis.data;
    let total_s = analysis.time.total_s;
    let last_step_s = data.steps.iter().rev().find(|tick| tick.steps > 0)?.t;
    let stacks = || {
        data.stacks
            .iter()
            .flat_map(|tick| &tick.stacks)
            .filter(|stack| !stack.worker)
    };
    let waiting = stacks().filter(|stack| {
        stack
            .frames
            .iter()
            .any(|frame| frame.contains("_clean_up_worker ("))
    });
    let (waiting, all): (u64, u64) = (
        waiting.map(|stack| stack.count).sum(),
        stacks().map(|stack| stack.count).sum(),
    );
    let after_s = (total_s - last_step_s).max(0.0);
    // Stacks come at even intervals.
    let waited_s = (waiting as f64 / all.max(1) as f64 * total_s).min(after_s);
    let share = waited_s / total_s.max(f64::MIN_POSITIVE);
    if waited_s < WAITED_S * 0.8 || share < SHARE {
        return None;
    }
    let shown = units::duration(waited_s);
    Some(
        Candidate::new(
            ID,
            WORST,
            message!(
                en: "After training, PyTorch waited {shown} for the DataLoader workers to exit",
                zh: "程序已经做完，PyTorch 又花了 {shown} 等待 DataLoader 的 worker 退出"
            ),
        )
        .evidence(
            Evidence::new(
                message!(en: "waiting for workers at exit", zh: "结束时等待 worker"),
                waited_s,
                "s",
            )
            .against(WAITED_S)
            .over(last_step_s, total_s),
        )
        .evidence(Evidence::new(
            message!(en: "time after the last step", zh: "最后一步之后的时间"),
            after_s,
            "s",
        ))
        .code(
            None,
            message!(
                en: "Train inside a function, or `del loader` at the end: the workers are then asked to stop \
                and exit at once",
                zh: "把训练放进函数里，或在结尾写 `del loader`：worker 会收到结束通知并立即退出"
            ),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check_empty};
    use flatout_record::{ExitInfo, RunData};

    const END: &str = "_MultiProcessingDataLoaderIter._clean_up_worker (/site-packages/torch/utils/data/dataloader.py:1703)";

    fn ending(seconds: f64, waiting: u64) -> RunData {
        let build = Build::steady(20)
            .stack(&["<module> (train.py:3)"], 400)
            .stack(&[END, "wait (x.py:3)"], waiting);
        let mut data = build.done();
        data.info.exit = Some(ExitInfo {
            t: 22.0 + seconds,
            code: Some(0),
            signal: None,
        });
        data
    }

    #[test]
    fn fires() {
        let found = check(&Analysis::new(&ending(20.0, 400))).unwrap().finding;
        assert!(
            (found.evidence[0].value - 20.0).abs() < 1.0,
            "{:?}",
            found.evidence
        );
        assert_eq!(found.severity, Severity::Information);
    }

    /// Before 3.11 Python's frames have no class in their names.
    #[test]
    fn fires_for_an_older_python() {
        let mut data = ending(20.0, 400);
        for stack in data.stacks.iter_mut().flat_map(|tick| &mut tick.stacks) {
            for frame in &mut stack.frames {
                *frame = frame.replace("_MultiProcessingDataLoaderIter.", "");
            }
        }
        assert!(check(&Analysis::new(&data)).is_some());
    }

    #[test]
    fn quiet() {
        // Something else took the time, or it was short.
        assert!(check(&Analysis::new(&ending(20.0, 0))).is_none());
        assert!(check(&Analysis::new(&ending(1.0, 20))).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
