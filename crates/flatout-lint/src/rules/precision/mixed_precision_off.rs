//! # mixed-precision-off
//!
//! ## What it detects
//! The program trains on CUDA and uses no lower precision anywhere: no autocast, no bf16 or fp16 tensors, no library that does it.
//!
//! ## Why it is slow
//! The tensor cores are idle. In bf16 they compute 8 to 16 times as fast as fp32, and every tensor needs half the memory traffic.
//!
//! ## Example
//! ```python
//! loss = criterion(model(x), y)
//! loss.backward()
//! ```
//!
//! ## Use instead
//! ```python
//! with torch.autocast("cuda", dtype=torch.bfloat16):
//!     loss = criterion(model(x), y)
//! loss.backward()
//! ```
//!
//! ## Evidence
//! No file of the program mentions autocast, bf16, fp16 or half. This is informational: a recorded run shows whether arithmetic
//! limits the step.
//!
//! ## Fix
//! Use `with torch.autocast("cuda", dtype=torch.bfloat16):` around the forward pass and the loss, not around `backward()`.
//!
//! ## When it is wrong
//! The model is so small that launching kernels takes all the time, or the numerics need fp32 (solvers, some GANs, reinforcement
//! learning).
//!
//! ## References
//! PyTorch documentation, "Automatic Mixed Precision examples". Measured with flatout on one H200: a CNN goes from 19.6k to 72k
//! samples/s together with compilation.
//! <https://docs.pytorch.org/docs/stable/notes/amp_examples.html>
//!
//! ---
//! ## 检测什么
//! 在 CUDA 上训练，而程序任何地方都没有使用低精度：没有 autocast、没有 bf16 或 fp16 张量，也没有使用它们的库。
//! ## 为什么慢
//! Tensor Core 闲着。以 bf16 计算，它们的算力是 fp32 的 8 到 16 倍，每个张量的内存流量也减半。
//! ## 证据
//! 程序的所有文件都没有提到 autocast、bf16、fp16 或 half。只作提示：运行记录才能说明步骤是否在等计算。
//! ## 怎么改
//! 在前向和损失外加 `with torch.autocast("cuda", dtype=torch.bfloat16):`，不要包住 `backward()`。
//! ## 何时不成立
//! 模型太小、时间都花在下发 kernel 上，以及需要 fp32 的数值计算（求解器、部分 GAN、强化学习）。
//! ## 参考
//! PyTorch 文档“Automatic Mixed Precision examples”。flatout 在一块 H200 上实测：CNN 连同编译从 19.6k 到 72k 样本/秒。
//! <https://docs.pytorch.org/docs/stable/notes/amp_examples.html>

use crate::rules::prelude::*;

pub const ID: &str = "mixed-precision-off";
pub const SEVERITY: Severity = Severity::Information;
pub const CHECK: Check = Check::Module(check);

/// Any of these and somebody has thought of it.
const LOWER_PRECISION: [&str; 14] = [
    "autocast",
    "bfloat16",
    "float16",
    "bf16",
    "fp16",
    ".half(",
    "GradScaler",
    "apex",
    "deepspeed",
    "Accelerator",
    "Fabric",
    "mixed_precision",
    "precision=",
    "16-mixed",
];

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    let Some(code) = cuda_step_loop(project, module) else {
        return;
    };
    if project.program_mentions(module, &LOWER_PRECISION) {
        return;
    }
    report
        .in_source(
            &code.in_module().source,
            head(code),
            message!(
                en: "this loop trains on CUDA in fp32: the program never uses autocast",
                zh: "该循环在 CUDA 上以 fp32 训练：整个程序没有使用 autocast"
            ),
        )
        .confidence(Confidence::Medium)
        .advice(message!(
            en: "wrap the forward pass and the loss in `torch.autocast(\"cuda\", dtype=torch.bfloat16)`",
            zh: "把前向和损失放进 `torch.autocast(\"cuda\", dtype=torch.bfloat16)`"
        ));
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\nmodel.to('cuda')\nfor epoch in range(3):\n    for x in loader:\n        model(x).backward()\n";

    #[test]
    fn fires() {
        let found = findings_of(ID, &[("train.py", FIRES)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place().line, 4);
    }

    #[test]
    fn quiet() {
        let cast = FIRES.replace(
            "        model(x)",
            "        with torch.autocast('cuda'):\n            out = model(x)\n        out",
        );
        assert!(findings_of(ID, &[("train.py", &cast)]).is_empty());
        assert!(findings_of(ID, &[("train.py", &FIRES.replace("'cuda'", "'cpu'"))]).is_empty());
    }

    #[test]
    fn look_alike() {
        // Another file of the same program does it.
        let files = [
            (
                "train.py",
                &*FIRES.replace("import torch", "import torch\nimport setup_model"),
            ),
            (
                "setup_model.py",
                "import torch\nmodel = model.to(torch.bfloat16)\n",
            ),
        ];
        assert!(findings_of(ID, &files).is_empty());
    }
}
