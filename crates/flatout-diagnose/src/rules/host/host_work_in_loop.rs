//! # host-work-in-loop
//!
//! ## What it detects
//! The program's own Python code between steps takes a large share of the time: metrics, logging, plotting, printing, copying
//! parameters.
//!
//! ## Why it is slow
//! It runs in the training process, so no batch is computed in the meantime.
//!
//! ## Example
//! ```python
//! for x, y in loader:
//!     loss = train_step(x, y)
//!     plot_weights(model)
//! ```
//!
//! ## Use instead
//! ```python
//! for step, (x, y) in enumerate(loader):
//!     loss = train_step(x, y)
//!     if step % 200 == 0:
//!         plot_weights(model)
//! ```
//!
//! ## Evidence
//! Time that belongs to no other phase of the steady part. With stack samples: those in the program's own code, outside PyTorch,
//! while holding Python's lock (GIL), and the line where the main thread was most often.
//!
//! ## Fix
//! Do it every N steps, on tensors instead of Python numbers, or in another thread.
//!
//! ## When it is wrong
//! Training work that the probe cannot see (a second model, a custom backward pass) also counts here.
//!
//! ## References
//! Thresholds as for the DataLoader: TraceML warns from 10%, gpuprof from 15%.
//! See also `blocking-call-in-loop`, `python-loop-in-step` and `metrics-every-step`.
//! <https://github.com/flatout/flatout/blob/main/docs/guide/diagnose.md>
//!
//! ---
//! ## 检测什么
//! 步与步之间程序自己的 Python 代码占用大量时间：指标、日志、绘图、打印、复制参数。
//! ## 为什么慢
//! 它在训练进程中运行，其间没有任何 batch 在计算。
//! ## 证据
//! 稳定阶段中不属于其他阶段的时间；有调用栈记录时，还包括持有解释器锁、停在程序自己的代码里且栈中没有 PyTorch 的样本，以及主线程停留最多的那一行。
//! ## 怎么改
//! 每 N 步做一次，用 tensor 而不是 Python 数值来做，或放到另一个线程。
//! ## 何时不成立
//! 钩子看不到的训练工作（第二个模型、自定义的反向传播）也计在这里。
//! ## 参考
//! 占比阈值与 loader 相同：TraceML 10%，gpuprof 15%。
//! 另见 `blocking-call-in-loop`、`python-loop-in-step`、`metrics-every-step`。
//! <https://github.com/flatout/flatout/blob/main/docs/guide/diagnose.md>

use crate::analysis::Analysis;
use crate::analysis::stacks::{hot_lines, own_stacks};
use crate::candidate::{Candidate, Reach, Stretch, severity_of};
use crate::known;
use flatout_core::{Evidence, Severity, message, units};
use flatout_record::{Phase, StackCount};

pub const ID: &str = "host-work-in-loop";
pub const WORST: Severity = Severity::Critical;

/// gpuprof's limit for a phase that should not be there.
const SHARE: f64 = 0.15;
/// A line is named when the main thread stood in it this often.
const LINE_SHARE: f64 = 0.05;
/// Stacks needed before their shares say something: five seconds at 20 a second.
const STACKS: u64 = 100;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    if analysis.account.is_some() {
        return known::host_work(analysis, ID).into_iter().next();
    }
    let window = analysis.window.as_ref()?;
    let stacks = own_stacks(analysis.data, window.range(), in_step);
    let in_steps_s = stacks
        .filter(|(_, all)| *all >= STACKS)
        .map_or(0.0, |(own, all)| own as f64 / all as f64 * window.wall_s());
    // Collections are another rule's.
    let seconds = window.seconds(Phase::Other) + in_steps_s - analysis.spans.collection.seconds;
    let share = seconds / window.wall_s();
    if share < SHARE {
        return None;
    }
    let own = |stack: &StackCount| stack.phase == Some(Phase::Other) || in_step(stack);
    let lines = hot_lines(analysis.data, window.range(), own);
    let hot = lines.first().filter(|line| line.share >= LINE_SHARE);
    let (shown, a_step) = (
        units::percent(share),
        units::duration(seconds / window.steps as f64),
    );
    let mut candidate = Candidate::new(
        ID,
        severity_of(share),
        message!(
            en: "The program's own code between steps takes {shown} of the time, {a_step} per step",
            zh: "两步之间程序自己的代码占 {shown} 的时间，每步 {a_step}"
        ),
    )
    .evidence(
        analysis.in_window(
            Evidence::new(
                message!(en: "time in the program's own code", zh: "程序自己的代码所用的时间"),
                share * 100.0,
                "%",
            )
            .against(SHARE * 100.0),
        ),
    )
    .claims(Stretch::Other, Reach::Likely, 0.0, seconds)
    // Without a loader that asks for the next batch, only the stacks can tell it from the step.
    .or_in(Stretch::Dispatch);
    if let Some(line) = hot {
        let function = &line.function;
        candidate = candidate
            .evidence(Evidence::new(
                message!(en: "main thread samples in {function}", zh: "主线程堆栈采样位于 {function} \
                的比例"),
                line.share * 100.0,
                "%",
            ))
            .place(Some(&line.place));
    }
    Some(candidate.code(
        hot.map(|line| &line.place),
        message!(
            en: "Do it every N steps, on whole tensors, or in another thread",
            zh: "改为每 N 步做一次、对整个 tensor 操作，或放到另一个线程"
        ),
    ))
}

/// Python work in what counts as the step: nothing of torch in the stack, and the interpreter's lock held. An operator that
/// the program calls from its own line releases the lock.
fn in_step(stack: &StackCount) -> bool {
    stack.phase == Some(Phase::Compute)
        && stack.gil
        && !stack.frames.iter().any(|frame| frame.contains("/torch/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};

    fn chatty(share: f64) -> Build {
        Build::steady(20)
            .phase(Phase::Other, share)
            .phase(Phase::Compute, 1.0 - share)
            .stack_of(
                &["<module> (train.py:80)", "log_metrics (train.py:22)"],
                40,
                Some(Phase::Other),
                false,
            )
    }

    #[test]
    fn fires() {
        let finding = run(check, chatty(0.4)).unwrap();
        assert_eq!(finding.places[0].line, 22);
        assert_eq!(causes(chatty(0.4)), [ID]);
    }

    #[test]
    fn stacks_separate_host_work_from_the_step() {
        let counted = |own: u64| {
            let step = [
                "<module> (train.py:70)",
                "_call_impl (/x/site-packages/torch/nn/modules/module.py:1)",
            ];
            let mut data = Build::steady(20)
                .stack_of(&step, 200, Some(Phase::Compute), false)
                .stack_of(&["<module> (train.py:60)"], 100, Some(Phase::Compute), false)
                .stack_of(
                    &["<module> (train.py:80)", "score (train.py:22)"],
                    own,
                    Some(Phase::Compute),
                    false,
                )
                .done();
            data.stacks.last_mut().unwrap().stacks[0].gil = true;
            data
        };
        let finding = check(&Analysis::new(&counted(150))).unwrap().finding;
        assert_eq!(finding.places[0].line, 22);
        assert!(check(&Analysis::new(&counted(20))).is_none());
    }

    #[test]
    fn quiet() {
        assert!(run(check, chatty(0.04)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
