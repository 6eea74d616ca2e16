//! # loss-kept-with-graph
//!
//! ## What it detects
//! `total += loss` or `losses.append(loss)` runs at every step, while `loss` still carries its autograd graph.
//!
//! ## Why it is slow
//! The sum refers to the graph of every past step, so none of their activations can be freed. Memory grows step by step until the run
//! fails or must use a smaller batch.
//!
//! ## Example
//! ```python
//! loss.backward()
//! total += loss
//! ```
//!
//! ## Use instead
//! ```python
//! loss.backward()
//! total += loss.detach()
//! ```
//!
//! ## Evidence
//! The loop calls `.backward()` on this variable, and the variable itself (without `.item()` or `.detach()`) is summed or stored, and
//! read after the loop.
//!
//! ## Fix
//! Use `loss.detach()`.
//!
//! ## Fix safety
//! `--fix` adds `.detach()`. It is safe: the value is the same, only the graph is dropped.
//!
//! ## When it is wrong
//! `.backward()` is called on the sum itself later (gradient of a sum): the rule does not fire then.
//!
//! ## References
//! PyTorch FAQ, "My model reports cuda runtime error(2): out of memory": do not accumulate history across the training loop.
//! <https://docs.pytorch.org/docs/stable/notes/faq.html>
//!
//! ---
//! ## 检测什么
//! 每一步 `total += loss` 或 `losses.append(loss)`，而 `loss` 仍带着计算图。
//! ## 为什么慢
//! 总和引用了之前每一步的计算图：它们的激活值都不能释放。显存逐步增长，直到程序崩溃或只能用更小的 batch。
//! ## 证据
//! 循环中正是对这个名字调用 `.backward()`，而累加或保存的是它本身（不是 `.item()`，不是 `.detach()`），并在循环之后读取。
//! ## 怎么改
//! 改用 `loss.detach()`。
//! ## 修改是否安全
//! `--fix` 会加上 `.detach()`。这是安全的：数值相同，只是不再保留计算图。
//! ## 何时不成立
//! 之后要对总和本身调用 `.backward()`（和的梯度）：那样循环会对总和调用 `.backward()`，本规则不会报告。
//! ## 参考
//! PyTorch FAQ “My model reports cuda runtime error(2): out of memory: Don't accumulate history across your training loop”。
//! <https://docs.pytorch.org/docs/stable/notes/faq.html>

use crate::rules::prelude::*;

pub const ID: &str = "loss-kept-with-graph";
pub const SEVERITY: Severity = Severity::Critical;
pub const CHECK: Check = Check::Module(check);

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    for around in project.flow().loops(project, module, LoopRole::Step) {
        let losses: Vec<&str> = around
            .calls_inside()
            .filter_map(|call| call.method_call())
            .filter(|(_, method)| *method == "backward")
            .filter_map(|(receiver, _)| receiver.as_name())
            .collect();
        for code in around.runs() {
            let Some(loss) =
                kept(code).filter(|loss| loss.as_name().is_some_and(|name| losses.contains(&name)))
            else {
                continue;
            };
            if is_summed_loss(code, &losses)
                || code.hot() != Some(Hot::Step)
                || made_in(code, around)
                || is_detached(loss)
            {
                continue;
            }
            let name = loss.text();
            report
                .at(
                    code,
                    message!(
                        en: "`{name}` is kept with its autograd graph, so the memory of every past step \
                        stays allocated",
                        zh: "`{name}` 连同计算图一起保留：之前每一步的显存都无法释放"
                    ),
                )
                .safe_fix(
                    vec![loss.replace(format!("{name}.detach()"))],
                    message!(en: "keep `{name}.detach()` instead", zh: "改为保留 `{name}.detach()`"),
                );
        }
    }
}

/// The value that `total += value` or `list.append(value)` keeps.
fn kept(code: Code<'_>) -> Option<Code<'_>> {
    match code.kind() {
        Kind::AugmentedAssign {
            operator: Operator::Add,
            value,
            target,
        } => matches!(code.at(*target).kind(), Kind::Name).then(|| code.at(*value)),
        Kind::Call { .. } if code.is_method("append") => code.positional(0),
        _ => None,
    }
}

/// `loss += part` where `loss.backward()` follows.
fn is_summed_loss(code: Code<'_>, losses: &[&str]) -> bool {
    match code.kind() {
        Kind::AugmentedAssign { target, .. } => code
            .at(*target)
            .as_name()
            .is_some_and(|name| losses.contains(&name)),
        _ => code.method_call().and_then(|(list, _)| list.as_name()).is_none(),
    }
}

/// The sum or the list is reset at every step: nothing accumulates.
fn made_in(code: Code<'_>, around: Code<'_>) -> bool {
    let target = match code.kind() {
        Kind::AugmentedAssign { target, .. } => code.at(*target),
        _ => match code.method_call() {
            Some((list, _)) => list,
            None => return true,
        },
    };
    let bindings = target.own_bindings();
    let begins = |one: &crate::python::Binding| matches!(one.bound, Bound::Value { .. });
    bindings
        .iter()
        .any(|one| begins(one) && around.tree().contains(around.id, one.at))
        || !bindings.iter().any(begins)
}

/// The name was detached or turned into a number before it is kept.
fn is_detached(loss: Code<'_>) -> bool {
    loss.own_bindings().iter().any(|one| match one.bound {
        Bound::Value { value, .. } => loss
            .at(value)
            .method_call()
            .is_some_and(|(_, method)| matches!(method, "item" | "detach")),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\ntotal = 0\nfor x in loader:\n    loss = model(x)\n    loss.backward()\n    total += loss\n";

    #[test]
    fn fires() {
        assert_eq!(findings_of(ID, &[("train.py", FIRES)]).len(), 1);
        assert!(edits_of(ID, FIRES).contains("total += loss.detach()"));
        let list = FIRES
            .replace("total += loss", "kept.append(loss)")
            .replace("total = 0", "kept = []");
        assert_eq!(findings_of(ID, &[("train.py", &list)]).len(), 1);
    }

    #[test]
    fn quiet() {
        for value in ["loss.item()", "loss.detach()", "float(loss)"] {
            assert!(
                findings_of(
                    ID,
                    &[("train.py", &FIRES.replace("+= loss", &format!("+= {value}")))]
                )
                .is_empty()
            );
        }
    }

    #[test]
    fn look_alike() {
        let summed = "import torch\nfor x in loader:\n    loss = 0\n    for part in heads:\n        loss += part(x)\n    loss.backward()\n";
        assert!(findings_of(ID, &[("train.py", summed)]).is_empty());
        let each_step = FIRES
            .replace("    loss = model(x)", "    total = 0\n    loss = model(x)")
            .replace("total = 0\nfor", "for");
        assert!(findings_of(ID, &[("train.py", &each_step)]).is_empty());
    }
}
