//! Which curves there are. A chart without a single value is left out.

use super::series::Series;
use flatout_core::{Message, message};
use flatout_diagnose::verdict::utilisation_of_tick;
use flatout_telemetry::record::RunData;
use flatout_telemetry::{GpuSample, Phase, Sample, StepTick};

/// How a chart's values are written and where its axis begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// 0 to 100.
    Percent,
    Bytes,
    Watts,
    Celsius,
    Megahertz,
    Milliseconds,
    /// A rate or count, from 0.
    Count,
    /// From the least to the greatest value.
    Free,
}

impl Scale {
    pub fn name(self) -> &'static str {
        match self {
            Self::Percent => "%",
            Self::Bytes => "B",
            Self::Watts => "W",
            Self::Celsius => "°C",
            Self::Megahertz => "MHz",
            Self::Milliseconds => "ms",
            Self::Count => "",
            Self::Free => "~",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Curve {
    pub name: Message,
    /// A limit, drawn dashed.
    pub limit: bool,
    pub series: Series,
}

#[derive(Clone, Debug)]
pub struct Chart {
    pub key: &'static str,
    pub title: Message,
    pub scale: Scale,
    pub curves: Vec<Curve>,
}

/// So many buckets a curve keep the file below a megabyte with all charts full.
const MOST_BUCKETS: usize = 900;

type OfSample = fn(&Sample, &RunData) -> Option<f64>;
type OfSteps = fn(&StepTick) -> Option<f64>;

enum Of {
    Sample(OfSample),
    Steps(OfSteps),
}

struct Plan {
    key: &'static str,
    title: Message,
    scale: Scale,
    curves: Vec<(Message, bool, Of)>,
}

pub fn of(data: &RunData, length_s: f64) -> Vec<Chart> {
    let tick_s = data
        .info
        .interval_s
        .filter(|seconds| *seconds > 0.0)
        .unwrap_or(1.0);
    plans(data)
        .into_iter()
        .filter_map(|plan| {
            let curves: Vec<Curve> = plan
                .curves
                .into_iter()
                .map(|(name, limit, of)| Curve {
                    name,
                    limit,
                    series: fill(data, length_s, tick_s, &of),
                })
                .filter(|curve| !curve.series.is_empty())
                .collect();
            let measured = curves.iter().any(|curve| !curve.limit);
            measured.then_some(Chart {
                key: plan.key,
                title: plan.title,
                scale: plan.scale,
                curves,
            })
        })
        .collect()
}

fn fill(data: &RunData, length_s: f64, tick_s: f64, of: &Of) -> Series {
    let mut series = Series::new(length_s, tick_s, MOST_BUCKETS);
    match of {
        Of::Sample(value) => {
            for sample in &data.samples {
                if let Some(value) = value(sample, data) {
                    series.add(sample.t, value, 1.0);
                }
            }
        }
        Of::Steps(value) => {
            for tick in &data.steps {
                if let Some(value) = value(tick) {
                    series.add(tick.t, value, tick.dt.max(1e-3));
                }
            }
        }
    }
    series
}

/// The mean over the GPUs that know the value now.
fn gpus(sample: &Sample, value: impl Fn(u32, &GpuSample) -> Option<f64>) -> Option<f64> {
    let (sum, count) = sample
        .gpus
        .iter()
        .filter(|(_, gpu)| gpu.age_s.is_none())
        .filter_map(|(index, gpu)| value(*index, gpu))
        .fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    (count > 0.0).then(|| sum / count)
}

fn per_step(tick: &StepTick, ms: f64) -> Option<f64> {
    (tick.steps > 0).then(|| ms / tick.steps as f64)
}

fn plans(data: &RunData) -> Vec<Plan> {
    let several = data
        .samples
        .iter()
        .map(|sample| sample.gpus.len())
        .max()
        .unwrap_or(0)
        > 1;
    // With several GPUs the curves are their mean; each GPU has a row of its own below.
    let of_gpus = |title: Message| {
        if several {
            let (en, zh) = (title.en, title.zh);
            Message {
                en: format!("{en} (mean of the GPUs)"),
                zh: format!("{zh}（各 GPU 平均）"),
            }
        } else {
            title
        }
    };
    let sample = |name: Message, value: OfSample| (name, false, Of::Sample(value));
    let limit = |name: Message, value: OfSample| (name, true, Of::Sample(value));
    let steps = |name: Message, value: OfSteps| (name, false, Of::Steps(value));
    vec![
        Plan {
            key: "busy",
            title: of_gpus(message!(en: "GPU utilisation", zh: "GPU 利用率")),
            scale: Scale::Percent,
            curves: vec![
                sample(message!(en: "busy", zh: "忙碌"), |s, _| {
                    gpus(s, |_, gpu| utilisation_of_tick(gpu)).map(hundred)
                }),
                sample(message!(en: "SM activity", zh: "SM 活跃"), |s, _| {
                    gpus(s, |_, gpu| gpu.sm_activity).map(hundred)
                }),
                sample(message!(en: "tensor cores", zh: "Tensor Core 活跃"), |s, _| {
                    gpus(s, |_, gpu| gpu.tensor_activity).map(hundred)
                }),
            ],
        },
        Plan {
            key: "rate",
            title: message!(en: "Samples a second", zh: "样本/秒"),
            scale: Scale::Count,
            curves: vec![steps(message!(en: "samples/s", zh: "样本/秒"), |tick| {
                (tick.dt > 0.0)
                    .then(|| Some(tick.samples? as f64 / tick.dt))
                    .flatten()
            })],
        },
        Plan {
            key: "wait",
            title: message!(en: "Time of a batch", zh: "每个 batch 的时间"),
            scale: Scale::Milliseconds,
            curves: vec![
                steps(message!(en: "whole", zh: "全部"), |tick| {
                    per_step(tick, tick.dt * 1e3)
                }),
                steps(message!(en: "waiting for data", zh: "等待数据"), |tick| {
                    per_step(tick, tick.phase_ms(Phase::Data))
                }),
            ],
        },
        Plan {
            key: "loss",
            title: message!(en: "Loss", zh: "损失"),
            scale: Scale::Free,
            curves: vec![steps(message!(en: "loss", zh: "损失"), |tick| tick.loss)],
        },
        Plan {
            key: "memory",
            title: of_gpus(message!(en: "GPU memory", zh: "显存")),
            scale: Scale::Bytes,
            curves: vec![
                sample(message!(en: "used", zh: "已用"), |s, _| {
                    gpus(s, |_, gpu| gpu.mem_used_bytes.map(|bytes| bytes as f64))
                }),
                limit(message!(en: "total", zh: "总量"), |s, data| {
                    gpus(s, |index, _| {
                        let info = data.info.gpus.get(&index)?;
                        info.mem_total_bytes.map(|bytes| bytes as f64)
                    })
                }),
            ],
        },
        Plan {
            key: "power",
            title: of_gpus(message!(en: "Power", zh: "功耗")),
            scale: Scale::Watts,
            curves: vec![
                sample(message!(en: "power", zh: "功耗"), |s, _| {
                    gpus(s, |_, gpu| gpu.power_w)
                }),
                limit(message!(en: "limit", zh: "上限"), |s, _| {
                    gpus(s, |_, gpu| gpu.power_limit_w)
                }),
            ],
        },
        Plan {
            key: "temperature",
            title: of_gpus(message!(en: "Temperature", zh: "温度")),
            scale: Scale::Celsius,
            curves: vec![
                sample(message!(en: "temperature", zh: "温度"), |s, _| {
                    gpus(s, |_, gpu| gpu.temp_c)
                }),
                limit(message!(en: "slows down at", zh: "降频温度"), |s, data| {
                    gpus(s, |index, _| data.info.gpus.get(&index)?.temp_slowdown_c)
                }),
            ],
        },
        Plan {
            key: "clocks",
            title: of_gpus(message!(en: "Clocks", zh: "时钟频率")),
            scale: Scale::Megahertz,
            curves: vec![
                sample(message!(en: "SM", zh: "SM 频率"), |s, _| {
                    gpus(s, |_, gpu| gpu.sm_clock_mhz)
                }),
                sample(message!(en: "memory", zh: "显存频率"), |s, _| {
                    gpus(s, |_, gpu| gpu.mem_clock_mhz)
                }),
            ],
        },
        Plan {
            key: "cpu",
            title: message!(en: "CPUs of the job", zh: "作业可用的 CPU"),
            scale: Scale::Percent,
            curves: vec![
                sample(message!(en: "busy", zh: "忙碌"), |s, _| {
                    s.host.cpu_util.map(hundred)
                }),
                sample(message!(en: "waiting for disks", zh: "等待磁盘"), |s, _| {
                    s.host.iowait.map(hundred)
                }),
            ],
        },
    ]
}

fn hundred(share: f64) -> f64 {
    share * 100.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn charts_without_values_are_left_out() {
        assert!(of(&RunData::default(), 0.0).is_empty());
        let charts = of(&testing::training(40, 0.25), 43.0);
        let keys: Vec<&str> = charts.iter().map(|chart| chart.key).collect();
        assert_eq!(keys, ["busy", "rate", "wait", "loss", "power", "cpu"]);
        let power = charts.iter().find(|chart| chart.key == "power").unwrap();
        assert!(power.curves[1].limit);
    }
}
