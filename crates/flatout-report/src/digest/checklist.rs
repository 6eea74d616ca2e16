//! What every fast training has, item by item: done, to do, or not known. An item is "to do" only when a rule found it to cost
//! something here, and "done" only when the record holds what it takes to know.

use flatout_core::{Finding, Kind, Message, message};
use flatout_diagnose::Analysis;
use flatout_diagnose::analysis::Device;
use flatout_record::EventKind;
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    Done,
    ToDo,
    Unknown,
}

#[derive(Clone, Debug, Serialize)]
pub struct Item {
    pub name: Message,
    pub state: State,
    /// The rule that found it wanting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

struct Check {
    name: Message,
    rules: &'static [&'static str],
    /// Whether it applies at all; an item that does not is left out.
    applies: fn(&Analysis) -> bool,
    /// Whether silence of the rules means that all is well.
    known: fn(&Analysis) -> bool,
}

pub fn of(analysis: &Analysis, findings: &[Finding]) -> Vec<Item> {
    let fired = |rule: &&&str| {
        findings
            .iter()
            .any(|finding| finding.kind != Kind::Verdict && finding.rule == **rule)
    };
    checks()
        .into_iter()
        .filter(|check| (check.applies)(analysis))
        .map(|check| {
            let rule = check.rules.iter().find(fired).map(|rule| (*rule).to_owned());
            let state = match &rule {
                Some(_) => State::ToDo,
                None if (check.known)(analysis) => State::Done,
                None => State::Unknown,
            };
            Item {
                name: check.name,
                state,
                rule,
            }
        })
        .collect()
}

fn always(_: &Analysis) -> bool {
    true
}

fn steady(analysis: &Analysis) -> bool {
    analysis.window.is_some()
}

fn on_gpu(analysis: &Analysis) -> bool {
    analysis.device() == Device::Cuda || (analysis.device() == Device::Unknown && !analysis.gpus.is_empty())
}

fn gpu_seen(analysis: &Analysis) -> bool {
    analysis.gpus.iter().any(|gpu| gpu.util.is_some())
}

/// The probe tells of blocking reads only where it could see any device work.
fn knows_syncs(analysis: &Analysis) -> bool {
    let told = |kind: &EventKind| matches!(kind, EventKind::Sync { .. });
    steady(analysis)
        && (analysis.data.info.kind == "train" || analysis.data.events.iter().any(|event| told(&event.kind)))
}

fn has_loader(analysis: &Analysis) -> bool {
    analysis.train_loader().is_some()
}

fn checks() -> Vec<Check> {
    vec![
        Check {
            name: message!(en: "Batches are ready when a step needs them", zh: "每一步需要时 batch 已经就绪"),
            rules: &[
                "loader-without-workers",
                "too-few-workers",
                "loader-starved",
                "input-cpus-exhausted",
                "slow-collate",
                "storage-bound-input",
                "workers-collecting-garbage",
                "bursty-prefetch",
            ],
            applies: always,
            known: steady,
        },
        Check {
            name: message!(en: "No more workers than usable CPUs", zh: "worker 数不超过作业可用的 CPU 数"),
            rules: &["workers-beyond-usable-cpus"],
            applies: has_loader,
            known: |analysis| {
                analysis.usable_cpus().is_some()
                    && analysis
                        .train_loader()
                        .is_some_and(|loader| loader.num_workers.is_some())
            },
        },
        Check {
            name: message!(en: "Workers stay alive between epochs", zh: "worker 在 epoch 之间保持存活"),
            rules: &["workers-respawned-each-epoch", "loader-rebuilt"],
            applies: |analysis| {
                analysis
                    .train_loader()
                    .and_then(|loader| loader.num_workers)
                    .is_some_and(|workers| workers > 0)
            },
            known: |analysis| {
                analysis
                    .train_loader()
                    .is_some_and(|loader| loader.persistent_workers == Some(true) || loader.starts <= 1)
            },
        },
        Check {
            name: message!(en: "Copies to the GPU use pinned memory", zh: "拷贝到 GPU 使用锁页内存"),
            rules: &["pageable-copies"],
            applies: |analysis| on_gpu(analysis) && has_loader(analysis),
            known: |analysis| {
                analysis
                    .train_loader()
                    .is_some_and(|loader| loader.pin_memory == Some(true))
            },
        },
        Check {
            name: message!(en: "Steps do not wait for the GPU", zh: "单步之内不等待 GPU"),
            rules: &["sync-every-step"],
            applies: on_gpu,
            known: knows_syncs,
        },
        Check {
            name: message!(en: "The batch is large enough to keep the GPU busy", zh: "batch 足够大，能填满设备"),
            rules: &["batch-too-small", "host-bound-dispatch"],
            applies: always,
            known: steady,
        },
        Check {
            name: message!(en: "Mixed precision is on", zh: "已启用混合精度"),
            rules: &[
                "mixed-precision-off",
                "mixed-precision-inactive",
                "tf32-off",
                "tensor-cores-idle",
            ],
            applies: on_gpu,
            known: |analysis| {
                analysis
                    .facts
                    .text("amp.dtype")
                    .is_some_and(|dtype| dtype != "off")
            },
        },
        Check {
            name: message!(en: "Evaluation is infrequent", zh: "评估不过于频繁"),
            rules: &["evaluation-too-often"],
            applies: always,
            known: steady,
        },
        Check {
            name: message!(en: "Checkpoints are infrequent", zh: "checkpoint 不过于频繁"),
            rules: &["checkpoint-too-often"],
            applies: always,
            known: steady,
        },
        Check {
            name: message!(en: "No other code in the loop slows the steps down", zh: "循环中没有其他代码拖慢训练"),
            rules: &[
                "host-work-in-loop",
                "garbage-collection-pauses",
                "memory-given-back",
                "periodic-dips",
                "cpu-threads-idle",
            ],
            applies: always,
            known: steady,
        },
        Check {
            name: message!(en: "The GPU is not throttled", zh: "GPU 没有过热或降频"),
            rules: &["thermal-throttling", "power-throttling"],
            applies: gpu_seen,
            known: |analysis| analysis.gpus.iter().all(|gpu| gpu.temp_max_c.is_some()),
        },
        Check {
            name: message!(en: "No other process uses the GPU", zh: "GPU 上没有其他任务"),
            rules: &["gpu-shared"],
            applies: gpu_seen,
            known: |analysis| analysis.gpus.iter().all(|gpu| gpu.foreign.is_some()),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use flatout_record::RunData;

    #[test]
    fn unknown_is_not_done() {
        let data = RunData::default();
        let items = of(&Analysis::new(&data), &[]);
        assert!(!items.is_empty());
        assert!(items.iter().all(|item| item.state == State::Unknown));
    }

    #[test]
    fn what_a_rule_found_is_to_do() {
        let data = testing::training(40, 0.6);
        let findings = flatout_diagnose::diagnose(&data).findings;
        let items = of(&Analysis::new(&data), &findings);
        assert_eq!(items[0].state, State::ToDo, "{findings:?}");
    }

    #[test]
    fn every_rule_named_here_exists() {
        for rule in checks().iter().flat_map(|check| check.rules) {
            assert!(
                flatout_diagnose::RULES.iter().any(|known| known.info.id == *rule),
                "{rule}"
            );
        }
    }
}
