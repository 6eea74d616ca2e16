//! # tf32-off
//!
//! ## What it detects
//! The program trains on CUDA in fp32 and never enables TF32 for matrix multiplication.
//!
//! ## Why it is slow
//! By default, PyTorch multiplies fp32 matrices in full fp32. With TF32, tensor cores do it several times faster, with the same range
//! and a 10-bit mantissa.
//!
//! ## Example
//! ```python
//! model = Model().cuda()
//! ```
//!
//! ## Use instead
//! ```python
//! torch.set_float32_matmul_precision("high")
//! model = Model().cuda()
//! ```
//!
//! ## Evidence
//! No file of the program sets `torch.set_float32_matmul_precision`, `allow_tf32` or `fp32_precision`, and none uses autocast, which
//! makes TF32 almost irrelevant.
//!
//! ## Fix
//! Call `torch.set_float32_matmul_precision("high")` once at the start.
//!
//! ## When it is wrong
//! GPUs before Ampere, or computations that need full fp32.
//!
//! ## References
//! PyTorch documentation, "CUDA semantics: TensorFloat-32 (TF32) on Ampere (and later) devices".
//! <https://docs.pytorch.org/docs/stable/notes/cuda.html>
//!
//! ---
//! ## 检测什么
//! 在 CUDA 上以 fp32 训练，而程序从不允许矩阵乘法使用 TF32。
//! ## 为什么慢
//! PyTorch 默认以完整 fp32 计算 fp32 矩阵乘法；使用 TF32 时 Tensor Core 快好几倍，范围相同，尾数 10 位。
//! ## 证据
//! 程序的所有文件都没有设置 `torch.set_float32_matmul_precision`、`allow_tf32` 或 `fp32_precision`，也没有使用 autocast（用了它影响就很小）。
//! ## 怎么改
//! 开始时设置一次 `torch.set_float32_matmul_precision("high")`。
//! ## 何时不成立
//! Ampere 之前的 GPU，以及需要完整 fp32 的场合。
//! ## 参考
//! PyTorch 文档“CUDA semantics: TensorFloat-32 (TF32) on Ampere (and later) devices”。
//! <https://docs.pytorch.org/docs/stable/notes/cuda.html>

use crate::rules::prelude::*;

pub const ID: &str = "tf32-off";
pub const SEVERITY: Severity = Severity::Information;
pub const CHECK: Check = Check::Module(check);

const DECIDED: [&str; 12] = [
    "set_float32_matmul_precision",
    "allow_tf32",
    "fp32_precision",
    "autocast",
    "bfloat16",
    "float16",
    "bf16",
    "fp16",
    "GradScaler",
    "deepspeed",
    "Accelerator",
    "Fabric",
];

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    let Some(code) = cuda_step_loop(project, module) else {
        return;
    };
    if project.program_mentions(module, &DECIDED) {
        return;
    }
    report
        .in_source(
            &code.in_module().source,
            head(code),
            message!(
                en: "fp32 training without TF32: matrix multiplications do not use the tensor cores",
                zh: "fp32 训练没有启用 TF32：矩阵乘法用不上 Tensor Core"
            ),
        )
        .confidence(Confidence::Medium)
        .advice(message!(
            en: "call `torch.set_float32_matmul_precision(\"high\")` once at the start",
            zh: "在程序开头调用一次 `torch.set_float32_matmul_precision(\"high\")`"
        ));
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\nmodel.to('cuda')\nfor x in loader:\n    model(x).backward()\n";

    #[test]
    fn fires() {
        assert_eq!(findings_of(ID, &[("train.py", FIRES)]).len(), 1);
    }

    #[test]
    fn quiet() {
        for line in [
            "torch.set_float32_matmul_precision('high')",
            "torch.backends.cuda.matmul.allow_tf32 = True",
        ] {
            assert!(findings_of(ID, &[("train.py", &format!("{FIRES}{line}\n"))]).is_empty());
        }
    }

    #[test]
    fn look_alike() {
        let inference = "import torch\nmodel.to('cuda')\nfor x in loader:\n    model(x)\n";
        assert!(findings_of(ID, &[("predict.py", inference)]).is_empty());
    }
}
