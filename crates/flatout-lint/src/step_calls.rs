//! What rules on the step share: calls at every step of programs that use CUDA, and their loops.

use crate::project::{Code, Hot, LoopRole, ModuleId, Project};
use crate::python::{Kind, Span};
use crate::report::Reported;
use flatout_core::{Severity, message};

/// The calls that run at every step or every evaluated batch, in a program that uses CUDA.
pub fn cuda_step_calls(project: &Project, module: ModuleId) -> Vec<(Code<'_>, Hot)> {
    let hot: Vec<(Code<'_>, Hot)> = project.hot_calls(module).collect();
    if hot.is_empty() || !project.uses_cuda(module) {
        Vec::new()
    } else {
        hot
    }
}

/// The first step loop of a module, in a program that uses CUDA: where to report what a program never does.
pub fn cuda_step_loop(project: &Project, module: ModuleId) -> Option<Code<'_>> {
    let loops = project.flow().loops(project, module, LoopRole::Step);
    let first = loops.into_iter().find(|code| trains(*code))?;
    // Episodes of reinforcement learning: tiny models, and the environment is what takes the time.
    let plays = project.program_mentions(module, &["import gym", "gymnasium"]);
    (!plays && project.uses_cuda(module)).then_some(first)
}

/// A loop that only times forward and backward trains nothing: there must be batches, an update, or a function that does both.
fn trains(code: Code<'_>) -> bool {
    code.iterator().is_some_and(Code::is_loader)
        || code.calls_inside().any(|call| {
            call.is_method("step") || call.target().is_some_and(|target| target.as_function().is_some())
        })
}

/// The `for …` or `while …` of a loop, without its body.
pub fn head(code: Code<'_>) -> Span {
    let start = code.span().start;
    let end = match code.kind() {
        Kind::For { iterator, .. } => code.at(*iterator).span().end,
        Kind::While { test, .. } => code.at(*test).span().end,
        _ => start + 1,
    };
    Span { start, end }
}

/// Values that were never on the GPU: NumPy results, and what has been copied to the host already.
pub fn from_host(code: Code<'_>) -> bool {
    let mut code = code;
    for _ in 0..8 {
        if code
            .call_name()
            .is_some_and(|name| name.starts_with("numpy.") || name.starts_with("math."))
            || code.makes_host_tensor()
        {
            return true;
        }
        match code.method_call() {
            Some((_, "cpu" | "numpy" | "tolist" | "item")) => return true,
            // Moved: from here on it is on the device.
            Some((_, "to" | "cuda")) => return false,
            Some((receiver, _)) => code = receiver,
            None => match code.only_value() {
                Some(value) if value != code => code = value,
                _ => return false,
            },
        }
    }
    false
}

/// Adds why the wait matters; in evaluation it costs less of the run.
pub fn add_wait_note(found: &mut Reported, call: Code<'_>) {
    match call.hot() {
        Some(Hot::Evaluation) => {
            found.severity(Severity::Information).because(message!(
                en: "It runs for every batch of an evaluation or prediction.",
                zh: "它在评估或预测的每个 batch 都会执行。"
            ));
        }
        _ => {
            found.because(message!(
                en: "The next step cannot be queued until the value arrives, so the GPU idles between steps.",
                zh: "在取到数值之前无法提交下一步，GPU 在步与步之间空闲。"
            ));
        }
    }
}
