//! During and after: what the record of a run shows.

use super::{Item, Limits, Status, status};
use flatout_compare::{Limit, Ratio, throughput};
use flatout_core::stats::{Summary, mean};
use flatout_core::{Message, message, units};
use flatout_diagnose::Analysis;
use flatout_record::{EventKind, RunData, steady_epochs};

pub fn after(data: &RunData, limits: &Limits) -> Vec<Item> {
    let analysis = Analysis::new(data);
    let mut items = utilization(data, &analysis, limits);
    items.push(memory(&analysis, limits));
    items.push(temperature(&analysis, limits));
    items.push(cpus(&analysis, limits));
    items.push(epochs(data, limits));
    items.push(out_of_memory(data));
    items.push(ended(data));
    items
}

/// The throughput of a run beside that of another, by the one definition of slower.
pub fn against(data: &RunData, baseline: &RunData, limits: &Limits) -> Item {
    let what = message!(en: "throughput relative to the baseline", zh: "相对基线的吞吐");
    let rate = |data: &RunData| throughput(&Analysis::new(data));
    let both = rate(baseline).zip(rate(data));
    let both = both.filter(|(first, second)| first.of_samples == second.of_samples);
    let Some(ratio) = both.and_then(|(first, second)| Ratio::between(first.rate, second.rate)) else {
        return Item::skipped("throughput", what, unknown());
    };
    let most = limits.slower_max;
    let broken = Limit::Slower(most).is_broken_by(&ratio);
    let interval = ratio
        .interval
        .map_or(String::new(), |(low, high)| format!(" ({low:.2}–{high:.2})"));
    let least = 1.0 - most;
    Item::new("throughput", what, status(!broken, Status::Fail)).found(
        format!("{:.2}×{interval}", ratio.factor),
        format!("≥ {least:.2}×"),
    )
}

/// A program that was stopped is none that failed.
fn ended(data: &RunData) -> Item {
    let what = message!(en: "outcome", zh: "结果");
    let Some(exit) = &data.info.exit else {
        return Item::skipped(
            "ended",
            what,
            message!(en: "still running, or its end was not recorded", zh: "尚未结束，或没有记录到结束"),
        );
    };
    let stopped = matches!(exit.signal, Some(libc::SIGINT | libc::SIGTERM));
    let worst = if stopped { Status::Warn } else { Status::Fail };
    match exit.failure() {
        Some(how) => Item::new("ended", what, worst).because(how),
        None if exit.code == Some(0) => {
            let code = message!(en: "exit code 0", zh: "退出码 0");
            Item::new("ended", what, Status::Pass).because(code)
        }
        None => Item::new("ended", what, Status::Pass),
    }
}

fn unknown() -> Message {
    message!(en: "not recorded", zh: "没有记录")
}

/// Of the busiest GPU, over the steady part.
fn utilization(data: &RunData, analysis: &Analysis, limits: &Limits) -> Vec<Item> {
    let mean = message!(en: "GPU utilization", zh: "GPU 利用率");
    let varies = message!(en: "fluctuation of GPU utilization", zh: "GPU 利用率波动");
    let range = analysis
        .window
        .as_ref()
        .map_or((0.0, f64::INFINITY), |window| window.range());
    let Some(gpu) = analysis.busiest_gpu().map(|gpu| gpu.index) else {
        return vec![
            Item::skipped("gpu-utilization", mean, unknown()),
            Item::skipped("gpu-fluctuation", varies, unknown()),
        ];
    };
    let within = data
        .samples
        .iter()
        .filter(|sample| sample.t >= range.0 && sample.t <= range.1);
    let values: Vec<f64> = within.filter_map(|sample| sample.gpus.get(&gpu)?.util).collect();
    let Some(summary) = Summary::of(&values) else {
        return vec![
            Item::skipped("gpu-utilization", mean, unknown()),
            Item::skipped("gpu-fluctuation", varies, unknown()),
        ];
    };
    let (least, most) = (
        units::percent(limits.gpu_utilization_min),
        units::percent(limits.gpu_fluctuation_max),
    );
    vec![
        Item::new(
            "gpu-utilization",
            mean,
            status(summary.mean >= limits.gpu_utilization_min, Status::Fail),
        )
        .found(units::percent(summary.mean), format!("≥ {least}")),
        Item::new(
            "gpu-fluctuation",
            varies,
            status(summary.std <= limits.gpu_fluctuation_max, Status::Warn),
        )
        .found(format!("± {}", units::percent(summary.std)), format!("≤ {most}")),
    ]
}

fn memory(analysis: &Analysis, limits: &Limits) -> Item {
    let what = message!(en: "GPU memory in use", zh: "显存使用");
    let Some(share) = analysis.busiest_gpu().and_then(|gpu| gpu.mem_peak_share()) else {
        return Item::skipped("gpu-memory", what, unknown());
    };
    let (least, most) = (
        units::percent(limits.gpu_memory_min),
        units::percent(limits.gpu_memory_max),
    );
    let good = share >= limits.gpu_memory_min && share <= limits.gpu_memory_max;
    Item::new("gpu-memory", what, status(good, Status::Warn))
        .found(units::percent(share), format!("{least}–{most}"))
}

fn temperature(analysis: &Analysis, limits: &Limits) -> Item {
    let what = message!(en: "GPU temperature", zh: "GPU 温度");
    let Some(degrees) = analysis.busiest_gpu().and_then(|gpu| gpu.temp_max_c) else {
        return Item::skipped("gpu-cool", what, unknown());
    };
    let most = limits.gpu_temperature_max;
    Item::new("gpu-cool", what, status(degrees < most, Status::Fail))
        .found(format!("{degrees:.0} °C"), format!("< {most:.0} °C"))
}

fn cpus(analysis: &Analysis, limits: &Limits) -> Item {
    let what = message!(en: "CPU utilization", zh: "CPU 使用率");
    let Some(share) = analysis.host.cpu_util else {
        return Item::skipped("cpu", what, unknown());
    };
    let most = units::percent(limits.cpu_utilization_max);
    Item::new(
        "cpu",
        what,
        status(share <= limits.cpu_utilization_max, Status::Warn),
    )
    .found(units::percent(share), format!("≤ {most}"))
}

fn epochs(data: &RunData, limits: &Limits) -> Item {
    let what = message!(en: "time per epoch", zh: "每轮时间");
    let times: Vec<f64> = data.epoch_times().iter().map(|epoch| epoch.seconds).collect();
    if times.is_empty() {
        return Item::skipped(
            "epoch",
            what,
            message!(en: "no epoch was completed", zh: "没有完整的一轮"),
        );
    }
    let seconds = mean(steady_epochs(&times));
    let most = limits.epoch_seconds_max;
    let limit = if most > 0.0 {
        format!("≤ {}", units::duration(most))
    } else {
        String::new()
    };
    Item::new(
        "epoch",
        what,
        status(most <= 0.0 || seconds <= most, Status::Fail),
    )
    .found(units::duration(seconds), limit)
}

fn out_of_memory(data: &RunData) -> Item {
    let what = message!(en: "out-of-memory errors", zh: "内存溢出次数");
    let count = data
        .events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::OutOfMemory { .. }))
        .count();
    Item::new("out-of-memory", what, status(count == 0, Status::Fail)).found(count.to_string(), "≤ 0")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::state;
    use flatout_record::{Event, ExitInfo, GpuSample, Sample, StepTick};

    #[test]
    fn a_program_that_failed_does_not_pass() {
        let ended = |code: Option<i32>, signal: Option<i32>| {
            let mut data = RunData::default();
            data.info.exit = Some(ExitInfo { t: 1.0, code, signal });
            state(&after(&data, &Limits::default()), "ended")
        };
        assert_eq!(
            (ended(Some(0), None), ended(Some(3), None)),
            (Status::Pass, Status::Fail)
        );
        assert_eq!(
            (ended(None, Some(15)), ended(None, Some(9))),
            (Status::Warn, Status::Fail)
        );
        assert_eq!(
            state(&after(&RunData::default(), &Limits::default()), "ended"),
            Status::Skipped
        );
    }

    fn record(util: f64) -> RunData {
        let gpu = || GpuSample {
            util: Some(util),
            temp_c: Some(60.0),
            ..GpuSample::default()
        };
        let sample = |t: u32| Sample {
            t: f64::from(t),
            gpus: [(0, gpu())].into(),
            ..Sample::default()
        };
        let event = Event {
            t: 5.0,
            kind: EventKind::Epoch {
                number: 1,
                duration_ms: Some(30_000.0),
            },
        };
        RunData {
            samples: (0..20).map(sample).collect(),
            events: vec![event],
            ..RunData::default()
        }
    }

    #[test]
    fn numbers_against_limits() {
        let limits = Limits {
            epoch_seconds_max: 20.0,
            ..Limits::default()
        };
        let items = after(&record(0.3), &limits);
        assert_eq!(
            (state(&items, "gpu-utilization"), state(&items, "epoch")),
            (Status::Fail, Status::Fail)
        );
        assert_eq!(
            (state(&items, "gpu-cool"), state(&items, "cpu")),
            (Status::Pass, Status::Skipped)
        );
        let items = after(&record(0.9), &Limits::default());
        assert_eq!(
            (state(&items, "gpu-utilization"), state(&items, "epoch")),
            (Status::Pass, Status::Pass)
        );
    }

    /// Twenty seconds of steps, each second as many as `rate` gives for it.
    fn steps(rate: impl Fn(u64) -> u64) -> RunData {
        let tick = |t: u64| StepTick {
            t: t as f64,
            dt: 1.0,
            steps: rate(t),
            samples: Some(rate(t) * 32),
            ..StepTick::default()
        };
        RunData {
            steps: (1..=40).map(tick).collect(),
            ..RunData::default()
        }
    }

    #[test]
    fn a_run_is_slower_than_its_baseline_beyond_noise_only() {
        let state = |data: &RunData, baseline: &RunData| against(data, baseline, &Limits::default()).status;
        let usual = steps(|t| 100 + t % 3);
        assert_eq!(state(&steps(|t| 80 + t % 3), &usual), Status::Fail);
        assert_eq!(state(&steps(|t| 120 + t % 3), &usual), Status::Pass);
        // A twentieth slower, in a run that varies by far more.
        let wild = steps(|t| if t % 7 < 3 { 150 } else { 55 });
        assert_eq!(state(&wild, &usual), Status::Pass);
        assert_eq!(state(&RunData::default(), &usual), Status::Skipped);
    }

    #[test]
    fn an_empty_record_skips() {
        let items = after(&RunData::default(), &Limits::default());
        assert_eq!(state(&items, "gpu-utilization"), Status::Skipped);
        assert_eq!(state(&items, "out-of-memory"), Status::Pass);
    }
}
