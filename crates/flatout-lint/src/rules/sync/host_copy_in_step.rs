//! # host-copy-in-step
//!
//! ## What it detects
//! `.cpu()`, `.numpy()` or `.tolist()` is called on a tensor at every step of a training loop, outside a logging interval.
//!
//! ## Why it is slow
//! The copy to the CPU waits for all queued GPU work, and then the GPU waits for the CPU to queue more.
//!
//! ## Example
//! ```python
//! for x, y in loader:
//!     logits = train_step(x, y)
//!     predictions.append(logits.detach().cpu())
//! ```
//!
//! ## Use instead
//! ```python
//! for x, y in loader:
//!     logits = train_step(x, y)
//!     predictions.append(logits.detach())
//! predictions = torch.cat(predictions).cpu()
//! ```
//!
//! ## Evidence
//! Every step reaches the call, the program uses CUDA, and the tensor was computed in the step.
//!
//! ## Fix
//! Keep results on the GPU (`torchmetrics`, a preallocated tensor) and copy once per epoch, or copy with `non_blocking=True` into
//! pinned memory and read it one step later.
//!
//! ## When it is wrong
//! The tensor is on the CPU, or the next step needs the value on the CPU anyway (sampling an environment).
//!
//! ## References
//! PyTorch performance tuning guide, "Avoid unnecessary CPU-GPU synchronization".
//! <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>
//!
//! ---
//! ## 检测什么
//! 训练循环的每一步都对张量调用 `.cpu()`、`.numpy()` 或 `.tolist()`，且不在日志间隔之内。
//! ## 为什么慢
//! 拷到主机要等 GPU 完成尚未完成的全部工作，然后 GPU 又要等 CPU 下发更多工作。
//! ## 证据
//! 调用位于每一步的路径上，程序使用 CUDA，且作用于该步计算出的值。
//! ## 怎么改
//! 结果留在设备上（`torchmetrics`、预先分配的张量），每个 epoch 拷一次；或用 `non_blocking=True` 拷到锁页内存，下一步再读。
//! ## 何时不成立
//! 张量在 CPU 上，或下一步本来就需要主机的结果（环境采样）。
//! ## 参考
//! PyTorch 性能调优指南“Avoid unnecessary CPU-GPU synchronization”。
//! <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>

use crate::rules::prelude::*;

pub const ID: &str = "host-copy-in-step";
pub const SEVERITY: Severity = Severity::Warning;
pub const CHECK: Check = Check::Module(check);

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    for (call, hot) in cuda_step_calls(project, module) {
        let Some((receiver, method)) = call.method_call() else {
            continue;
        };
        if hot != Hot::Step || !copies(call, receiver, method) || is_inner(call) {
            continue;
        }
        let text = call.brief();
        let found = report.at(
            call,
            message!(en: "`{text}` copies to the host at every step and waits for the GPU", zh: "`{text}` 在每一步都复制到主机并等待 GPU"),
        );
        add_wait_note(found, call);
        found.advice(message!(
            en: "keep it on the GPU and copy once per epoch or every N steps",
            zh: "保留在 GPU 上，每个 epoch 或每隔若干步复制一次"
        ));
    }
}

pub(crate) fn copies(call: Code<'_>, receiver: Code<'_>, method: &str) -> bool {
    let from_device = |code: Code<'_>| !from_host(code);
    match method {
        // Modules and whole state dictionaries have `.cpu()` too; only values count.
        "cpu" => {
            call.argument_count() == 0
                && receiver.definition().is_none()
                && from_device(receiver)
                && !is_module(receiver)
        }
        // On NumPy's own arrays and pandas objects these methods are harmless.
        "numpy" | "tolist" => receiver.is_device_tensor() || ends_on_host(receiver),
        _ => false,
    }
}

/// `x.detach().cpu()` before `.numpy()`.
fn ends_on_host(code: Code<'_>) -> bool {
    let mut code = code;
    while let Some((receiver, method)) = code.method_call() {
        match method {
            "cpu" => return !from_host(receiver) && !is_module(receiver),
            "detach" | "float" | "squeeze" | "view" | "reshape" | "flatten" => code = receiver,
            _ => return false,
        }
    }
    false
}

fn is_module(code: Code<'_>) -> bool {
    // `x.cpu().parameters()`
    let used = code
        .parent()
        .and_then(|attribute| attribute.parent())
        .and_then(Code::parent);
    let asked = used.and_then(Code::as_attribute).map(|(_, name)| name);
    if matches!(
        asked,
        Some("parameters" | "state_dict" | "eval" | "named_parameters")
    ) {
        return true;
    }
    let text = code.text();
    ["model", "net", "module", "state_dict"]
        .iter()
        .any(|word| text.rsplit('.').next().is_some_and(|last| last.starts_with(word)))
}

/// The `.cpu()` of `x.cpu().numpy()`: reported once, at the outer call.
pub(crate) fn is_inner(call: Code<'_>) -> bool {
    let Some(attribute) = call.parent().filter(|parent| parent.as_attribute().is_some()) else {
        return false;
    };
    let Some(outer) = attribute
        .parent()
        .filter(|outer| outer.callee() == Some(attribute))
    else {
        return false;
    };
    match outer.method_call() {
        Some((_, "numpy" | "tolist" | "item")) => true,
        Some((_, "detach" | "float" | "squeeze" | "view" | "reshape" | "flatten")) => is_inner(outer),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\nmodel.cuda()\nfor x in loader:\n    out = model(x)\n    loss = out.mean()\n    loss.backward()\n    scores.append(out.detach().cpu().numpy())\n";

    #[test]
    fn fires() {
        assert_eq!(findings_of(ID, &[("train.py", FIRES)]).len(), 1);
        let list = FIRES.replace("out.detach().cpu().numpy()", "torch.argmax(out, 1).tolist()");
        assert_eq!(findings_of(ID, &[("train.py", &list)]).len(), 1);
    }

    #[test]
    fn quiet() {
        let interval = FIRES.replace("    scores.append", "    if step % 100 == 0: scores.append");
        assert!(findings_of(ID, &[("train.py", &interval)]).is_empty());
        let device = FIRES.replace(".cpu().numpy()", "");
        assert!(findings_of(ID, &[("train.py", &device)]).is_empty());
    }

    #[test]
    fn look_alike() {
        let numpy = FIRES.replace("out.detach().cpu().numpy()", "row.tolist()");
        assert!(findings_of(ID, &[("train.py", &numpy)]).is_empty());
        // Gradients looked at for a plot, in a program that trains elsewhere.
        let plot = "import torch\ndef look(model, x):\n    out = model(x)\n    out.sum().backward()\n    plot(out.cpu().numpy())\nfor x in ranges:\n    look(model.cuda(), x)\nfor x in loader:\n    model(x).backward()\n    optimizer.step()\n";
        assert!(findings_of(ID, &[("train.py", plot)]).is_empty());
        assert_eq!(
            findings_of(
                ID,
                &[(
                    "train.py",
                    &plot.replace("    plot(", "    optimizer.step()\n    plot(")
                )]
            )
            .len(),
            1
        );
    }
}
