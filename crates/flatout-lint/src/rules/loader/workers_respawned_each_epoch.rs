//! # workers-respawned-each-epoch
//!
//! ## What it detects
//! A `DataLoader` with workers but without `persistent_workers=True` is iterated over once in each of several epochs.
//!
//! ## Why it is slow
//! At the end of every epoch the workers exit. New ones start, import everything again and refill the queue. With short epochs this
//! pause is a large part of the time; with long epochs it does not matter. This is informational: a recorded run decides.
//!
//! ## Example
//! ```python
//! loader = DataLoader(dataset, num_workers=8)
//! ```
//!
//! ## Use instead
//! ```python
//! loader = DataLoader(dataset, num_workers=8, persistent_workers=True)
//! ```
//!
//! ## Evidence
//! `num_workers` is known to be above 0, `persistent_workers` is not given, and the loop over the DataLoader is inside a loop over
//! epochs.
//!
//! ## Fix
//! Set `persistent_workers=True`.
//!
//! ## Fix safety
//! `--fix --unsafe` adds `persistent_workers=True`. It is unsafe because workers then keep their state (random numbers, open files)
//! between epochs.
//!
//! ## When it is wrong
//! Memory is short, because the workers of the training and validation DataLoaders then exist at the same time. The dataset changes
//! between epochs.
//!
//! ## References
//! PyTorch documentation of `torch.utils.data.DataLoader`, parameter `persistent_workers`.
//! <https://docs.pytorch.org/docs/stable/data.html>
//!
//! ---
//! ## 检测什么
//! 有 worker 而没有 `persistent_workers=True` 的 `DataLoader`，在多个 epoch 中各遍历一次。
//! ## 为什么慢
//! 每个 epoch 结束时 worker 退出，新的 worker 启动、重新 import、重新填充队列。epoch 短时这段停顿占很大比例，长时看不出来。只作提示：由运行记录决定。
//! ## 证据
//! 已知 `num_workers` 大于 0，没有给出 `persistent_workers`，且遍历 loader 的循环在 epoch 循环之内。
//! ## 怎么改
//! 设置 `persistent_workers=True`。
//! ## 修改是否安全
//! `--fix --unsafe` 会加上 `persistent_workers=True`。之所以不安全，是因为 worker 会在 epoch 之间保留状态（随机数、打开的文件）。
//! ## 何时不成立
//! 内存紧张（训练和验证 loader 的 worker 会同时存在）；或数据集在 epoch 之间变化。
//! ## 参考
//! PyTorch 文档 `torch.utils.data.DataLoader` 的参数 `persistent_workers`。
//! <https://docs.pytorch.org/docs/stable/data.html>

use crate::rules::prelude::*;

pub const ID: &str = "workers-respawned-each-epoch";
pub const SEVERITY: Severity = Severity::Information;
pub const CHECK: Check = Check::Module(check);

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    for call in loader_calls(project, module) {
        if call.splats() || call.keyword("persistent_workers").is_some() {
            continue;
        }
        if !has_workers(call) || !has_epochs(project, module) || used_up_here(call) {
            continue;
        }
        let found = report.at(
            call.callee().unwrap_or(call),
            message!(
                en: "the DataLoader workers are restarted every epoch",
                zh: "每个 epoch 都会重新启动 worker"
            ),
        );
        if let Some(edit) = call.set_keyword("persistent_workers", "True") {
            found.unsafe_fix(
                vec![edit],
                message!(en: "add `persistent_workers=True`", zh: "加上 `persistent_workers=True`"),
            );
        }
    }
}

/// Built, gone over once and dropped in one function: the next call builds another, whatever its workers do.
fn used_up_here(call: Code<'_>) -> bool {
    let Some(function) = call.function_around() else {
        return false;
    };
    let statement = call.statement();
    let Kind::Assign { targets, .. } = statement.kind() else {
        return false;
    };
    let [target] = targets.as_slice() else {
        return false;
    };
    let name = statement.at(*target).text();
    let mut loops = function.runs().filter(|code| code.is_loop());
    let over_it = loops.any(|code| {
        let goes_over = code
            .iterator()
            .is_some_and(|iterator| iterator.subtree().any(|part| part.as_name() == Some(name)));
        goes_over && code.loop_around(LoopRole::Epoch).is_none()
    });
    let handed_on = function.calls_inside().any(|other| {
        let arguments = other
            .arguments()
            .map_or(&[][..], |arguments| arguments.positional.as_slice());
        let named = arguments.iter().any(|id| other.at(*id).as_name() == Some(name));
        named
            && !matches!(
                other.callee().and_then(Code::as_name),
                Some("len" | "enumerate" | "tqdm" | "iter")
            )
    });
    over_it || (handed_on && called_in_epochs(call, function))
}

/// The function that builds the loader runs once an epoch.
fn called_in_epochs(call: Code<'_>, function: Code<'_>) -> bool {
    call.project
        .callers(function)
        .any(|caller| caller.loop_around(LoopRole::Epoch).is_some())
}

/// A loop over epochs in the program.
fn has_epochs(project: &Project, module: ModuleId) -> bool {
    let program = project.program(module).iter();
    program
        .into_iter()
        .any(|module| !project.flow().loops(project, *module, LoopRole::Epoch).is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\nloader = torch.utils.data.DataLoader(data, num_workers=4)\nfor epoch in range(9):\n    for x in loader:\n        model(x).backward()\n";

    #[test]
    fn fires() {
        assert_eq!(findings_of(ID, &[("train.py", FIRES)]).len(), 1);
    }

    #[test]
    fn quiet() {
        let set = FIRES.replace("num_workers=4", "num_workers=4, persistent_workers=True");
        assert!(findings_of(ID, &[("train.py", &set)]).is_empty());
        let none = FIRES.replace("num_workers=4", "num_workers=0");
        assert!(findings_of(ID, &[("train.py", &none)]).is_empty());
    }

    #[test]
    fn look_alike() {
        let one_pass = "import torch\nloader = torch.utils.data.DataLoader(data, num_workers=4)\nfor x in loader:\n    model(x).backward()\n";
        assert!(findings_of(ID, &[("train.py", one_pass)]).is_empty());
        let counting = FIRES
            .replace("loader = ", "def mean(data):\n    once = ")
            .replace("for epoch", "    for x in once:\n        add(x)\nfor epoch");
        assert!(findings_of(ID, &[("train.py", &counting)]).is_empty());
    }
}
