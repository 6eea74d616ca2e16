//! # gpus-unbalanced
//!
//! ## What it detects
//! The GPUs of one program are unevenly loaded.
//!
//! ## Why it is slow
//! At every step, the other GPUs wait for one of them. Which one depends on the program. A rank that waits inside an NCCL collective
//! busy-waits, and its GPU reads 100%, so with one process per GPU the slow rank is the one with **low** utilization. In a single
//! process (`DataParallel`, a model split by hand) a waiting GPU is idle, so the busiest one holds the others up.
//!
//! ## Example
//! ```python
//! model = torch.nn.DataParallel(model)
//! ```
//!
//! ## Use instead
//! ```python
//! model = DistributedDataParallel(model, device_ids=[local_rank])
//! ```
//!
//! ## Evidence
//! Mean utilization of each GPU in the steady part, and power draw if known: a GPU that only busy-waits draws little power.
//!
//! ## Fix
//! With ranks: check what the slow rank's process waits for (its DataLoader, its Python code). In a single process: use
//! DistributedDataParallel, or split the model more evenly.
//!
//! ## When it is wrong
//! Pipeline stages differ on purpose. This rule has not been tested on a machine with several GPUs yet.
//!
//! ## References
//! Other tools report stragglers from 10 or 20%. NCCL kernels busy-wait for their peers.
//! See also `slow-rank` and `unequal-shards`.
//! <https://github.com/flatout/flatout/blob/main/docs/guide/ranks.md>
//! <https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/index.html>
//!
//! ---
//! ## 检测什么
//! 同一程序的各块 GPU 利用率不均。
//! ## 为什么慢
//! 每一步其他 GPU 都要等其中一块。是哪一块取决于程序的用法：在 NCCL 集合通信中等待的 rank 会空转，它的 GPU 显示 100%，所以每块 GPU 一个进程时，慢的是利用率**低**的那个 rank。
//! 在单进程中（`DataParallel`、手工切分的模型），等待的 GPU 是空闲的，所以最忙的那块拖慢其他 GPU。
//! ## 证据
//! 稳定阶段中每块 GPU 的平均利用率；已知时还有功率：只空转的 GPU 功率很低。
//! ## 怎么改
//! 多个 rank 时：查看慢 rank 的进程在等什么（DataLoader、主机代码）。单进程时：改用 DistributedDataParallel，或切分得更均匀。
//! ## 何时不成立
//! 各段本来就不同的流水线。我们尚未在多 GPU 机器上实测。
//! ## 参考
//! 落后 10% 和 20%（同类工具的两级）。NCCL 的 kernel 以空转方式等待其他 rank。
//! 另见 `slow-rank`、`unequal-shards`。
//! <https://github.com/flatout/flatout/blob/main/docs/guide/ranks.md>
//! <https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/index.html>

use crate::analysis::{Analysis, Device};
use crate::candidate::Candidate;
use flatout_core::{Confidence, Evidence, Severity, message, units};

pub const ID: &str = "gpus-unbalanced";
pub const WORST: Severity = Severity::Warning;

/// The spread between the busiest and the least busy that works.
const SPREAD: f64 = 0.2;
/// A GPU below this does not take part; that is another rule's.
const TAKES_PART: f64 = 0.02;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    analysis.window.as_ref()?;
    // What happens on cards that the training does not use is no matter of this run.
    if analysis.device() == Device::Cpu {
        return None;
    }
    let utils: Vec<(u32, f64)> = analysis
        .gpus
        .iter()
        .filter_map(|gpu| Some((gpu.index, gpu.util.filter(|util| *util >= TAKES_PART)?)))
        .collect();
    let (most, high) = utils.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let (least, low) = utils.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1))?;
    if utils.len() < 2 || high - low < SPREAD {
        return None;
    }
    let (up, down) = (units::percent(high), units::percent(low));
    let ranks = one_process_per_gpu(analysis);
    let title = if ranks {
        message!(
            en: "GPU {least} is at {down}, others up to {up}: its rank is the slow one",
            zh: "GPU {least} 为 {down}，其他最高 {up}：它的 rank 偏慢"
        )
    } else {
        message!(
            en: "The GPUs are unevenly loaded: GPU {most} at {up}, GPU {least} at {down}",
            zh: "各 GPU 负载不均：GPU {most} {up}，GPU {least} {down}"
        )
    };
    let mut candidate = Candidate::new(ID, Severity::Warning, title)
        .confidence(Confidence::Medium)
        .evidence(
            analysis.in_window(
                Evidence::new(
                    message!(en: "utilization spread", zh: "利用率差距"),
                    (high - low) * 100.0,
                    "%",
                )
                .against(SPREAD * 100.0),
            ),
        );
    for (index, what) in [
        (
            least,
            message!(en: "power draw of GPU {least}", zh: "GPU {least} 的功率"),
        ),
        (
            most,
            message!(en: "power draw of GPU {most}", zh: "GPU {most} 的功率"),
        ),
    ] {
        let power = analysis.gpus.iter().find(|gpu| gpu.index == index);
        if let Some(watts) = power.and_then(|gpu| gpu.power_w) {
            candidate = candidate.evidence(analysis.in_window(Evidence::new(what, watts, "W")));
        }
    }
    if ranks {
        return Some(
            candidate
                .detail(message!(
                    en: "A rank that waits inside an NCCL collective busy-waits, so its GPU reads busy. The \
                    GPU that is not busy belongs to the rank that arrives last.",
                    zh: "在 NCCL 集合通信中等待的 rank 会空转，它的 GPU 看上去是忙的。不忙的那块 GPU 属于最后到达的 rank。"
                ))
                .code(
                    None,
                    message!(
                        en: "Check what the process on GPU {least} does between its kernels: its DataLoader \
                        and its Python code",
                        zh: "查看 GPU {least} 上的进程在两个 kernel 之间做什么：DataLoader 和 Python 代码"
                    ),
                ),
        );
    }
    Some(candidate.code(
        None,
        message!(
            en: "Use DistributedDataParallel with equal batches, or split the model more evenly",
            zh: "使用 DistributedDataParallel 并让 batch 相等，或把模型切分得更均匀"
        ),
    ))
}

/// Several ranks that meet in NCCL's collectives; not one process with several GPUs.
fn one_process_per_gpu(analysis: &Analysis) -> bool {
    let facts = &analysis.facts;
    let world = facts.number("parallel.world_size").unwrap_or(1.0);
    let backend = facts.text("parallel.backend").unwrap_or_default();
    world > 1.0
        && (backend.is_empty() || backend.contains("nccl"))
        && facts.text("parallel.class").as_deref() != Some("DataParallel")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check_empty};
    use flatout_record::RunData;

    fn pair(second: f64) -> RunData {
        let mut data = Build::steady(20).gpu(|gpu| gpu.util = Some(0.9)).done();
        for sample in &mut data.samples {
            let mut gpu = sample.gpus[&0].clone();
            gpu.util = Some(second);
            sample.gpus.insert(1, gpu);
        }
        data
    }

    #[test]
    fn fires() {
        assert!(check(&Analysis::new(&pair(0.4))).is_some());
    }

    #[test]
    fn blames_the_idle_gpu_of_several_ranks_and_the_busy_one_of_one_process() {
        let mut data = pair(0.4);
        let one = check(&Analysis::new(&data)).unwrap();
        assert!(
            one.finding
                .title
                .en
                .starts_with("The GPUs are unevenly loaded: GPU 0")
        );
        for (key, value) in [
            ("parallel.world_size", serde_json::json!(2)),
            ("parallel.backend", serde_json::json!("nccl")),
        ] {
            let fact = flatout_record::Fact {
                t: 0.1,
                key: key.into(),
                value,
                scope: None,
                place: None,
            };
            data.facts.push(fact);
        }
        let ranks = check(&Analysis::new(&data)).unwrap();
        assert!(
            ranks.finding.title.en.starts_with("GPU 1 is at 40%"),
            "{}",
            ranks.finding.title.en
        );
    }

    #[test]
    fn quiet() {
        assert!(check(&Analysis::new(&pair(0.88))).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
