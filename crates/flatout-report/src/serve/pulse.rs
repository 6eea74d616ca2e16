//! What a running job does now, from the lines that it wrote since the last look: cheap enough for every other second.

use flatout_diagnose::verdict::utilisation_of_tick;
use flatout_record::{Follow, Sample, StepTick};
use std::collections::VecDeque;
use std::path::Path;

/// Rates are of the last steps of this many seconds.
const WINDOW_S: f64 = 30.0;

pub struct Follower {
    samples: Follow<Sample>,
    steps: Follow<StepTick>,
    recent_steps: VecDeque<StepTick>,
    recent_samples: VecDeque<(f64, Option<f64>, Option<f64>)>,
    total_steps: u64,
    /// Older parts of the record were not read: the total is not known.
    has_older_parts: bool,
    loss: Option<f64>,
}

/// What is known of the last half minute.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pulse {
    pub steps: Option<u64>,
    pub steps_per_s: Option<f64>,
    pub samples_per_s: Option<f64>,
    pub gpu_util: Option<f64>,
    pub cpu_util: Option<f64>,
    pub loss: Option<f64>,
}

impl Follower {
    pub fn new(folder: &Path) -> Self {
        let older = ["steps.0000.jsonl", "steps.0000.jsonl.zst"];
        Self {
            samples: Follow::samples(folder),
            steps: Follow::steps(folder),
            recent_steps: VecDeque::new(),
            recent_samples: VecDeque::new(),
            total_steps: 0,
            has_older_parts: older.iter().any(|name| folder.join(name).exists()),
            loss: None,
        }
    }

    pub fn look(&mut self) -> Pulse {
        for tick in self.steps.new_items() {
            if !(tick.t.is_finite() && tick.dt.is_finite() && tick.dt >= 0.0) {
                continue;
            }
            self.total_steps = self.total_steps.saturating_add(tick.steps);
            self.loss = tick.loss.filter(|loss| loss.is_finite()).or(self.loss);
            self.recent_steps.push_back(tick);
        }
        for sample in self.samples.new_items() {
            if !sample.t.is_finite() {
                continue;
            }
            let shares: Vec<f64> = sample.gpus.values().filter_map(utilisation_of_tick).collect();
            let gpu = (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64);
            self.recent_samples
                .push_back((sample.t, gpu, sample.host.cpu_util));
        }
        let last = self.recent_steps.back().map_or(0.0, |tick| tick.t);
        while self
            .recent_steps
            .front()
            .is_some_and(|tick| tick.t < last - WINDOW_S)
        {
            self.recent_steps.pop_front();
        }
        let last = self.recent_samples.back().map_or(0.0, |sample| sample.0);
        while self
            .recent_samples
            .front()
            .is_some_and(|sample| sample.0 < last - WINDOW_S)
        {
            self.recent_samples.pop_front();
        }
        self.pulse()
    }

    fn pulse(&self) -> Pulse {
        let seconds: f64 = self.recent_steps.iter().map(|tick| tick.dt).sum();
        let steps: u64 = self.recent_steps.iter().map(|tick| tick.steps).sum();
        let samples: Option<u64> = self.recent_steps.iter().map(|tick| tick.samples).sum();
        let per_second = |count: u64| (seconds > 0.0 && count > 0).then(|| count as f64 / seconds);
        let mean =
            |values: Vec<f64>| (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
        let in_range = |value: &f64| (0.0..=1.0).contains(value);
        Pulse {
            steps: (!self.has_older_parts && self.total_steps > 0).then_some(self.total_steps),
            steps_per_s: per_second(steps),
            samples_per_s: samples.and_then(per_second),
            gpu_util: mean(
                self.recent_samples
                    .iter()
                    .filter_map(|sample| sample.1)
                    .filter(in_range)
                    .collect(),
            ),
            cpu_util: mean(
                self.recent_samples
                    .iter()
                    .filter_map(|sample| sample.2)
                    .filter(in_range)
                    .collect(),
            ),
            loss: self.loss,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn tells_the_last_half_minute() {
        let folder = tempfile::tempdir().unwrap();
        let mut steps = std::fs::File::create(folder.path().join("steps.jsonl")).unwrap();
        let mut follower = Follower::new(folder.path());
        assert_eq!(follower.look(), Pulse::default());
        for t in 1..=100 {
            let count = if t <= 60 { 2 } else { 10 };
            writeln!(
                steps,
                "{{\"t\":{t},\"dt\":1,\"steps\":{count},\"samples\":{},\"loss\":0.5}}",
                count * 4
            )
            .unwrap();
        }
        writeln!(steps, "{{\"t\":null}}\n{{\"t\":1e999,\"dt\":1,\"steps\":1}}").unwrap();
        let pulse = follower.look();
        assert_eq!(pulse.steps, Some(520));
        assert_eq!(pulse.steps_per_s, Some(10.0));
        assert_eq!(pulse.samples_per_s, Some(40.0));
        assert_eq!((pulse.loss, pulse.gpu_util), (Some(0.5), None));
    }
}
