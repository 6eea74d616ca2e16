//! # synchronize-in-step
//!
//! ## What it detects
//! `torch.cuda.synchronize()` is called at every step of a training loop.
//!
//! ## Why it is slow
//! The CPU waits until the GPU has nothing left to do, and only then starts to queue the next step. Launching and computing no longer
//! overlap.
//!
//! ## Example
//! ```python
//! for x, y in loader:
//!     train_step(x, y)
//!     torch.cuda.synchronize()
//! ```
//!
//! ## Use instead
//! ```python
//! for x, y in loader:
//!     train_step(x, y)
//! ```
//!
//! ## Evidence
//! Every step reaches the call, without an interval.
//!
//! ## Fix
//! Remove it. To measure times, use CUDA events or `flatout run`, which does not need such a call.
//!
//! ## Fix safety
//! `--fix --unsafe` removes a call that is the only statement on its line. It is unsafe because time measurements around it change
//! their meaning.
//!
//! ## When it is wrong
//! A benchmark, whose purpose is to wait.
//!
//! ## References
//! PyTorch documentation, "CUDA semantics: Asynchronous execution".
//! <https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution>
//!
//! ---
//! ## 检测什么
//! 训练循环的每一步都调用 `torch.cuda.synchronize()`。
//! ## 为什么慢
//! CPU 要等到 GPU 无事可做，才开始下发下一步：下发与计算不再重叠。
//! ## 证据
//! 调用位于每一步的路径上，没有间隔条件。
//! ## 怎么改
//! 去掉它。计时请用 CUDA 事件，或用 `flatout run` 测量，它不需要这样的调用。
//! ## 修改是否安全
//! 如果该调用独占一行，`--fix --unsafe` 会删除它。之所以不安全，是因为它前后的计时含义会改变。
//! ## 何时不成立
//! 基准测试，其目的就是等待。
//! ## 参考
//! PyTorch 文档“CUDA semantics: Asynchronous execution”。
//! <https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution>

use crate::rules::prelude::*;

pub const ID: &str = "synchronize-in-step";
pub const SEVERITY: Severity = Severity::Warning;
pub const CHECK: Check = Check::Module(check);

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    for (call, hot) in project.hot_calls(module) {
        if hot != Hot::Step
            || !call.calls_one_of(&["torch.cuda.synchronize", "torch.cuda.current_stream.synchronize"])
        {
            continue;
        }
        let found = report.at(
            call,
            message!(en: "the CPU waits for the whole GPU at every step", zh: "CPU 在每一步都等待整个 GPU"),
        );
        add_wait_note(found, call);
        let say = message!(en: "remove it; `flatout run` times the steps without it", zh: "删除它；`flatout run` 不需要它也能测量");
        let alone = call.statement();
        let removable = matches!(alone.kind(), Kind::Expression(_)) && has_neighbours(alone);
        match alone.remove_line().filter(|_| removable) {
            Some(edit) => found.unsafe_fix(vec![edit], say),
            None => found.advice(say),
        };
    }
}

/// A body must keep at least one statement.
pub(crate) fn has_neighbours(statement: Code<'_>) -> bool {
    statement.parent().is_some_and(|parent| {
        let in_clause = |body: &[NodeId]| body.contains(&statement.id) && body.len() > 1;
        match parent.kind() {
            Kind::If(clauses) => clauses.iter().any(|(_, body)| in_clause(body)),
            _ => in_clause(parent.body()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\nfor x in loader:\n    loss = model(x)\n    loss.backward()\n    torch.cuda.synchronize()\n    optimizer.step()\n";

    #[test]
    fn fires() {
        assert_eq!(findings_of(ID, &[("train.py", FIRES)]).len(), 1);
        assert_eq!(
            edits_of(ID, FIRES),
            FIRES.replace("    torch.cuda.synchronize()\n", "")
        );
    }

    #[test]
    fn quiet() {
        let after = FIRES.replace("    torch.cuda.synchronize()\n", "") + "torch.cuda.synchronize()\n";
        assert!(findings_of(ID, &[("train.py", &after)]).is_empty());
    }

    #[test]
    fn look_alike() {
        let profiling = FIRES.replace(
            "    torch.cuda.synchronize()",
            "    if args.profile:\n        torch.cuda.synchronize()",
        );
        assert!(findings_of(ID, &[("train.py", &profiling)]).is_empty());
        let other = FIRES.replace("torch.cuda.synchronize()", "barrier.synchronize()");
        assert!(findings_of(ID, &[("train.py", &other)]).is_empty());
    }
}
