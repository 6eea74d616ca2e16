//! # transfer-without-non-blocking
//!
//! ## What it detects
//! A batch of a DataLoader with `pin_memory=True` is copied to CUDA without `non_blocking=True`.
//!
//! ## Why it is slow
//! The memory is pinned so that the copy can run on its own, but a blocking copy still makes the CPU wait for it.
//!
//! ## Example
//! ```python
//! loader = DataLoader(dataset, pin_memory=True)
//! for x, y in loader:
//!     x = x.to("cuda")
//! ```
//!
//! ## Use instead
//! ```python
//! loader = DataLoader(dataset, pin_memory=True)
//! for x, y in loader:
//!     x = x.to("cuda", non_blocking=True)
//! ```
//!
//! ## Evidence
//! Every DataLoader of the file pins its memory, and the copied tensor is one of the loop's batch variables.
//!
//! ## Fix
//! Add `non_blocking=True` to the copy.
//!
//! ## Fix safety
//! `--fix` adds `non_blocking=True`. It is safe: later GPU work is ordered after the copy, so results stay the same.
//!
//! ## When it is wrong
//! The CPU writes to the same host tensor right after the copy. This does not happen to a batch fresh from the DataLoader.
//!
//! ## References
//! PyTorch tutorial, "A guide on good usage of non_blocking and pin_memory() in PyTorch".
//! <https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html>
//!
//! ---
//! ## 检测什么
//! loader 设置了 `pin_memory=True`，而 batch 拷贝到 CUDA 时没有 `non_blocking=True`。
//! ## 为什么慢
//! 锁页是为了让拷贝自行进行，但普通的拷贝仍让 CPU 等待。
//! ## 证据
//! 该文件的每个 loader 都锁页；拷贝的是循环自己的 batch 变量。
//! ## 怎么改
//! 加上 `non_blocking=True`。
//! ## 修改是否安全
//! `--fix` 会加上 `non_blocking=True`。这是安全的：之后的 GPU 工作都排在拷贝之后，结果不变。
//! ## 何时不成立
//! CPU 在拷贝之后马上写同一个主机张量。刚从 loader 取出的 batch 不会被写。
//! ## 参考
//! PyTorch 教程“A guide on good usage of non_blocking and pin_memory() in PyTorch”。
//! <https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html>

use crate::rules::prelude::*;

pub const ID: &str = "transfer-without-non-blocking";
pub const SEVERITY: Severity = Severity::Information;
pub const CHECK: Check = Check::Module(check);

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    let mut loaders = loader_calls(project, module).peekable();
    let some = loaders.peek().is_some();
    if !some || !loaders.all(|call| pins_memory(call) == Some(true)) {
        return;
    }
    for (call, non_blocking) in transfers(project, module) {
        if non_blocking {
            continue;
        }
        let text = call.brief();
        let found = report.at(
            call,
            message!(
                en: "`{text}` waits for the copy, although the memory is pinned",
                zh: "内存已 pin，`{text}` 却仍等待复制完成"
            ),
        );
        if let Some(edit) = call.set_keyword("non_blocking", "True") {
            found.safe_fix(
                vec![edit],
                message!(en: "add `non_blocking=True`", zh: "加上 `non_blocking=True`"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\nfrom torch.utils.data import DataLoader\nloader = DataLoader(data, pin_memory=True)\nfor x, y in loader:\n    x = x.to(device)\n    y = y.cuda()\n    model(x).backward()\n";

    #[test]
    fn fires() {
        assert_eq!(findings_of(ID, &[("train.py", FIRES)]).len(), 2);
        let fixed = edits_of(ID, FIRES);
        assert!(
            fixed.contains("x.to(device, non_blocking=True)") && fixed.contains("y.cuda(non_blocking=True)")
        );
    }

    #[test]
    fn quiet() {
        let set = FIRES
            .replace("to(device)", "to(device, non_blocking=True)")
            .replace("cuda()", "cuda(non_blocking=True)");
        assert!(findings_of(ID, &[("train.py", &set)]).is_empty());
        let unpinned = FIRES.replace("pin_memory=True", "num_workers=2");
        assert!(findings_of(ID, &[("train.py", &unpinned)]).is_empty());
    }

    #[test]
    fn look_alike() {
        // Not the batch: a tensor made on the host, which may be written to again.
        let other = FIRES
            .replace("x = x.to(device)", "z = buffer.to(device)")
            .replace("    y = y.cuda()\n", "");
        assert!(findings_of(ID, &[("train.py", &other)]).is_empty());
    }
}
