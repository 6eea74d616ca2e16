//! # data-parallel
//!
//! ## What it detects
//! The program uses `torch.nn.DataParallel`.
//!
//! ## Why it is slow
//! A single Python process drives all GPUs. At every step it copies the model to each of them, scatters the batch and gathers the
//! outputs on the first GPU, which does more work than the others while they wait.
//!
//! ## Example
//! ```python
//! model = torch.nn.DataParallel(model).cuda()
//! ```
//!
//! ## Use instead
//! ```python
//! torch.distributed.init_process_group("nccl")  # torchrun --nproc-per-node 4 train.py
//! model = DistributedDataParallel(model.cuda(), device_ids=[local_rank])
//! ```
//!
//! ## Evidence
//! The call, after resolving aliases.
//!
//! ## Fix
//! Use `torch.nn.parallel.DistributedDataParallel` with one process per GPU (`torchrun`). On a single GPU, use neither.
//!
//! ## When it is wrong
//! The program only loads checkpoints that were written with it.
//!
//! ## References
//! PyTorch documentation of `DataParallel`, which recommends `DistributedDataParallel` even on a single node.
//! <https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html>
//!
//! ---
//! ## 检测什么
//! `torch.nn.DataParallel`。
//! ## 为什么慢
//! 一个 Python 进程驱动所有 GPU：每一步都把模型复制到每块 GPU、分发 batch，再把输出收集到第一块 GPU；它的工作比其他的多，其他的都在等。
//! ## 证据
//! 该调用（已解析别名）。
//! ## 怎么改
//! `torch.nn.parallel.DistributedDataParallel`，每块 GPU 一个进程（`torchrun`）；只有一块 GPU 时什么都不用。
//! ## 何时不成立
//! 只用来加载由它写出的 checkpoint 的代码。
//! ## 参考
//! PyTorch 文档：“It is recommended to use DistributedDataParallel, instead of this class, to do multi-GPU training, even if there is only a single node”。
//! <https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html>

use crate::rules::prelude::*;

pub const ID: &str = "data-parallel";
pub const SEVERITY: Severity = Severity::Warning;
pub const CHECK: Check = Check::Module(check);

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    for call in project.torch_calls(module) {
        if !call.calls_one_of(&["torch.nn.DataParallel", "torch.nn.parallel.DataParallel"]) {
            continue;
        }
        report
            .at(
                call.callee().unwrap_or(call),
                message!(
                    en: "DataParallel copies the model to every GPU at every step from one process",
                    zh: "DataParallel 由一个进程在每一步把模型复制到所有 GPU"
                ),
            )
            .advice(message!(
                en: "use DistributedDataParallel with one process per GPU: `torchrun --nproc-per-node N`",
                zh: "改用 DistributedDataParallel，每个 GPU 一个进程：`torchrun --nproc-per-node N`"
            ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fires() {
        let code = "import torch.nn as nn\nmodel = nn.DataParallel(model)\n";
        assert_eq!(findings_of(ID, &[("train.py", code)]).len(), 1);
    }

    #[test]
    fn quiet() {
        let code = "import torch\nmodel = torch.nn.parallel.DistributedDataParallel(model)\n";
        assert!(findings_of(ID, &[("train.py", code)]).is_empty());
    }

    #[test]
    fn look_alike() {
        let code =
            "import torch.nn as nn\nplain = model.module if isinstance(model, nn.DataParallel) else model\n";
        assert!(findings_of(ID, &[("train.py", code)]).is_empty());
    }
}
