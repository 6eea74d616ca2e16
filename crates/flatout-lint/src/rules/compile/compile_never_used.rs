//! # compile-never-used
//!
//! ## What it detects
//! The program trains on CUDA and never calls `torch.compile`.
//!
//! ## Why it is slow
//! Every small operation is a kernel launched from Python. Compiled, chains of operations become one kernel and Python is bypassed.
//!
//! ## Example
//! ```python
//! model = Model().cuda()
//! for x, y in loader:
//!     train_step(model, x, y)
//! ```
//!
//! ## Use instead
//! ```python
//! model = torch.compile(Model().cuda())
//! for x, y in loader:
//!     train_step(model, x, y)
//! ```
//!
//! ## Evidence
//! No file of the program mentions `compile` or TorchScript, and none builds an RNN, which `torch.compile` skips. This is
//! informational: a recorded run shows whether steps wait for launches.
//!
//! ## Fix
//! Call `model = torch.compile(model)` after the model is built and moved to the GPU, before the loop.
//!
//! ## When it is wrong
//! Shapes change at every step, PyTorch is older than 2.0, or runs are so short that compiling does not pay off.
//!
//! ## References
//! PyTorch tutorial, "Introduction to torch.compile". Measured with flatout on one H200: a CNN goes from 38.8k to 72.1k samples/s
//! with `max-autotune`.
//! <https://docs.pytorch.org/tutorials/intermediate/torch_compile_tutorial.html>
//!
//! ---
//! ## 检测什么
//! 在 CUDA 上训练，而程序从不调用 `torch.compile`。
//! ## 为什么慢
//! 每个小运算都是从 Python 下发的一个 kernel。编译后，一连串运算合成一个 kernel，Python 也不再参与。
//! ## 证据
//! 程序的所有文件都没有提到 `compile` 或 TorchScript，也没有构建会被编译跳过的 RNN。只作提示：运行记录才能说明步骤是否在等下发。
//! ## 怎么改
//! 模型构建并移动之后、循环之前：`model = torch.compile(model)`。
//! ## 何时不成立
//! 每步形状都变化、PyTorch 2.0 之前，或运行太短，编译得不偿失。
//! ## 参考
//! PyTorch 教程“Introduction to torch.compile”。flatout 在一块 H200 上实测：CNN 用 `max-autotune` 从 38.8k 到 72.1k 样本/秒。
//! <https://docs.pytorch.org/tutorials/intermediate/torch_compile_tutorial.html>

use crate::rules::prelude::*;

pub const ID: &str = "compile-never-used";
pub const SEVERITY: Severity = Severity::Information;
pub const CHECK: Check = Check::Module(check);

/// Compiled, scripted, or of a kind that is not compiled.
const DECIDED: [&str; 9] = [
    "torch.compile",
    ".compile(",
    "torch.jit",
    "torch._dynamo",
    "nn.LSTM",
    "nn.GRU",
    "nn.RNN",
    "torch_geometric",
    "dgl",
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
            message!(en: "the model is never compiled", zh: "模型从未使用 torch.compile"),
        )
        .confidence(Confidence::Low)
        .advice(message!(
            en: "try `model = torch.compile(model)` before the loop; `flatout tune` measures whether it pays \
            off",
            zh: "在循环之前试试 `model = torch.compile(model)`；`flatout tune` 会测出是否划算"
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
        assert!(
            findings_of(
                ID,
                &[(
                    "train.py",
                    &FIRES.replace("model.to", "model = torch.compile(model)\nmodel.to")
                )]
            )
            .is_empty()
        );
    }

    #[test]
    fn look_alike() {
        assert!(
            findings_of(
                ID,
                &[(
                    "train.py",
                    &FIRES.replace("model.to", "model = torch.nn.LSTM(2, 3)\nmodel.to")
                )]
            )
            .is_empty()
        );
    }
}
