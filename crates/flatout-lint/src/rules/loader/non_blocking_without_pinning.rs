//! # non-blocking-without-pinning
//!
//! ## What it detects
//! `.to(device, non_blocking=True)` is called on a batch whose DataLoader does not pin memory.
//!
//! ## Why it is slow
//! From pageable memory, `non_blocking` has no effect: the driver copies through its own buffer and the CPU waits. The code suggests
//! that the copy overlaps with computation, but it does not.
//!
//! ## Example
//! ```python
//! loader = DataLoader(dataset, num_workers=8)
//! for x, y in loader:
//!     x = x.to("cuda", non_blocking=True)
//! ```
//!
//! ## Use instead
//! ```python
//! loader = DataLoader(dataset, num_workers=8, pin_memory=True)
//! for x, y in loader:
//!     x = x.to("cuda", non_blocking=True)
//! ```
//!
//! ## Evidence
//! Every DataLoader of the file has `pin_memory` unset or false, and the loop's batch variable is copied with `non_blocking=True`.
//!
//! ## Fix
//! Set `pin_memory=True` on the DataLoader. `--fix` adds it through the rule `pageable-copies`.
//!
//! ## When it is wrong
//! The program pins the batch itself between the DataLoader and the copy.
//!
//! ## References
//! PyTorch tutorial, "A guide on good usage of non_blocking and pin_memory() in PyTorch".
//! <https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html>
//!
//! ---
//! ## 检测什么
//! 对没有锁页的 loader 的 batch 使用 `.to(device, non_blocking=True)`。
//! ## 为什么慢
//! 从可分页内存拷贝时 `non_blocking` 不起作用：驱动经过自己的缓冲区拷贝，CPU 等待。代码读起来像是拷贝与计算并行，其实不是。
//! ## 证据
//! 该文件的每个 loader 都没有设置 `pin_memory` 或为 false，而循环自己的 batch 变量以 `non_blocking=True` 拷贝。
//! ## 怎么改
//! loader 设置 `pin_memory=True`；`--fix` 通过规则 `pageable-copies` 加上。
//! ## 何时不成立
//! 在 loader 与拷贝之间手动锁页。
//! ## 参考
//! PyTorch 教程“A guide on good usage of non_blocking and pin_memory() in PyTorch”。
//! <https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html>

use crate::rules::prelude::*;

pub const ID: &str = "non-blocking-without-pinning";
pub const SEVERITY: Severity = Severity::Warning;
pub const CHECK: Check = Check::Module(check);

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    let loaders: Vec<Code<'_>> = loader_calls(project, module).collect();
    if loaders.is_empty() || !loaders.iter().all(|call| pins_memory(*call) == Some(false)) {
        return;
    }
    if project
        .torch_calls(module)
        .any(|call| call.is_method("pin_memory"))
    {
        return;
    }
    let mut copies = transfers(project, module)
        .into_iter()
        .filter(|(call, non_blocking)| {
            *non_blocking
                && call
                    .keyword("non_blocking")
                    .is_some_and(|value| value.as_boolean() == Some(true))
        });
    // One is enough for a file: the cure is one word at the loader.
    if let Some((call, _)) = copies.next() {
        let text = call.brief();
        report
            .at(
                call,
                message!(
                    en: "`{text}` cannot overlap with computation: the DataLoader does not pin memory",
                    zh: "`{text}` 无法与计算重叠：DataLoader 没有启用 pin_memory"
                ),
            )
            .see(loaders[0].place())
            .advice(message!(en: "set `pin_memory=True` on the DataLoader", zh: "在 DataLoader 上设置 `pin_memory=True`"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\nfrom torch.utils.data import DataLoader\nloader = DataLoader(data, num_workers=4)\nfor x in loader:\n    x = x.to(device, non_blocking=True)\n    model(x).backward()\n";

    #[test]
    fn fires() {
        assert_eq!(findings_of(ID, &[("train.py", FIRES)]).len(), 1);
    }

    #[test]
    fn quiet() {
        let pinned = FIRES.replace("num_workers=4", "pin_memory=True");
        assert!(findings_of(ID, &[("train.py", &pinned)]).is_empty());
    }

    #[test]
    fn look_alike() {
        let by_hand = FIRES.replace("x = x.to", "x = x.pin_memory().to");
        assert!(findings_of(ID, &[("train.py", &by_hand)]).is_empty());
        let unknown = FIRES.replace("num_workers=4", "pin_memory=args.pin");
        assert!(findings_of(ID, &[("train.py", &unknown)]).is_empty());
    }
}
