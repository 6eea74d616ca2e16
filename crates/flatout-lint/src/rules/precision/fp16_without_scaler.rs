//! # fp16-without-scaler
//!
//! ## What it detects
//! The program trains under autocast in fp16 without a `GradScaler`. `torch.autocast("cuda")` without a `dtype` also means fp16.
//!
//! ## Why it is slow
//! Small gradients underflow to zero in fp16, so the model learns slowly or not at all, and the run is repeated in fp32. With bf16 no
//! scaler is needed.
//!
//! ## Example
//! ```python
//! with torch.autocast("cuda"):
//!     loss = criterion(model(x), y)
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
//! A training step runs under an autocast that is known to be fp16, and no file of the program creates a scaler.
//!
//! ## Fix
//! Use `dtype=torch.bfloat16` on Ampere or newer, otherwise a `torch.amp.GradScaler`.
//!
//! ## Fix safety
//! `--fix --unsafe` writes `dtype=torch.bfloat16`. It is unsafe because results differ, and GPUs before Ampere have no fast bf16.
//!
//! ## When it is wrong
//! A library scales the loss (DeepSpeed, Accelerate, apex): programs that mention one are not reported.
//!
//! ## References
//! PyTorch documentation, "Automatic Mixed Precision package: Gradient Scaling".
//! <https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling>
//!
//! ---
//! ## 检测什么
//! 以 fp16 autocast 训练，而程序没有 `GradScaler`。没有 `dtype` 的 `torch.autocast("cuda")` 也是 fp16。
//! ## 为什么慢
//! 小的梯度在 fp16 中变成零，模型学得很慢或学不到，只好用 fp32 重跑。bf16 不需要缩放器。
//! ## 证据
//! 训练步骤路径上的 autocast 已知为 fp16，且程序的所有文件中都没有缩放器。
//! ## 怎么改
//! Ampere 及更新的 GPU 用 `dtype=torch.bfloat16`，否则用 `torch.amp.GradScaler`。
//! ## 修改是否安全
//! `--fix --unsafe` 会写成 `dtype=torch.bfloat16`。之所以不安全，是因为结果会不同，且 Ampere 之前的 GPU 没有快速的 bf16。
//! ## 何时不成立
//! 由库来缩放损失（DeepSpeed、Accelerate、apex）：提到它们的程序不在此列。
//! ## 参考
//! PyTorch 文档“Automatic Mixed Precision package: Gradient Scaling”。
//! <https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling>

use super::autocast_around_backward::AUTOCAST;
use crate::rules::prelude::*;

pub const ID: &str = "fp16-without-scaler";
pub const SEVERITY: Severity = Severity::Warning;
pub const CHECK: Check = Check::Module(check);

const SCALES: [&str; 7] = [
    "GradScaler",
    "Scaler(",
    "deepspeed",
    "Accelerator",
    "apex",
    "Fabric",
    "scaler",
];

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    for (call, hot) in cuda_step_calls(project, module) {
        if hot != Hot::Step || !call.calls_one_of(&AUTOCAST) || !is_fp16(call) || call.without_gradients() {
            continue;
        }
        if project.program_mentions(module, &SCALES) {
            return;
        }
        let found = report.at(
            call,
            message!(
                en: "training in fp16 without a GradScaler: small gradients underflow to zero",
                zh: "fp16 训练没有使用 GradScaler：较小的梯度会变成 0"
            ),
        );
        let say = message!(en: "use `dtype=torch.bfloat16`, which needs no scaler", zh: "改用 `dtype=torch.bfloat16`，无需 scaler");
        let torch_is_here = call
            .bindings("torch")
            .iter()
            .any(|one| matches!(&one.bound, Bound::Import(path) if &**path == "torch"));
        match call
            .set_keyword("dtype", "torch.bfloat16")
            .filter(|_| torch_is_here && call.positional(1).is_none())
        {
            Some(edit) => found.unsafe_fix(vec![edit], say),
            None => found.advice(say),
        };
    }
}

/// Whether an autocast is known to be in fp16.
pub(crate) fn is_fp16(call: Code<'_>) -> bool {
    if call.splats() {
        return false;
    }
    let device = call.argument("device_type", 0).and_then(Code::as_text);
    let on_cuda =
        call.calls("torch.cuda.amp.autocast") || device.is_some_and(|device| device.starts_with("cuda"));
    let disabled = call
        .keyword("enabled")
        .is_some_and(|enabled| enabled.as_boolean() != Some(true));
    match call.keyword("dtype").or_else(|| call.positional(1)) {
        Some(dtype) => {
            dtype
                .qualified()
                .is_some_and(|name| matches!(name.as_str(), "torch.float16" | "torch.half"))
                && !disabled
        }
        None => on_cuda && !disabled && call.positional(2).is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\nfor x in loader:\n    with torch.autocast('cuda'):\n        loss = model(x)\n    loss.backward()\n";

    #[test]
    fn fires() {
        assert_eq!(findings_of(ID, &[("train.py", FIRES)]).len(), 1);
        assert!(edits_of(ID, FIRES).contains("torch.autocast('cuda', dtype=torch.bfloat16)"));
    }

    #[test]
    fn quiet() {
        let bf16 = FIRES.replace("'cuda'", "'cuda', dtype=torch.bfloat16");
        assert!(findings_of(ID, &[("train.py", &bf16)]).is_empty());
        let scaled = FIRES.replace("loss.backward()", "scaler.scale(loss).backward()");
        assert!(findings_of(ID, &[("train.py", &scaled)]).is_empty());
    }

    #[test]
    fn look_alike() {
        let unknown = FIRES.replace("'cuda'", "'cuda', dtype=args.dtype");
        assert!(findings_of(ID, &[("train.py", &unknown)]).is_empty());
        let maybe_off = FIRES.replace("'cuda'", "'cuda', enabled=args.amp == 'bf16'");
        assert!(findings_of(ID, &[("train.py", &maybe_off)]).is_empty());
    }
}
