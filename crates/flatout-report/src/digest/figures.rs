//! The headline: a few figures that say how the run went, each with the interval that its own blocks of time give.

use flatout_compare::Estimate;
use flatout_compare::estimate::BLOCKS;
use flatout_compare::throughput::{pairs, samples_per_s, steps_per_s};
use flatout_core::stats::{Summary, mean};
use flatout_core::{Message, message, units};
use flatout_diagnose::Analysis;
use flatout_diagnose::verdict::utilisation_of_tick;
use flatout_record::{Phase, Sample, StepTick, steady_epochs};
use serde::Serialize;

/// What a figure is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    PerSecond,
    Milliseconds,
    Seconds,
    /// 0 to 1.
    Share,
}

impl Unit {
    pub fn show(self, value: f64) -> String {
        match self {
            Self::PerSecond => units::count(value),
            Self::Milliseconds => units::duration(value / 1e3),
            Self::Seconds => units::duration(value),
            Self::Share => units::percent(value),
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    pub key: &'static str,
    pub name: Message,
    pub unit: Unit,
    pub mean: f64,
    /// 95% interval of the mean; absent when there is too little to tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
    /// Standard deviation from tick to tick, where that is the thing to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub std: Option<f64>,
    /// More of it is better; `None` where neither is.
    pub higher_is_better: Option<bool>,
}

impl Figure {
    fn new(
        key: &'static str,
        name: Message,
        unit: Unit,
        measured: Estimate,
        higher_is_better: Option<bool>,
    ) -> Self {
        Self {
            key,
            name,
            unit,
            mean: measured.mean,
            interval: measured.interval,
            std: None,
            higher_is_better,
        }
    }

    pub fn estimate(&self) -> Estimate {
        Estimate {
            mean: self.mean,
            interval: self.interval,
        }
    }
}

/// What could be measured; the rest is absent, not zero.
pub fn of(analysis: &Analysis) -> Vec<Figure> {
    let mut figures = steps(analysis);
    figures.extend(epoch(analysis));
    figures.extend(gpu_busy(analysis));
    figures.extend(cpu(analysis));
    figures
}

fn steps(analysis: &Analysis) -> Vec<Figure> {
    let Some(window) = &analysis.window else {
        return Vec::new();
    };
    let mut figures = Vec::new();
    let steps = |tick: &StepTick| tick.steps as f64;
    let per_step = |mean: f64, part: &dyn Fn(&StepTick) -> f64| {
        Estimate::of_quotient(mean, &pairs(analysis, |tick| (part(tick), steps(tick))))
    };
    if let Some(rate) = samples_per_s(analysis) {
        figures.push(Figure::new(
            "samples_per_s",
            message!(en: "samples per second", zh: "样本/秒"),
            Unit::PerSecond,
            rate,
            Some(true),
        ));
    }
    if let Some(rate) = steps_per_s(analysis) {
        figures.push(Figure::new(
            "steps_per_s",
            message!(en: "steps per second", zh: "步/秒"),
            Unit::PerSecond,
            rate,
            Some(true),
        ));
    }
    figures.push(Figure::new(
        "step_ms",
        message!(en: "time per step", zh: "每步时间"),
        Unit::Milliseconds,
        per_step(window.step_ms(), &|tick| tick.dt * 1e3),
        Some(false),
    ));
    figures.push(Figure::new(
        "data_wait_ms",
        message!(en: "waiting for data", zh: "其中等待数据"),
        Unit::Milliseconds,
        per_step(window.ms_per_step(Phase::Data), &|tick| {
            tick.phase_ms(Phase::Data)
        }),
        Some(false),
    ));
    figures
}

fn epoch(analysis: &Analysis) -> Option<Figure> {
    let epochs = analysis.data.epoch_times();
    let seconds: Vec<f64> = epochs.iter().map(|epoch| epoch.seconds).collect();
    let seconds = steady_epochs(&seconds);
    (!seconds.is_empty()).then(|| {
        Figure::new(
            "epoch_s",
            message!(en: "time per epoch", zh: "每个 epoch 的时间"),
            Unit::Seconds,
            Estimate::of_values(seconds),
            Some(false),
        )
    })
}

/// The samples that count: those of the steady part, or all where there are no steps.
fn steady_samples<'a>(analysis: &'a Analysis) -> impl Iterator<Item = &'a Sample> {
    let range = analysis
        .window
        .as_ref()
        .map_or((f64::NEG_INFINITY, f64::INFINITY), |window| window.range());
    analysis
        .data
        .samples
        .iter()
        .filter(move |sample| sample.t > range.0 && sample.t <= range.1)
}

/// A GPU below this mean did not take part.
const USED_SHARE: f64 = 0.01;

fn gpu_busy(analysis: &Analysis) -> Option<Figure> {
    let used: Vec<u32> = analysis
        .gpus
        .iter()
        .filter(|gpu| gpu.util.is_some_and(|util| util >= USED_SHARE))
        .map(|gpu| gpu.index)
        .collect();
    let takes_part = |index: &u32| used.is_empty() || used.contains(index);
    let busy: Vec<f64> = steady_samples(analysis)
        .filter_map(|sample| {
            let known: Vec<f64> = sample
                .gpus
                .iter()
                .filter(|(index, gpu)| takes_part(index) && gpu.age_s.is_none())
                .filter_map(|(_, gpu)| utilisation_of_tick(gpu))
                .collect();
            (!known.is_empty()).then(|| mean(&known))
        })
        .collect();
    let count = used.len();
    let name = if count > 1 {
        message!(en: "GPU busy, mean of {count}", zh: "GPU 忙碌（{count} 块平均）")
    } else {
        message!(en: "GPU busy", zh: "GPU 忙碌")
    };
    of_ticks("gpu_busy", name, &busy, Some(true))
}

fn cpu(analysis: &Analysis) -> Option<Figure> {
    let busy: Vec<f64> = steady_samples(analysis)
        .filter_map(|sample| sample.host.cpu_util)
        .collect();
    let name = match analysis.usable_cpus() {
        Some(count) => message!(en: "utilization of {count} CPUs", zh: "{count} 个 CPU 的忙碌率"),
        None => message!(en: "CPU utilization", zh: "CPU 忙碌"),
    };
    of_ticks("cpu_busy", name, &busy, None)
}

fn of_ticks(
    key: &'static str,
    name: Message,
    values: &[f64],
    higher_is_better: Option<bool>,
) -> Option<Figure> {
    let summary = Summary::of(values)?;
    let size = values.len().div_ceil(BLOCKS).max(1);
    let means: Vec<f64> = values.chunks_exact(size).map(mean).collect();
    Some(Figure {
        key,
        name,
        unit: Unit::Share,
        mean: summary.mean,
        interval: Estimate::of_values(&means)
            .interval
            .map(|(low, high)| (low, high.min(1.0))),
        std: (summary.count > 1).then_some(summary.std),
        higher_is_better,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use flatout_record::RunData;

    #[test]
    fn steady_steps_have_exact_figures() {
        let data = testing::training(40, 0.25);
        let figures = of(&Analysis::new(&data));
        let get = |key: &str| figures.iter().find(|figure| figure.key == key).unwrap();
        assert!((get("samples_per_s").mean - 320.0).abs() < 1e-6);
        assert!((get("step_ms").mean - 100.0).abs() < 1e-6);
        assert!((get("data_wait_ms").mean - 25.0).abs() < 1e-6);
        let (low, high) = get("samples_per_s").interval.unwrap();
        assert!(low <= 320.0 + 1e-6 && high >= 320.0 - 1e-6);
        assert!((get("gpu_busy").mean - 0.5).abs() < 0.05);
    }

    #[test]
    fn nothing_is_made_up_for_an_empty_run() {
        let data = RunData::default();
        assert!(of(&Analysis::new(&data)).is_empty());
    }

    #[test]
    fn one_sample_has_no_interval_and_no_spread() {
        let mut data = testing::training(40, 0.25);
        data.steps.clear();
        data.events.clear();
        data.samples.truncate(1);
        let figures = of(&Analysis::new(&data));
        assert!(!figures.is_empty());
        assert!(
            figures
                .iter()
                .all(|figure| figure.interval.is_none() && figure.std.is_none())
        );
    }
}
