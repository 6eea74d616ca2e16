//! # data-parallel
//!
//! ## What it detects
//! `nn.DataParallel` spreads each batch over several GPUs.
//!
//! ## Why it is slow
//! A single process with one Python thread per GPU copies the model to every GPU at each step and gathers the outputs on the first
//! GPU, which becomes the bottleneck and runs out of memory first.
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
//! The class that wraps the model, and the GPUs in use.
//!
//! ## Fix
//! Use `DistributedDataParallel` with one process per GPU, started with `torchrun`.
//!
//! ## When it is wrong
//! `DataParallel` is never faster, only simpler.
//!
//! ## References
//! PyTorch's documentation recommends DistributedDataParallel even on a single machine.
//! <https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html>
//!
//! ---
//! ## 检测什么
//! `nn.DataParallel` 把 batch 分到多块 GPU 上。
//! ## 为什么慢
//! 一个进程、每块 GPU 一个 Python 线程，每步都把模型复制到每块 GPU，并把输出收集到第一块：它成为瓶颈，显存也最先用满。
//! ## 证据
//! 包装模型的类，以及使用中的 GPU。
//! ## 怎么改
//! 用 `DistributedDataParallel`，每块 GPU 一个进程，由 `torchrun` 启动。
//! ## 何时不成立
//! 它从不会更快，只是更简单。
//! ## 参考
//! PyTorch 文档：即使在单机上也推荐 DistributedDataParallel。
//! <https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html>

use crate::analysis::Analysis;
use crate::candidate::Candidate;
use flatout_core::{Evidence, Fix, Severity, message};

pub const ID: &str = "data-parallel";
pub const WORST: Severity = Severity::Warning;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    analysis.window.as_ref()?;
    if analysis.facts.text("parallel.class").as_deref() != Some("DataParallel") {
        return None;
    }
    let place = analysis.facts.place("parallel.class");
    let gpus = analysis
        .facts
        .number("device.used")
        .unwrap_or(analysis.gpus.len() as f64);
    Some(
        Candidate::new(
            ID,
            Severity::Warning,
            message!(
                en: "nn.DataParallel copies the model to every GPU at each step",
                zh: "nn.DataParallel 每一步都把模型复制到所有 GPU"
            ),
        )
        .evidence(
            analysis.in_run(
                Evidence::new(message!(en: "GPUs in use", zh: "使用的 GPU 数"), gpus, "").against(1.0),
            ),
        )
        .place(place.as_ref())
        .code(
            place.as_ref(),
            message!(
                en: "Wrap the model in DistributedDataParallel instead, one process per GPU",
                zh: "改用 DistributedDataParallel 包装模型，每个 GPU 一个进程"
            ),
        )
        .fix(Fix::Command {
            command: "torchrun --nproc-per-node=gpu train.py".into(),
            say: message!(
                en: "run one process per GPU, with the model wrapped in DistributedDataParallel",
                zh: "每个 GPU 一个进程，模型用 DistributedDataParallel 包装"
            ),
        }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};

    #[test]
    fn fires() {
        assert!(
            run(
                check,
                Build::steady(20)
                    .gpu(|_| {})
                    .fact("parallel.class", "DataParallel")
            )
            .is_some()
        );
    }

    #[test]
    fn quiet() {
        let build = Build::steady(20)
            .gpu(|_| {})
            .fact("parallel.class", "DistributedDataParallel");
        assert!(run(check, build).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
