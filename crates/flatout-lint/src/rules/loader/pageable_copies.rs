//! # pageable-copies
//!
//! ## What it detects
//! A `DataLoader` has `pin_memory` unset or false, in a file whose training loop moves the batches to CUDA.
//!
//! ## Why it is slow
//! A copy from pageable memory first goes through a small pinned buffer of the driver, and the CPU waits for it. From pinned memory
//! the GPU fetches the batch on its own while the CPU continues.
//!
//! ## Example
//! ```python
//! loader = DataLoader(dataset, num_workers=8)
//! for x, y in loader:
//!     x = x.to("cuda")
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
//! The DataLoader's argument, and the `.to(device)` or `.cuda()` call on the loop's batch.
//!
//! ## Fix
//! Set `pin_memory=True`, together with `non_blocking=True` on the copy.
//!
//! ## Fix safety
//! `--fix` adds `pin_memory=True`. It is safe: results stay the same.
//!
//! ## When it is wrong
//! The dataset already returns GPU tensors, or host memory is very short.
//!
//! ## References
//! PyTorch tutorial, "A guide on good usage of non_blocking and pin_memory() in PyTorch".
//! <https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html>
//!
//! ---
//! ## 检测什么
//! `DataLoader` 没有设置 `pin_memory` 或为 false，而该文件的训练循环把 batch 移到 CUDA。
//! ## 为什么慢
//! 从可分页内存拷贝要先经过驱动的小块锁页缓冲区，CPU 还要等它。从锁页内存拷贝时，GPU 自己取 batch，CPU 继续工作。
//! ## 证据
//! loader 的参数，以及循环中对所取 batch 的 `.to(device)` 或 `.cuda()`。
//! ## 怎么改
//! 设置 `pin_memory=True`，拷贝时再加 `non_blocking=True`。
//! ## 修改是否安全
//! `--fix` 会加上 `pin_memory=True`。这是安全的：结果不变。
//! ## 何时不成立
//! 数据集返回的已经是 GPU 上的张量，或主机内存非常紧张。
//! ## 参考
//! PyTorch 教程“A guide on good usage of non_blocking and pin_memory() in PyTorch”。
//! <https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html>

use crate::rules::prelude::*;

pub const ID: &str = "pageable-copies";
pub const SEVERITY: Severity = Severity::Warning;
pub const CHECK: Check = Check::Module(check);

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    let mut moves = None;
    for call in loader_calls(project, module) {
        if pins_memory(call) != Some(false) || gives_one_batch(call) {
            continue;
        }
        let moves =
            *moves.get_or_insert_with(|| !transfers(project, module).is_empty() && project.uses_cuda(module));
        if !moves {
            continue;
        }
        let found = report.at(
            call.callee().unwrap_or(call),
            message!(
                en: "batches are copied to CUDA from memory that the DataLoader does not pin",
                zh: "batch 从未锁页的内存复制到 CUDA：DataLoader 没有启用 pin_memory"
            ),
        );
        let say = message!(en: "add `pin_memory=True`", zh: "加上 `pin_memory=True`");
        // A value that is followed from elsewhere is changed there, by a person.
        let here = call
            .keyword("pin_memory")
            .is_none_or(|value| value.as_boolean().is_some());
        match call
            .set_keyword("pin_memory", "True")
            .filter(|_| here && call.positional(7).is_none())
        {
            Some(edit) => found.safe_fix(vec![edit], say),
            None => found.advice(say),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\nfrom torch.utils.data import DataLoader\nloader = DataLoader(data, batch_size=64, num_workers=4)\nfor x, y in loader:\n    x, y = x.to(device), y.to(device)\n    loss = model(x)\n    loss.backward()\ndevice = torch.device('cuda')\n";

    #[test]
    fn fires() {
        assert_eq!(findings_of(ID, &[("train.py", FIRES)]).len(), 1);
        assert!(edits_of(ID, FIRES).contains("num_workers=4, pin_memory=True)"));
        let off = FIRES.replace("num_workers=4", "pin_memory=False");
        assert!(edits_of(ID, &off).contains("DataLoader(data, batch_size=64, pin_memory=True)"));
    }

    #[test]
    fn quiet() {
        let set = FIRES.replace("num_workers=4", "pin_memory=True");
        assert!(findings_of(ID, &[("train.py", &set)]).is_empty());
        let condition = FIRES.replace("num_workers=4", "pin_memory=torch.cuda.is_available()");
        assert!(findings_of(ID, &[("train.py", &condition)]).is_empty());
    }

    #[test]
    fn look_alike() {
        // A look at one batch.
        let look = FIRES
            .replace(
                "for x, y in loader:",
                "first = DataLoader(data)\nx, y = next(iter(first))\nfor x, y in loader:",
            )
            .replace("num_workers=4", "pin_memory=True");
        assert!(findings_of(ID, &[("train.py", &look)]).is_empty());
        // Nothing of the batch is copied.
        let stays = FIRES.replace("x, y = x.to(device), y.to(device)", "x = x.to(torch.float32)");
        assert!(findings_of(ID, &[("train.py", &stays)]).is_empty());
    }
}
