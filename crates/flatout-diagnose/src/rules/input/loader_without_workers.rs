//! # loader-without-workers
//!
//! ## What it detects
//! The training DataLoader has `num_workers=0`, and steps wait for its batches.
//!
//! ## Why it is slow
//! The training process reads, transforms and collates every batch itself, and the device has nothing to do in the meantime. With
//! workers, the next batches are prepared while the current one is computed.
//!
//! ## Example
//! ```python
//! loader = DataLoader(dataset, batch_size=256, shuffle=True)
//! ```
//!
//! ## Use instead
//! ```python
//! loader = DataLoader(dataset, batch_size=256, shuffle=True, num_workers=4, persistent_workers=True)
//! ```
//!
//! ## Evidence
//! The share of the steady part spent waiting for batches, the actual value of `num_workers`, and the CPUs this process can use.
//!
//! ## Fix
//! Use as many workers as the steps need, at most as many as the usable CPUs support. With a single usable CPU use none, and make
//! samples cheaper instead. Set `persistent_workers=True` so that workers are not restarted each epoch.
//!
//! ## When it is wrong
//! The dataset is already on the GPU, or `__getitem__` must run in the main process (an open CUDA context, a lock, a database
//! handle). Very cheap batches can cost more to transfer between processes than to prepare. An `IterableDataset` that does not call
//! `get_worker_info()` gives all of its samples in every worker: flatout suggests one worker at most.
//!
//! ## References
//! TraceML warns from 10% of the time, the PyTorch TensorBoard plugin from 5%. PyTorch issue 23048 discusses how many workers to
//! choose.
//! <https://docs.pytorch.org/docs/stable/data.html>
//! <https://github.com/pytorch/pytorch/issues/23048>
//!
//! ---
//! ## 检测什么
//! 训练用的 loader 设置了 `num_workers=0`，训练在等它的 batch。
//! ## 为什么慢
//! 每个 batch 的读取、变换、collate 都由训练进程自己完成，其间设备无事可做。有 worker 时，计算当前 batch 的同时就能准备后面的 batch。
//! ## 证据
//! 稳定阶段中等待 batch 的时间；真正生效的 `num_workers`；本进程可用的 CPU。
//! ## 怎么改
//! worker 数按训练的需要设置，至多为可用 CPU 所能承担的数量；只有一个可用 CPU 时不用 worker，而应降低每个样本的成本。设置 `persistent_workers=True`，避免每个 epoch 重新启动。
//! ## 何时不成立
//! 数据集已经在设备上，或 `__getitem__` 必须在主进程中运行（已打开的 CUDA 上下文、锁、数据库连接）。非常便宜的 batch，跨进程传递可能比制作更贵。不调用 `get_worker_info()` 的 `IterableDataset` 在每个 worker 里都给出全部样本：flatout 最多建议一个 worker。
//! ## 参考
//! 占比阈值：TraceML 从 10% 起警告，PyTorch TensorBoard 插件从 5% 起。关于 worker 数的选择见 PyTorch issue 23048。
//! <https://docs.pytorch.org/docs/stable/data.html>
//! <https://github.com/pytorch/pytorch/issues/23048>

use crate::advice;
use crate::analysis::loaders::Loader;
use crate::analysis::{Analysis, Device};
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE, severity_of};
use flatout_core::{Evidence, Message, Severity, message, units};
use flatout_record::Phase;

pub const ID: &str = "loader-without-workers";
pub const WORST: Severity = Severity::Critical;

/// Below this wait a step, handing a batch from process to process costs as much (a queue and shared memory, measured
/// at 0.2 to 0.4 ms a batch with PyTorch 2).
const WAIT_MS: f64 = 0.5;
/// The part of the hidden time that surely goes: passing batches between processes eats some of it.
const CERTAIN: f64 = 0.5;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let loader = analysis.train_loader()?;
    let share = window.share(Phase::Data);
    if loader.num_workers != Some(0) || share < WARNING_SHARE || window.ms_per_step(Phase::Data) < WAIT_MS {
        return None;
    }
    if advice::on_the_device(analysis) {
        // Workers would fail; the line that makes the batch is the finding.
        return None;
    }
    let shown = units::percent(share);
    let data_s = window.seconds(Phase::Data);
    let suggested = advice::workers(analysis, loader);
    let bounds = advice::overlapped(analysis)?;
    // Without room for a worker only a cheaper item helps, and how much cheaper it can get nobody knows.
    let (certain_s, possible_s) = match suggested {
        // So many workers make a batch in no less than their part of its time, and evaluating and saving they soon stand idle.
        Some(workers) => {
            let aside_s = window.seconds(Phase::Eval) + window.seconds(Phase::Checkpoint);
            let made_s = data_s / workers as f64 + aside_s;
            let goes_s = |rest_s: f64| (window.wall_s() - rest_s.max(made_s)).max(0.0);
            // Threads that wait for each other stand still where a worker takes the CPU of one: it may even be slower.
            let certain = if crowded(analysis, workers).is_some() {
                0.0
            } else {
                CERTAIN
            };
            (goes_s(bounds.worst_s) * certain, goes_s(bounds.best_s))
        }
        None => (0.0, data_s),
    };
    let candidate = Candidate::new(
        ID,
        severity_of(share),
        message!(
            en: "DataLoader has no workers: {shown} of the time goes to waiting for batches",
            zh: "DataLoader 没有 worker：{shown} 的时间在等待 batch"
        ),
    )
    .detail(message!(
        en: "With num_workers=0 the training process reads, transforms and collates each batch between two \
        steps; nothing overlaps.",
        zh: "num_workers=0 时，batch 的读取、变换和拼接都在两步之间进行，没有任何重叠。"
    ))
    .evidence(analysis.phase_evidence(Phase::Data, WARNING_SHARE))
    .evidence(Evidence::new(
        message!(en: "DataLoader workers", zh: "DataLoader worker 数"),
        0.0,
        "",
    ))
    .place(loader.place.as_ref())
    .claims(Stretch::Data, Reach::Specific, certain_s, possible_s)
    .explains(data_s);
    let usable = analysis.usable_cpus();
    let candidate = match usable {
        Some(usable) => candidate.evidence(Evidence::new(
            message!(en: "usable CPUs", zh: "可用 CPU 数"),
            usable as f64,
            "",
        )),
        None => candidate,
    };
    let crowded = suggested.and_then(|workers| crowded(analysis, workers));
    Some(match suggested {
        Some(workers) => {
            let candidate = candidate
                .setting(
                    "loader.num_workers",
                    Some("0".into()),
                    workers,
                    prepared(workers, loader),
                )
                .code(
                    loader.place.as_ref(),
                    message!(
                        en: "DataLoader(…, num_workers={workers}, persistent_workers=True)",
                        zh: "DataLoader(…, num_workers={workers}, persistent_workers=True)"
                    ),
                );
            let candidate = advice::spawned(fewer_threads(candidate, crowded), loader);
            advice::refuse_more_workers(candidate, loader)
        }
        None => refuse(candidate, usable),
    })
}

fn prepared(workers: u64, loader: &Loader) -> Message {
    if loader.repeats_per_worker() {
        return message!(
            en: "num_workers={workers}, persistent_workers=True; not more, because every worker of this \
            IterableDataset reads all of it",
            zh: "num_workers={workers}，persistent_workers=True；不要更多，因为这个 IterableDataset 的每个 worker 都会读取全部数据"
        );
    }
    if loader.spawned {
        return message!(
            en: "num_workers={workers}, persistent_workers=True; spawned workers need if __name__ == \
            \"__main__\": and a dataset that can be pickled",
            zh: "num_workers={workers}，persistent_workers=True；以 spawn 方式启动的 worker 需要 if __name__ == \"__main__\": 和可以 pickle 的数据集"
        );
    }
    message!(
        en: "num_workers={workers}, persistent_workers=True: batches are prepared while the step computes",
        zh: "num_workers={workers}，persistent_workers=True：计算当前一步的同时准备后面的 batch"
    )
}

/// Threads of the training, and how many of them leave the workers a CPU each: on the CPU, where they all want one.
fn crowded(analysis: &Analysis, workers: u64) -> Option<(u64, u64)> {
    let usable = analysis.usable_cpus()? as u64;
    let threads = analysis
        .facts
        .number("threads.torch")
        .filter(|_| analysis.device() == Device::Cpu)? as u64;
    let left = usable.saturating_sub(workers).max(1);
    (threads > left).then_some((threads, left))
}

fn fewer_threads(candidate: Candidate, crowded: Option<(u64, u64)>) -> Candidate {
    let Some((threads, left)) = crowded else {
        return candidate;
    };
    candidate.setting(
        "threads.torch",
        Some(threads.to_string()),
        left,
        message!(
            en: "torch.set_num_threads({left}): leaves a CPU for the workers, so that PyTorch's threads do \
            not stall each other",
            zh: "torch.set_num_threads({left})：为 worker 留出 CPU，避免 PyTorch 的线程互相拖住"
        ),
    )
}

fn refuse(candidate: Candidate, usable: Option<usize>) -> Candidate {
    let say = match usable {
        Some(usable) => message!(
            en: "num_workers 0 → 1 will not help: with only {usable} usable CPU, a worker would slow down \
            training",
            zh: "num_workers 0 → 1：不行；本进程只能使用 {usable} 个 CPU，worker 会与训练抢占"
        ),
        None => message!(
            en: "num_workers: no suggestion, because the number of usable CPUs is unknown",
            zh: "num_workers：不作建议；可用 CPU 数未知"
        ),
    };
    candidate.refused("loader.num_workers", say).code(
        None,
        message!(
            en: "Make samples cheaper: prepare the data once before training and keep it as one tensor",
            zh: "降低单个样本的成本：训练前一次性处理好数据，保存为一个 tensor"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};
    use flatout_core::Fix;

    #[test]
    fn on_a_cpu_that_is_full_nothing_is_sure_and_threads_make_room() {
        let on = |threads: u64| {
            let build = Build::steady(20)
                .phase(Phase::Data, 0.6)
                .phase(Phase::Compute, 0.25)
                .phase(Phase::Eval, 0.15);
            let build = build.cpus(2).fact("device", "cpu").fact("threads.torch", threads);
            crate::diagnose(&build.loader(0, json!({"num_workers": 0})).done())
                .findings
                .remove(0)
        };
        let (full, roomy) = (on(2), on(1));
        let low = |finding: &flatout_core::Finding| finding.gain.unwrap().low;
        assert!(low(&full) == 1.0 && low(&roomy) > 1.0, "{full:?}");
        // One worker makes batches 0.6 of the time, and evaluation takes 0.15 of it whatever the workers do.
        assert!(roomy.gain.unwrap().high <= 1.0 / 0.75 + 1e-9, "{roomy:?}");
        let threads = |finding: &flatout_core::Finding| {
            finding.fixes.iter().any(|fix| matches!(fix, Fix::Setting { setting, to, .. } if setting == "threads.torch" && to == "1"))
        };
        assert!(threads(&full) && !threads(&roomy));
    }
    use serde_json::json;

    fn starved(workers: u64) -> Build {
        Build::steady(20)
            .phase(Phase::Data, 0.6)
            .phase(Phase::Compute, 0.4)
            .cpus(4)
            .loader(0, json!({"num_workers": workers, "batch_size": 32}))
    }

    #[test]
    fn fires() {
        let finding = run(check, starved(0)).unwrap();
        assert_eq!(finding.severity, Severity::Critical);
        assert!(
            matches!(&finding.fixes[0], Fix::Setting { from: Some(from), to, .. } if from == "0" && to == "3")
        );
        assert_eq!(causes(starved(0)), [ID]);
    }

    #[test]
    fn quiet() {
        assert!(run(check, starved(2)).is_none());
        assert!(
            run(
                check,
                Build::steady(20).cpus(4).loader(0, json!({"num_workers": 0}))
            )
            .is_none()
        );
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }

    #[test]
    fn every_worker_of_an_iterable_dataset_reads_everything() {
        let streamed = |sharded: bool| {
            let facts = json!({"num_workers": 0, "iterable": true, "sharded": sharded});
            run(check, starved(0).cpus(8).loader(0, facts)).unwrap()
        };
        let to = |finding: &flatout_core::Finding| match &finding.fixes[0] {
            Fix::Setting { to, .. } => to.clone(),
            other => panic!("{other:?}"),
        };
        let refused = |finding: &flatout_core::Finding| {
            finding.fixes.iter().any(|fix| matches!(fix, Fix::Refused { .. }))
        };
        let (unsharded, sharded) = (streamed(false), streamed(true));
        assert!(to(&unsharded) == "1" && refused(&unsharded), "{unsharded:?}");
        assert!(to(&sharded) != "1" && !refused(&sharded), "{sharded:?}");
    }

    #[test]
    fn spawned_workers_come_with_their_conditions() {
        let with = |can_spawn: bool| {
            let facts = json!({"num_workers": 0, "multiprocessing_context": "spawn", "can_spawn": can_spawn});
            let build = starved(0).cpus(8).command(&["python", "train.py"]);
            let found = crate::diagnose(&build.loader(0, facts).done());
            found
                .findings
                .into_iter()
                .find(|finding| finding.rule == ID)
                .unwrap()
        };
        let tried = |finding: &flatout_core::Finding| {
            finding.fixes.iter().any(|fix| matches!(fix, Fix::Command { .. }))
        };
        let guard = |finding: &flatout_core::Finding| {
            let named = |fix: &Fix| matches!(fix, Fix::Code { say, .. } if say.en.contains("__main__"));
            finding.fixes.iter().any(named)
        };
        let (ready, not_ready) = (with(true), with(false));
        assert!(tried(&ready) && !tried(&not_ready));
        assert!(guard(&ready) && guard(&not_ready));
    }

    #[test]
    fn one_cpu_refuses_workers() {
        let finding = run(check, starved(0).cpus(1)).unwrap();
        assert!(finding.fixes.iter().any(|fix| matches!(fix, Fix::Refused { .. })));
        assert!(!finding.fixes.iter().any(|fix| matches!(fix, Fix::Setting { .. })));
    }
}
