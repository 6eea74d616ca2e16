//! What the GPUs of a trial take, all of them together, in watts.

use flatout_record::{GpuSample, RunData};
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

/// What they take when they are awake and nothing computes: the least of what reads idle shortly before the first steps are told, or in
/// a pause after them. `None` where a card never did.
pub fn idle(data: &RunData) -> Option<f64> {
    const AWAKE_S: f64 = 1.0;
    const IDLE: f64 = 0.02;
    let from = data.steps.iter().find(|tick| tick.steps > 0)?.t - AWAKE_S;
    let awake = data.samples.iter().filter(|sample| sample.t >= from);
    let quiet = |gpu: &GpuSample| gpu.power_w.filter(|_| gpu.util.is_some_and(|util| util <= IDLE));
    let mut least: BTreeMap<u32, Option<f64>> = BTreeMap::new();
    for (index, gpu) in awake.flat_map(|sample| &sample.gpus) {
        let known = least.entry(*index).or_default();
        *known = (*known).into_iter().chain(quiet(gpu)).reduce(f64::min);
    }
    let all: Option<Vec<f64>> = least.into_values().collect();
    all.filter(|all| !all.is_empty()).map(|all| all.iter().sum())
}

/// What they may take at most.
pub fn limit(data: &RunData) -> Option<f64> {
    let last = data.samples.last()?;
    let limits: Option<Vec<f64>> = last.gpus.values().map(|gpu| gpu.power_limit_w).collect();
    limits.filter(|all| !all.is_empty()).map(|all| all.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_record::{Sample, StepTick};

    /// Watts and utilisation of two cards alike, each second; steps are told after five.
    fn run(readings: &[(f64, f64)]) -> RunData {
        let sample = |(at, (watts, util)): (usize, &(f64, f64))| {
            let gpu = GpuSample {
                power_w: Some(*watts),
                power_limit_w: Some(700.0),
                util: Some(*util),
                ..GpuSample::default()
            };
            Sample {
                t: at as f64,
                gpus: [(0, gpu.clone()), (1, gpu)].into(),
                ..Sample::default()
            }
        };
        // As our own trainer tells them: the first tick holds the start.
        let tick = StepTick {
            t: 5.0,
            dt: 5.0,
            steps: 10,
            ..StepTick::default()
        };
        RunData {
            samples: readings.iter().enumerate().map(sample).collect(),
            steps: vec![tick],
            ..RunData::default()
        }
    }

    #[test]
    fn a_sleeping_gpu_is_not_idle_power() {
        let asleep = (80.0, 0.0);
        let data = run(&[
            asleep,
            asleep,
            asleep,
            (100.0, 0.0),
            (126.0, 0.0),
            (300.0, 0.9),
            (400.0, 0.9),
            (127.0, 0.01),
        ]);
        assert_eq!(idle(&data), Some(252.0));
        assert_eq!(limit(&data), Some(1400.0));
        assert_eq!(mean(&data, (5.0, 6.0)), Some(700.0));
    }

    #[test]
    fn unknown_stays_unknown() {
        let busy = (211.0, 0.6);
        assert_eq!(
            idle(&run(&[(80.0, 0.0), (80.0, 0.0), busy, busy, busy, busy])),
            None
        );
        let mut data = run(&[(126.0, 0.0); 8]);
        data.steps.clear();
        assert_eq!(idle(&data), None);
        assert_eq!(idle(&RunData::default()), None);
        assert_eq!(limit(&RunData::default()), None);
    }
}
