//! The steady part of a run. Warm-up (compilation, first batches, caches filling) would spoil every average.

use flatout_core::histogram::Histogram;
use flatout_core::stats::quantile;
use flatout_core::{Message, message};
use flatout_record::{Phase, RunData, StepTick};
use std::collections::BTreeMap;

/// A tick whose steps take this much longer than the later half's median still warms up.
const WARM_UP_FACTOR: f64 = 1.5;
/// Fewer steps than this say nothing of their pace.
pub const STEPS_NEEDED: u64 = 5;
/// Steps that take seconds each: a few of them are enough.
const LONG_STEPS_NEEDED: u64 = 3;
const LONG_STEPS_S: f64 = 5.0;
/// Importing torch and making the data takes about this long.
const START_UP_S: f64 = 8.0;
/// A shorter steady part says nothing.
pub const SECONDS_NEEDED: f64 = 2.5;

/// The steady part and its totals.
#[derive(Clone, Debug)]
pub struct Window {
    pub start_s: f64,
    pub end_s: f64,
    /// When the first step ended.
    pub first_step_s: f64,
    pub how: Message,
    pub steps: u64,
    pub samples: Option<u64>,
    pub phase_s: BTreeMap<Phase, f64>,
    /// Device time of the ticks in which it was measured, and their length: steps are sampled, so not every tick has it.
    pub busy_s: Option<(f64, f64)>,
    pub step_hist: Histogram,
    pub phase_hist: BTreeMap<Phase, Histogram>,
}

impl Window {
    /// `None` until enough steady steps were seen.
    pub fn find(data: &RunData) -> Option<Self> {
        Self::lasting(data, SECONDS_NEEDED)
    }

    /// The same, of at least so many seconds.
    pub fn lasting(data: &RunData, least_s: f64) -> Option<Self> {
        let window = Self::so_far(data)?;
        let long = window.steps >= LONG_STEPS_NEEDED && window.wall_s() >= LONG_STEPS_S;
        (window.steps >= STEPS_NEEDED && window.wall_s() >= least_s || long).then_some(window)
    }

    /// The steady part, however short.
    pub fn so_far(data: &RunData) -> Option<Self> {
        let ticks = &data.steps;
        let first = ticks.iter().position(|tick| tick.steps > 0)?;
        let last = ticks.iter().rposition(|tick| tick.steps > 0)?;
        let begin = warm_up_end(&ticks[first..=last]) + first;
        let mut window = Self::over(ticks.get(begin..=last)?, ticks[first].t);
        if last + 1 == ticks.len() {
            window.end_s -= after_the_end(ticks.get(begin..last).unwrap_or_default(), &ticks[last]);
        }
        Some(window)
    }

    /// The part of a run in which no step was seen: a loop without a torch optimizer, or without torch. Only samples know it.
    pub fn without_steps(data: &RunData) -> Option<Self> {
        let end_s = data.stacks.last()?.t;
        let start_s = START_UP_S.min(end_s / 2.0);
        let mut window = Self::over(&[], start_s);
        (window.start_s, window.end_s) = (start_s, end_s);
        window.how = message!(
            en: "the part after startup; no training step was seen",
            zh: "启动之后的部分；没有看到训练步骤"
        );
        (window.wall_s() >= SECONDS_NEEDED).then_some(window)
    }

    fn over(ticks: &[StepTick], first_step_s: f64) -> Self {
        let start_s = ticks.first().map_or(0.0, |tick| (tick.t - tick.dt).max(0.0));
        let mut window = Self {
            start_s,
            end_s: ticks.last().map_or(0.0, |tick| tick.t),
            first_step_s,
            how: message!(
                en: "the steady part: from {:.0} s, when step times had settled",
                zh: "稳定阶段：{:.0} 秒之后，单步耗时已稳定",
                start_s
            ),
            steps: 0,
            samples: None,
            phase_s: BTreeMap::new(),
            busy_s: None,
            step_hist: Histogram::default(),
            phase_hist: BTreeMap::new(),
        };
        for tick in ticks {
            window.add(tick);
        }
        window
    }

    fn add(&mut self, tick: &StepTick) {
        self.steps += tick.steps;
        if let Some(samples) = tick.samples {
            *self.samples.get_or_insert(0) += samples;
        }
        if let Some(busy_ms) = tick.busy_ms {
            let (busy_s, of_s) = self.busy_s.get_or_insert((0.0, 0.0));
            *busy_s += busy_ms / 1e3;
            *of_s += tick.dt;
        }
        for (phase, time) in &tick.phases {
            *self.phase_s.entry(*phase).or_default() += time.ms / 1e3;
            self.phase_hist.entry(*phase).or_default().merge(&time.hist);
        }
        self.step_hist.merge(&tick.step_hist);
    }

    pub fn range(&self) -> (f64, f64) {
        (self.start_s, self.end_s)
    }

    /// Wall time. Spans that straddle an edge are charged to the tick they end in, so the phases may exceed the
    /// ticks by one span: the larger of both keeps every share below 1.
    pub fn wall_s(&self) -> f64 {
        let phases: f64 = self.phase_s.values().sum();
        (self.end_s - self.start_s).max(phases)
    }

    pub fn seconds(&self, phase: Phase) -> f64 {
        self.phase_s.get(&phase).copied().unwrap_or(0.0)
    }

    pub fn share(&self, phase: Phase) -> f64 {
        ratio(self.seconds(phase), self.wall_s()).unwrap_or(0.0)
    }

    /// Wall time in no phase: what the probe could not see.
    pub fn unexplained_s(&self) -> f64 {
        (self.wall_s() - self.phase_s.values().sum::<f64>()).max(0.0)
    }

    pub fn busy_share(&self) -> Option<f64> {
        let (busy_s, of_s) = self.busy_s?;
        ratio(busy_s, of_s).map(|share| share.min(1.0))
    }

    /// Milliseconds of a phase a step.
    pub fn ms_per_step(&self, phase: Phase) -> f64 {
        ratio(self.seconds(phase) * 1e3, self.steps as f64).unwrap_or(0.0)
    }

    /// Wall milliseconds a step.
    pub fn step_ms(&self) -> f64 {
        ratio(self.wall_s() * 1e3, self.steps as f64).unwrap_or(f64::INFINITY)
    }

    pub fn samples_per_s(&self) -> Option<f64> {
        ratio(self.samples? as f64, self.wall_s())
    }

    pub fn samples_per_step(&self) -> Option<f64> {
        ratio(self.samples? as f64, self.steps as f64)
    }
}

/// The part of a run's last tick in which the program had ended: less of it belongs to a phase than of the ticks before.
fn after_the_end(before: &[StepTick], last: &StepTick) -> f64 {
    let charged = |tick: &StepTick| tick.phases.values().map(|time| time.ms / 1e3).sum::<f64>();
    let length: f64 = before.iter().map(|tick| tick.dt).sum();
    let usual = ratio(before.iter().map(charged).sum(), length).map_or(1.0, |share| share.min(1.0));
    (last.dt * usual - charged(last)).clamp(0.0, last.dt)
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// The index of the first steady tick. The tick of the first step is never steady: it began before the step. After it,
/// ticks are passed over while their steps take [`WARM_UP_FACTOR`] × as long as in the later half; at most half of them.
fn warm_up_end(ticks: &[StepTick]) -> usize {
    if ticks.len() < 3 {
        return 1;
    }
    let per_step = |tick: &StepTick| (tick.steps > 0).then(|| tick.dt / tick.steps as f64);
    let mut later: Vec<f64> = ticks[ticks.len() / 2..].iter().filter_map(per_step).collect();
    later.sort_by(f64::total_cmp);
    let usual = quantile(&later, 0.5);
    let half = ticks.len() / 2;
    let slow = |tick: &StepTick| per_step(tick).is_none_or(|seconds| seconds > usual * WARM_UP_FACTOR);
    let warming = ticks[1..half.max(1)].iter().take_while(|tick| slow(tick)).count();
    // All of the first half slow is no warm-up but how the run goes: an evaluation each tick, say.
    if warming + 1 >= half { 1 } else { warming + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Build;

    #[test]
    fn the_slow_beginning_is_left_out() {
        let mut data = Build::steady(20).done();
        for tick in &mut data.steps[..5] {
            tick.steps = 1;
        }
        let window = Window::find(&data).unwrap();
        assert!(
            (window.start_s - data.steps[4].t).abs() < 1e-9,
            "{}",
            window.start_s
        );
        assert_eq!(
            window.steps,
            data.steps[5..].iter().map(|tick| tick.steps).sum::<u64>()
        );
    }

    #[test]
    fn shares_and_the_rest_make_one() {
        let data = Build::steady(20)
            .phase(Phase::Data, 0.5)
            .phase(Phase::Compute, 0.3)
            .done();
        let window = Window::find(&data).unwrap();
        let known: f64 = Phase::ALL.iter().map(|phase| window.share(*phase)).sum();
        assert!((known + window.unexplained_s() / window.wall_s() - 1.0).abs() < 1e-9);
        assert!((window.share(Phase::Data) - 0.5).abs() < 1e-6);
    }

    #[test]
    fn ends_with_the_program() {
        let mut data = Build::steady(20).phase(Phase::Compute, 1.0).done();
        let last = data.steps.last_mut().unwrap();
        last.phases.entry(Phase::Compute).or_default().ms *= 0.25;
        let window = Window::find(&data).unwrap();
        assert!(window.unexplained_s() < 1e-6, "{}", window.unexplained_s());
    }

    #[test]
    fn ticks_without_a_sampled_step_are_not_idle() {
        let mut data = Build::steady(20).busy(0.9).done();
        for tick in data.steps.iter_mut().step_by(2) {
            tick.busy_ms = None;
        }
        let share = Window::find(&data).unwrap().busy_share().unwrap();
        assert!((share - 0.9).abs() < 1e-9, "{share}");
    }

    #[test]
    fn what_came_before_the_first_step_is_never_judged() {
        let mut data = Build::steady(2).done();
        data.steps[0].phases.entry(Phase::Other).or_default().ms = 20_000.0;
        assert!(Window::find(&data).is_none());
    }

    #[test]
    fn a_short_run_that_was_measured_on_purpose_is_enough() {
        let data = Build::steady(3).done();
        assert!(Window::find(&data).is_none());
        let window = Window::lasting(&data, 1.0).unwrap();
        assert!(window.wall_s() < SECONDS_NEEDED && window.steps >= STEPS_NEEDED);
        assert!(Window::lasting(&Build::steady(1).done(), 1.0).is_none());
    }

    #[test]
    fn too_few_steps_make_no_window() {
        assert!(Window::find(&RunData::default()).is_none());
        assert!(Window::find(&Build::steady(2).done()).is_none());
    }
}
