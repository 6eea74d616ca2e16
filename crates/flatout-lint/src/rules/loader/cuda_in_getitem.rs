//! # cuda-in-getitem
//!
//! ## What it detects
//! A dataset's `__getitem__` moves its tensors to CUDA.
//!
//! ## Why it is slow
//! Each sample costs its own copy and several kernels instead of one copy per batch. It also prevents using workers: CUDA cannot be
//! used in a forked process, so the DataLoader is stuck with `num_workers=0`.
//!
//! ## Example
//! ```python
//! def __getitem__(self, index):
//!     return self.x[index].cuda(), self.y[index].cuda()
//! ```
//!
//! ## Use instead
//! ```python
//! def __getitem__(self, index):
//!     return self.x[index], self.y[index]
//!
//! for x, y in loader:
//!     x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
//! ```
//!
//! ## Evidence
//! `.cuda()`, `.to("cuda…")` or `.to(device)` inside `__getitem__` of a class that inherits `torch.utils.data.Dataset`.
//!
//! ## Fix
//! Return CPU tensors, and move the whole batch in the training loop with `non_blocking=True`. A dataset that fits on the GPU can be
//! moved there as a whole, once.
//!
//! ## When it is wrong
//! Rarely: if the whole dataset is already on the GPU, there is nothing to move.
//!
//! ## References
//! PyTorch documentation of `torch.utils.data`: "It is generally not recommended to return CUDA tensors in multi-process loading".
//! <https://docs.pytorch.org/docs/stable/data.html>
//!
//! ---
//! ## 检测什么
//! 数据集的 `__getitem__` 把张量移到 CUDA。
//! ## 为什么慢
//! 每个样本都变成单独的一次拷贝和几个 kernel，而不是每个 batch 一次拷贝。有 worker 时更糟：fork 出的进程不能使用 CUDA，loader 只能用 `num_workers=0`。
//! ## 证据
//! 继承 `torch.utils.data.Dataset` 的类在 `__getitem__` 中调用 `.cuda()`、`.to("cuda…")` 或 `.to(device)`。
//! ## 怎么改
//! 返回 CPU 张量；在训练循环中用 `non_blocking=True` 移动整个 batch。放得下的数据集可以一次性整体移到 GPU。
//! ## 何时不成立
//! 几乎不会：整个数据集已经在 GPU 上时，没有东西需要移动。
//! ## 参考
//! PyTorch 文档 `torch.utils.data`：“It is generally not recommended to return CUDA tensors in multi-process loading”。
//! <https://docs.pytorch.org/docs/stable/data.html>

use crate::rules::prelude::*;

pub const ID: &str = "cuda-in-getitem";
pub const SEVERITY: Severity = Severity::Critical;
pub const CHECK: Check = Check::Module(check);

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    for method in dataset_getitems(project, module) {
        let mut moves = method
            .calls_inside()
            .filter(|call| moves_to_device(*call).is_some());
        let Some(call) = moves.next() else { continue };
        if !project.uses_cuda(module) {
            continue;
        }
        let text = call.brief();
        report
            .at(
                call,
                message!(
                    en: "`{text}` copies each sample to the GPU on its own and rules out DataLoader workers",
                    zh: "`{text}` 把每个样本单独复制到 GPU，并且无法使用 worker"
                ),
            )
            .advice(message!(
                en: "return CPU tensors and move the whole batch in the training loop",
                zh: "返回 CPU 张量，在训练循环里整批复制"
            ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\nfrom torch.utils.data import Dataset\nclass Data(Dataset):\n    def __getitem__(self, index):\n        return self.x[index].to('cuda')\n";

    #[test]
    fn fires() {
        assert_eq!(findings_of(ID, &[("data.py", FIRES)]).len(), 1);
    }

    #[test]
    fn quiet() {
        assert!(findings_of(ID, &[("data.py", &FIRES.replace("'cuda'", "torch.float32"))]).is_empty());
    }

    #[test]
    fn look_alike() {
        // Once, for all samples.
        let once = FIRES.replace("__getitem__(self, index)", "__init__(self, index)");
        assert!(findings_of(ID, &[("data.py", &once)]).is_empty());
        // Not a data set of PyTorch.
        assert!(findings_of(ID, &[("data.py", &FIRES.replace("(Dataset)", "(Registry)"))]).is_empty());
    }
}
