//! # item-in-step
//!
//! ## What it detects
//! `.item()` is called on a tensor at every step of a training loop, or in a function that runs at every step, outside a logging
//! interval.
//!
//! ## Why it is slow
//! `.item()` waits until the GPU has finished all work queued before it. The CPU then starts to queue the next step onto an idle GPU,
//! so work that could overlap runs one after the other.
//!
//! ## Example
//! ```python
//! for x, y in loader:
//!     loss = train_step(x, y)
//!     total += loss.item()
//! ```
//!
//! ## Use instead
//! ```python
//! for x, y in loader:
//!     loss = train_step(x, y)
//!     total += loss.detach()
//! print(total.item() / len(loader))
//! ```
//!
//! ## Evidence
//! Every step reaches the call, in a program that uses CUDA.
//!
//! ## Fix
//! Accumulate on the GPU (`total += loss.detach()`) and read the sum once per epoch or every N steps.
//!
//! ## Fix safety
//! `--fix --unsafe` turns `total += loss.item()` into `total += loss.detach()`. It is unsafe because the sum becomes a tensor, in the
//! precision of the loss.
//!
//! ## When it is wrong
//! The tensor is on the CPU, or steps are so long that one wait does not matter. `flatout diagnose` shows this for a recorded run.
//!
//! ## References
//! PyTorch performance tuning guide, "Avoid unnecessary CPU-GPU synchronization".
//! <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>
//!
//! ---
//! ## 检测什么
//! 训练循环的每一步，或每一步都运行的函数中，对张量调用 `.item()`，且没有日志间隔。
//! ## 为什么慢
//! `.item()` 要等 GPU 完成之前排队的全部工作。之后 CPU 才开始向空闲的 GPU 下发下一步：本可重叠的变成先后进行。
//! ## 证据
//! 调用位于每一步的路径上，程序使用 CUDA。
//! ## 怎么改
//! 在设备上累加（`total += loss.detach()`），每个 epoch 或每若干步读一次。
//! ## 修改是否安全
//! `--fix --unsafe` 把 `total += loss.item()` 改为 `total += loss.detach()`。之所以不安全，是因为总和会变成张量，精度与损失相同。
//! ## 何时不成立
//! 张量在 CPU 上，或每步很长，一次等待看不出来。以运行记录为准：`flatout diagnose`。
//! ## 参考
//! PyTorch 性能调优指南“Avoid unnecessary CPU-GPU synchronization”。
//! <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>

use crate::rules::prelude::*;

pub const ID: &str = "item-in-step";
pub const SEVERITY: Severity = Severity::Warning;
pub const CHECK: Check = Check::Module(check);

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    for (call, hot) in cuda_step_calls(project, module) {
        let Some((receiver, "item")) = call.method_call() else {
            continue;
        };
        if hot != Hot::Step || call.argument_count() != 0 || from_host(receiver) {
            continue;
        }
        let text = call.brief();
        let found = report.at(
            call,
            message!(en: "`{text}` makes the CPU wait for the GPU at every step", zh: "`{text}` 使 CPU 在每一步都等待 GPU"),
        );
        add_wait_note(found, call);
        match accumulated(call) {
            Some(edit) => {
                found.unsafe_fix(
                    vec![edit],
                    message!(en: "accumulate on the GPU with `.detach()` and read the sum once per epoch", zh: "用 `.detach()` 在 GPU 上累加，每个 epoch 只读取一次"),
                );
            }
            None => {
                found.advice(message!(
                    en: "keep the detached tensor and call `.item()` only every N steps",
                    zh: "保留张量（`.detach()`），每隔若干步才调用一次 `.item()`"
                ));
            }
        }
    }
}

/// `total += loss.item()`, maybe times a batch size: then `.detach()` serves as well.
fn accumulated(call: Code<'_>) -> Option<flatout_core::Edit> {
    let mut above = call.parent()?;
    while matches!(
        above.kind(),
        Kind::Binary {
            operator: Operator::Multiply | Operator::Divide,
            ..
        }
    ) {
        above = above.parent()?;
    }
    let Kind::AugmentedAssign {
        operator: Operator::Add,
        target,
        ..
    } = above.kind()
    else {
        return None;
    };
    matches!(above.at(*target).kind(), Kind::Name).then_some(())?;
    let Kind::Attribute { name, .. } = call.callee()?.kind() else {
        return None;
    };
    Some(call.edit(*name, "detach"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\nmodel = net.to('cuda')\nfor epoch in range(3):\n    total = 0.0\n    for x, y in loader:\n        loss = criterion(model(x), y)\n        loss.backward()\n        total += loss.item() * x.size(0)\n";

    #[test]
    fn fires() {
        let found = findings_of(ID, &[("train.py", FIRES)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place().line, 8);
        assert!(edits_of(ID, FIRES).contains("total += loss.detach() * x.size(0)"));
        // In a function that the loop calls, in another file.
        let step = "import torch\nclass Engine:\n    def train_step(self, x):\n        loss = self.model(x.cuda())\n        loss.backward()\n        return loss.item()\n";
        let train = "from engine import Engine\nengine = Engine()\nfor epoch in range(3):\n    for x in loader:\n        engine.train_step(x)\n";
        let found = findings_of(ID, &[("engine.py", step), ("train.py", train)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place().line, 6);
    }

    #[test]
    fn quiet() {
        let interval = FIRES.replace(
            "        total += loss.item() * x.size(0)\n",
            "        if step % 50 == 0:\n            print(loss.item())\n",
        );
        assert!(findings_of(ID, &[("train.py", &interval)]).is_empty());
        let epoch = FIRES.replace("        total += loss.item()", "    total += loss.item()");
        assert!(findings_of(ID, &[("train.py", &epoch)]).is_empty());
        // Nothing here uses a GPU.
        assert!(findings_of(ID, &[("train.py", &FIRES.replace("'cuda'", "'cpu'"))]).is_empty());
    }

    #[test]
    fn look_alike() {
        let other = FIRES.replace("loss.item() * x.size(0)", "len(list(state.items()))");
        assert!(findings_of(ID, &[("train.py", &other)]).is_empty());
        let numpy = FIRES
            .replace("import torch", "import torch\nimport numpy as np")
            .replace("loss.item()", "np.mean(x_host).item()");
        assert!(findings_of(ID, &[("train.py", &numpy)]).is_empty());
    }
}
