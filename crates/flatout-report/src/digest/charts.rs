//! Which curves there are. A chart without a single value is left out.

use super::series::Series;
use flatout_core::{Message, message};
use flatout_diagnose::verdict::utilisation_of_tick;
use flatout_record::{GpuSample, Phase, RunInfo, Sample, StepTick};

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
    /// Which of the colors; without it the curve's position in its chart.
    pub color: Option<usize>,
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

type OfSample = fn(&Sample, &RunInfo) -> Option<f64>;
/// The value of a tick, and what it weighs: seconds, or steps.
type OfSteps = fn(&StepTick) -> Option<(f64, f64)>;

enum Of {
    Sample(OfSample),
    Steps(OfSteps),
}

struct Plan {
    key: &'static str,
    title: Message,
    scale: Scale,
    of_gpus: bool,
    curves: Vec<(Curve, Of)>,
}

/// Takes samples and steps one by one, so that a record need not be in memory.
pub struct Builder {
    info: RunInfo,
    plans: Vec<Plan>,
    most_gpus: usize,
}

impl Builder {
    pub fn new(info: &RunInfo) -> Self {
        let tick_s = info.interval_s.filter(|seconds| *seconds > 0.0).unwrap_or(1.0);
        Self {
            info: info.clone(),
            plans: plans(tick_s),
            most_gpus: 0,
        }
    }

    pub fn sample(&mut self, sample: &Sample) {
        self.most_gpus = self.most_gpus.max(sample.gpus.len());
        for (curve, of) in self.plans.iter_mut().flat_map(|plan| &mut plan.curves) {
            if let Of::Sample(value) = of
                && let Some(value) = value(sample, &self.info)
            {
                curve.series.add(sample.t, value, 1.0);
            }
        }
    }

    pub fn step(&mut self, tick: &StepTick) {
        for (curve, of) in self.plans.iter_mut().flat_map(|plan| &mut plan.curves) {
            if let Of::Steps(value) = of
                && let Some((value, weight)) = value(tick)
            {
                curve.series.add(tick.t, value, weight);
            }
        }
    }

    /// The curves of both, where one has seen the samples and the other the steps.
    #[must_use]
    pub fn with(mut self, other: Self) -> Self {
        let theirs = other.plans.into_iter().flat_map(|plan| plan.curves);
        let ours = self.plans.iter_mut().flat_map(|plan| &mut plan.curves);
        for ((ours, _), (theirs, _)) in ours.zip(theirs) {
            if ours.series.is_empty() {
                ours.series = theirs.series;
            }
        }
        self.most_gpus = self.most_gpus.max(other.most_gpus);
        self
    }

    /// With several GPUs the curves are their mean, and the titles say so.
    pub fn done(self) -> Vec<Chart> {
        let several = self.most_gpus > 1;
        let charts = self.plans.into_iter().filter_map(|plan| {
            let curves = plan.curves.into_iter().map(|(curve, _)| curve);
            let curves: Vec<Curve> = curves.filter(|curve| !curve.series.is_empty()).collect();
            let measured = curves.iter().any(|curve| !curve.limit);
            let title = if several && plan.of_gpus {
                Message {
                    en: format!("{} (mean of the GPUs)", plan.title.en),
                    zh: format!("{}（各 GPU 平均）", plan.title.zh),
                }
            } else {
                plan.title
            };
            measured.then_some(Chart {
                key: plan.key,
                title,
                scale: plan.scale,
                curves,
            })
        });
        charts.collect()
    }
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

/// What the phases tell of batches, or the whole tick where they tell nothing: evaluation, checkpoints and what a program does behind
/// its last step are of no batch, and one of them in a tick of one step would dwarf all others.
fn batches_ms(tick: &StepTick) -> f64 {
    let whole = tick.dt * 1e3;
    if tick.phases.is_empty() {
        return whole;
    }
    let of_batches = tick
        .phases
        .iter()
        .filter(|(phase, _)| !matches!(phase, Phase::Eval | Phase::Checkpoint));
    of_batches.map(|(_, time)| time.ms).sum::<f64>().min(whole)
}

/// Weighed by steps, so that a stretch's mean is its time by its steps.
fn per_step(tick: &StepTick, ms: f64) -> Option<(f64, f64)> {
    let steps = tick.steps as f64;
    (tick.steps > 0).then(|| (ms / steps, steps))
}

fn plans(tick_s: f64) -> Vec<Plan> {
    let curve = |name: Message, limit: bool| Curve {
        name,
        limit,
        color: None,
        series: Series::new(tick_s, MOST_BUCKETS),
    };
    let sample = |name: Message, value: OfSample| (curve(name, false), Of::Sample(value));
    let limit = |name: Message, value: OfSample| (curve(name, true), Of::Sample(value));
    let steps = |name: Message, value: OfSteps| (curve(name, false), Of::Steps(value));
    vec![
        Plan {
            key: "busy",
            title: message!(en: "GPU utilization", zh: "GPU 利用率"),
            of_gpus: true,
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
            title: message!(en: "Samples per second", zh: "样本/秒"),
            of_gpus: false,
            scale: Scale::Count,
            curves: vec![steps(message!(en: "samples/s", zh: "样本/秒"), |tick| {
                let samples = tick.samples.filter(|_| tick.dt > 0.0)?;
                Some((samples as f64 / tick.dt, tick.dt))
            })],
        },
        Plan {
            key: "wait",
            title: message!(en: "Time per step, without evaluation and checkpoints", zh: "每步时间（不含评估和 checkpoint）"),
            of_gpus: false,
            scale: Scale::Milliseconds,
            curves: vec![
                steps(message!(en: "total", zh: "总计"), |tick| {
                    per_step(tick, batches_ms(tick))
                }),
                steps(message!(en: "waiting for data", zh: "等待数据"), |tick| {
                    per_step(tick, tick.phase_ms(Phase::Data))
                }),
            ],
        },
        Plan {
            key: "loss",
            title: message!(en: "Loss", zh: "损失"),
            of_gpus: false,
            scale: Scale::Free,
            curves: vec![steps(message!(en: "loss", zh: "损失"), |tick| {
                // The last tick may hold a single step, whose loss says little.
                Some((tick.loss?, tick.steps.max(1) as f64))
            })],
        },
        Plan {
            key: "memory",
            title: message!(en: "GPU memory", zh: "显存"),
            of_gpus: true,
            scale: Scale::Bytes,
            curves: vec![
                sample(message!(en: "used", zh: "已用"), |s, _| {
                    gpus(s, |_, gpu| gpu.mem_used_bytes.map(|bytes| bytes as f64))
                }),
                limit(message!(en: "total", zh: "总量"), |s, info| {
                    gpus(s, |index, _| {
                        let gpu = info.gpus.get(&index)?;
                        gpu.mem_total_bytes.map(|bytes| bytes as f64)
                    })
                }),
            ],
        },
        Plan {
            key: "power",
            title: message!(en: "Power", zh: "功耗"),
            of_gpus: true,
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
            title: message!(en: "Temperature", zh: "温度"),
            of_gpus: true,
            scale: Scale::Celsius,
            curves: vec![
                sample(message!(en: "temperature", zh: "温度"), |s, _| {
                    gpus(s, |_, gpu| gpu.temp_c)
                }),
                limit(message!(en: "throttles at", zh: "降频温度"), |s, info| {
                    gpus(s, |index, _| info.gpus.get(&index)?.temp_slowdown_c)
                }),
            ],
        },
        Plan {
            key: "clocks",
            title: message!(en: "Clocks", zh: "时钟频率"),
            of_gpus: true,
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
            of_gpus: false,
            scale: Scale::Percent,
            curves: vec![
                sample(message!(en: "busy", zh: "忙碌"), |s, _| {
                    s.host.cpu_util.map(hundred)
                }),
                sample(
                    message!(en: "waiting for disk I/O", zh: "等待磁盘 I/O"),
                    |s, _| s.host.iowait.map(hundred),
                ),
            ],
        },
    ]
}

fn hundred(share: f64) -> f64 {
    share * 100.0
}

#[cfg(test)]
mod tests;
