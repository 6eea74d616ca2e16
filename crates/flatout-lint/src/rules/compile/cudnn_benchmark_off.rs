//! # cudnn-benchmark-off
//!
//! ## What it detects
//! A model with convolutions trains on CUDA, and the program never sets `cudnn.benchmark`.
//!
//! ## Why it is slow
//! Without benchmark mode, cuDNN picks its convolution kernels by a heuristic. With it, cuDNN times the candidates once per input
//! shape and keeps the fastest.
//!
//! ## Example
//! ```python
//! model = resnet50().cuda()
//! ```
//!
//! ## Use instead
//! ```python
//! torch.backends.cudnn.benchmark = True
//! model = resnet50().cuda()
//! ```
//!
//! ## Evidence
//! The program builds `Conv1d`, `Conv2d` or `Conv3d` layers, and no file mentions the setting or asks for deterministic results. This
//! is informational.
//!
//! ## Fix
//! Set `torch.backends.cudnn.benchmark = True` once at the start.
//!
//! ## When it is wrong
//! The input shape keeps changing: cuDNN then searches again for every new shape. Compiled models choose their kernels themselves.
//!
//! ## References
//! PyTorch performance tuning guide, "Enable cuDNN auto-tuner".
//! <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>
//!
//! ---
//! ## 检测什么
//! 在 CUDA 上训练含卷积的模型，而程序从未设置 `cudnn.benchmark`。
//! ## 为什么慢
//! 此时 cuDNN 凭经验规则选择卷积算法。打开后会对每种形状各试一次，保留最快的。
//! ## 证据
//! 程序构建了 `Conv1d`、`Conv2d` 或 `Conv3d` 层，且没有文件提到该开关或要求确定性结果。只作提示。
//! ## 怎么改
//! 开始时设置一次 `torch.backends.cudnn.benchmark = True`。
//! ## 何时不成立
//! 输入形状一直变化：每种新形状都要重新搜索。编译后的模型会自己选择。
//! ## 参考
//! PyTorch 性能调优指南“Enable cuDNN auto-tuner”。
//! <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>

use crate::rules::prelude::*;

pub const ID: &str = "cudnn-benchmark-off";
pub const SEVERITY: Severity = Severity::Information;
pub const CHECK: Check = Check::Module(check);

const DECIDED: [&str; 6] = [
    "cudnn.benchmark",
    "cudnn_benchmark",
    "deterministic",
    "torch.compile",
    "interpolate(",
    "pad_sequence",
];

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    let Some(code) = cuda_step_loop(project, module) else {
        return;
    };
    if project.program_mentions(module, &DECIDED) {
        return;
    }
    let convolutions = ["torch.nn.Conv1d", "torch.nn.Conv2d", "torch.nn.Conv3d"];
    if !project
        .program_calls(module)
        .any(|call| call.calls_one_of(&convolutions))
    {
        return;
    }
    report
        .in_source(
            &code.in_module().source,
            head(code),
            message!(
                en: "cuDNN does not search for the fastest convolution kernels: benchmark mode is off",
                zh: "卷积没有启用 cuDNN 的最快 kernel 搜索"
            ),
        )
        .confidence(Confidence::Medium)
        .advice(message!(
            en: "set `torch.backends.cudnn.benchmark = True` once at the start, if the input shapes are fixed",
            zh: "如果输入形状固定，在程序开头设置 `torch.backends.cudnn.benchmark = True`"
        ));
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str =
        "import torch\nmodel = torch.nn.Conv2d(3, 8, 3).cuda()\nfor x in loader:\n    model(x).backward()\n";

    #[test]
    fn fires() {
        assert_eq!(findings_of(ID, &[("train.py", FIRES)]).len(), 1);
    }

    #[test]
    fn quiet() {
        for line in [
            "torch.backends.cudnn.benchmark = True",
            "torch.backends.cudnn.benchmark = False",
            "torch.use_deterministic_algorithms(True)",
        ] {
            assert!(findings_of(ID, &[("train.py", &format!("{FIRES}{line}\n"))]).is_empty());
        }
    }

    #[test]
    fn look_alike() {
        assert!(findings_of(ID, &[("train.py", &FIRES.replace("Conv2d", "Linear"))]).is_empty());
    }
}
