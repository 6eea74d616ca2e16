//! The steps of one tick in memory that never grows: what the training thread fills costs it no allocation.

use flatout_core::histogram::Histogram;
use flatout_record::{Phase, PhaseTime, StepTick};
use std::collections::BTreeMap;

/// Buckets of [`Histogram`] that a duration can fall into: eight an octave, up to 2⁶⁴ ns.
const BUCKETS: usize = 512;

struct Durations {
    ms: f64,
    counts: [u32; BUCKETS],
}

impl Durations {
    const NONE: Self = Self {
        ms: 0.0,
        counts: [0; BUCKETS],
    };

    fn add(&mut self, ms: f64) {
        self.ms += ms;
        let bucket = usize::from(Histogram::bucket_of(ms * 1e6)).min(BUCKETS - 1);
        self.counts[bucket] = self.counts[bucket].saturating_add(1);
    }

    fn histogram(&self) -> Histogram {
        let mut histogram = Histogram::default();
        for (bucket, &count) in (0..).zip(&self.counts).filter(|(_, count)| **count > 0) {
            histogram.add_count(bucket, count.into());
        }
        histogram
    }
}

pub struct Tick {
    /// End and length, set when it is handed over.
    pub t: f64,
    pub dt: f64,
    pub steps: u64,
    pub samples: u64,
    pub busy_ms: Option<f64>,
    pub loss: Option<f64>,
    phases: [Durations; Phase::ALL.len()],
    step: Durations,
}

impl Tick {
    pub fn new() -> Self {
        Self {
            t: 0.0,
            dt: 0.0,
            steps: 0,
            samples: 0,
            busy_ms: None,
            loss: None,
            phases: [const { Durations::NONE }; Phase::ALL.len()],
            step: Durations::NONE,
        }
    }

    /// Time that the main thread spent in a phase.
    pub fn add(&mut self, phase: Phase, seconds: f64) {
        self.phases[phase as usize].add(seconds * 1e3);
    }

    /// A step ended.
    pub fn step(&mut self, samples: usize, seconds: f64) {
        self.steps += 1;
        self.samples += samples as u64;
        self.step.add(seconds * 1e3);
    }

    /// As the record has it.
    pub fn line(&self) -> StepTick {
        let spent = |phase: &Phase| self.phases[*phase as usize].ms > 0.0;
        let times = Phase::ALL.into_iter().filter(spent).map(|phase| {
            let Durations { ms, .. } = self.phases[phase as usize];
            let hist = self.phases[phase as usize].histogram();
            (phase, PhaseTime { ms, hist })
        });
        let mut phases: BTreeMap<Phase, PhaseTime> = times.collect();
        // What no phase explains is said as such, so that the phases add up.
        let known: f64 = phases.values().map(|time| time.ms).sum();
        phases.entry(Phase::Other).or_default().ms += (self.dt * 1e3 - known).max(0.0);
        StepTick {
            t: self.t,
            dt: self.dt,
            steps: self.steps,
            samples: Some(self.samples),
            busy_ms: self.busy_ms,
            phases,
            step_hist: self.step.histogram(),
            loss: self.loss,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_is_what_was_added_and_its_phases_add_up() {
        let mut tick = Tick::new();
        tick.add(Phase::Data, 0.001);
        tick.add(Phase::Compute, 0.003);
        tick.add(Phase::Compute, f64::MAX);
        tick.phases[Phase::Compute as usize].ms = 3.0;
        tick.step(32, 0.004);
        tick.dt = 0.01;
        let line = tick.line();
        assert_eq!((line.steps, line.samples), (1, Some(32)));
        assert!((line.phase_ms(Phase::Other) - 6.0).abs() < 1e-9);
        assert_eq!(line.phases[&Phase::Compute].hist.count(), 2);
        assert!(!line.phases.contains_key(&Phase::Eval));
        let step = line.step_hist.quantile_ms(0.5).unwrap();
        assert!((step / 4.0 - 1.0).abs() < 0.05, "{step}");
    }
}
