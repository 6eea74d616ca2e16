//! What the rules on synchronisation share: calls at every step of programs that use CUDA.

use crate::project::{Code, Hot, ModuleId, Project};
use crate::report::Reported;
use flatout_core::{Severity, message};

/// The calls that run at every step or every evaluated batch, in a program that uses CUDA.
pub fn cuda_hot_calls(project: &Project, module: ModuleId) -> Vec<(Code<'_>, Hot)> {
    let hot: Vec<(Code<'_>, Hot)> = project
        .torch_calls(module)
        .filter_map(|call| Some((call, call.hot()?)))
        .collect();
    if hot.is_empty() || !project.uses_cuda(module) {
        Vec::new()
    } else {
        hot
    }
}

/// Values that were never on the GPU: NumPy results, and what has been copied to the host already.
pub fn from_host(code: Code<'_>) -> bool {
    let mut code = code;
    for _ in 0..8 {
        if code
            .call_name()
            .is_some_and(|name| name.starts_with("numpy.") || name.starts_with("math."))
        {
            return true;
        }
        match code.method_call() {
            Some((_, "cpu" | "numpy" | "tolist" | "item")) => return true,
            Some((receiver, _)) => code = receiver,
            None => match code.only_value() {
                Some(value) if value != code => code = value,
                _ => return false,
            },
        }
    }
    false
}

/// Says where it is hot: in evaluation it costs less of the run.
pub fn tell_hot(found: &mut Reported, call: Code<'_>) {
    match call.hot() {
        Some(Hot::Evaluation) => {
            found.severity(Severity::Information).because(message!(
                en: "It runs for every batch of an evaluation or prediction.",
                zh: "它在评估或预测的每个 batch 都会执行。"
            ));
        }
        _ => {
            found.because(message!(
                en: "Until the value has arrived the next step cannot be queued, so the GPU idles between steps.",
                zh: "在取到数值之前无法提交下一步，GPU 在步与步之间空闲。"
            ));
        }
    }
}
