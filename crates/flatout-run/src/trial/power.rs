//! What the GPUs of a trial take, all of them together, in watts.

use flatout_telemetry::GpuSample;
use flatout_telemetry::record::RunData;
use std::collections::BTreeMap;

/// Their mean over a window, by the energy counter where there is one.
pub fn mean(data: &RunData, (begin, end): (f64, f64)) -> Option<f64> {
    let within: Vec<_> = data
        .samples
        .iter()
        .filter(|sample| sample.t >= begin && sample.t <= end)
        .collect();
    let (first, last) = (within.first()?, within.last()?);
    let mut total = None;
    for (index, gpu) in &last.gpus {
        let before = first.gpus.get(index);
        let counted = gpu
            .energy_j
            .zip(before.and_then(|gpu| gpu.energy_j))
            .filter(|_| last.t > first.t);
        let watts = counted
            .map(|(after, before)| (after - before) / (last.t - first.t))
            .or_else(|| {
                let readings: Vec<f64> = within
                    .iter()
                    .filter_map(|sample| sample.gpus.get(index)?.power_w)
                    .collect();
                (!readings.is_empty()).then(|| readings.iter().sum::<f64>() / readings.len() as f64)
            });
        if let Some(watts) = watts {
            *total.get_or_insert(0.0) += watts;
        }
    }
    total
}

/// What the GPUs take when they are awake and nothing computes: the least shortly before the first step or in a pause after it.
pub fn idle(data: &RunData) -> Option<f64> {
    const AWAKE_S: f64 = 1.0;
    let first = data.steps.iter().find(|tick| tick.steps > 0)?;
    let from = first.t - first.dt - AWAKE_S;
    of_all(data, from, |gpu| gpu.power_w, f64::min)
}

/// What they may take at most.
pub fn limit(data: &RunData) -> Option<f64> {
    of_all(data, 0.0, |gpu| gpu.power_limit_w, f64::max)
}

/// A reading of every GPU since then, added up.
fn of_all(
    data: &RunData,
    from: f64,
    reading: impl Fn(&GpuSample) -> Option<f64>,
    choose: fn(f64, f64) -> f64,
) -> Option<f64> {
    let mut chosen: BTreeMap<u32, f64> = BTreeMap::new();
    for sample in data.samples.iter().filter(|sample| sample.t >= from) {
        for (index, gpu) in &sample.gpus {
            if let Some(watts) = reading(gpu) {
                let known = chosen.entry(*index).or_insert(watts);
                *known = choose(*known, watts);
            }
        }
    }
    (!chosen.is_empty()).then(|| chosen.values().sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_telemetry::{Sample, StepTick};

    fn run(watts: &[f64]) -> RunData {
        let sample = |(at, watts): (usize, &f64)| {
            let gpu = GpuSample {
                power_w: Some(*watts),
                power_limit_w: Some(700.0),
                ..GpuSample::default()
            };
            Sample {
                t: at as f64,
                gpus: [(0, gpu.clone()), (1, gpu)].into(),
                ..Sample::default()
            }
        };
        let tick = StepTick {
            t: 5.0,
            dt: 1.0,
            steps: 10,
            ..StepTick::default()
        };
        RunData {
            samples: watts.iter().enumerate().map(sample).collect(),
            steps: vec![tick],
            ..RunData::default()
        }
    }

    #[test]
    fn a_card_that_sleeps_before_the_program_wakes_it_is_not_idle_yet() {
        let data = run(&[80.0, 80.0, 100.0, 126.0, 300.0, 400.0, 127.0]);
        assert_eq!(idle(&data), Some(252.0));
        assert_eq!(limit(&data), Some(1400.0));
        assert_eq!(mean(&data, (4.0, 5.0)), Some(700.0));
    }

    #[test]
    fn unknown_stays_unknown() {
        let mut data = run(&[80.0, 126.0]);
        data.steps.clear();
        assert_eq!(idle(&data), None);
        assert_eq!(idle(&RunData::default()), None);
        assert_eq!(limit(&RunData::default()), None);
    }
}
