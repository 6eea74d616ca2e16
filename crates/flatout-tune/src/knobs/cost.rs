//! What a step would take with another batch or with other workers. Its own part is a curve over its samples, measured for several
//! sizes; making its batch is a line: beside the step where there are workers, in between where there are none. Evaluating and
//! saving go with the samples.

mod curve;

pub use curve::Line;

use super::{Done, Situation};
use crate::trial::{Measurement, Outcome, Settings};
use curve::Curve;
use flatout_diagnose::analysis::Device;
use flatout_telemetry::Phase;

/// What handing a batch from process to process costs the training process (PyTorch 2: 0.2 to 0.4 ms).
const HANDOVER_S: f64 = 0.3e-3;
/// Workers that let the steps wait longer than this share are the bottleneck.
const STARVED: f64 = 0.05;
/// The part of a CPU's step that is taken to be fixed where only one size was measured.
const GUESSED_FIXED: f64 = 0.15;
const BATCH: &str = "loader.batch_size";

/// One measured size: samples, a step's own seconds where nothing hides a part of them, memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub batch: f64,
    pub own_s: Option<f64>,
    pub memory: Option<f64>,
}

/// The cost of a step around the best trial so far.
#[derive(Clone, Debug)]
pub struct Cost {
    own: Curve,
    /// What a sample keeps the whole width of the device busy: a floor for sizes beyond those measured.
    device_s: f64,
    /// What a sample costs in evaluating and saving.
    aside_s: f64,
    /// Making a batch in one process.
    load: Line,
    handover_s: f64,
    /// Seconds of a step that its CPU work would take spread over all usable CPUs, as a share of own part and loading.
    spread: f64,
    usable: f64,
    batch: f64,
    step_s: f64,
    wait_s: f64,
}

impl Cost {
    /// `None` when the program does not say how many samples a step has.
    pub fn of(situation: &Situation) -> Option<Self> {
        let best = situation.best;
        let batch = samples_a_step(best).or_else(|| situation.batch().map(|batch| batch as f64))?;
        let steps = best.steps.max(1) as f64;
        let step_s = best.seconds / steps;
        let waited = best
            .wait_s
            .unwrap_or_else(|| situation.analysis.share(Phase::Data) * best.seconds);
        let aside = best.aside_s.unwrap_or_else(|| {
            let analysis = situation.analysis;
            (analysis.share(Phase::Eval) + analysis.share(Phase::Checkpoint)) * best.seconds
        });
        let aside_s = (aside / steps).min(step_s);
        let wait_s = (waited / steps).min(step_s - aside_s);
        let own_s = step_s - wait_s - aside_s;
        let usable = situation.machine.cpus.count().max(1) as f64;
        let workers = situation.workers();
        // More workers than CPUs make no more batches.
        let at_work = (workers as f64).min(usable);
        let starved = wait_s > STARVED * step_s;
        let load_s = match (workers, starved) {
            (0, _) => wait_s,
            (_, true) => step_s * at_work,
            (_, false) => situation
                .analysis
                .train_loader()
                .and_then(|loader| Some(loader.prepare_ms()? / 1e3 / loader.batch_size? as f64 * batch))
                .map_or(own_s, |prepare_s| prepare_s.min(step_s * at_work)),
        };
        let cpus = situation.analysis.host.tree_cpus.unwrap_or(1.0);
        // PyTorch's idle threads spin: how much of the CPU time was work lies between one thread's and all of it.
        let working = (cpus.min(1.0) + cpus) / 2.0;
        let all_s = own_s + load_s;
        let own = match curve(situation) {
            Some(curve) => {
                // A GPU works on while the steps wait: then its own part is more than what was seen, at most the whole step.
                let hidden_s = if situation.on_gpu() { wait_s } else { 0.0 };
                let known = curve.at(batch).max(f64::MIN_POSITIVE);
                curve.scaled(known.clamp(own_s, own_s + hidden_s) / known)
            }
            None => Curve::straight(guessed(situation, batch, own_s)?, batch),
        };
        Some(Self {
            own,
            device_s: device_s(situation).unwrap_or(0.0),
            aside_s: aside_s / batch,
            load: loading(situation)
                .unwrap_or(Line {
                    fixed: 0.0,
                    slope: 1.0,
                })
                .meeting(batch, load_s),
            handover_s: if workers > 0 && !starved {
                wait_s
            } else {
                HANDOVER_S
            },
            spread: (working * step_s / usable / all_s.max(f64::MIN_POSITIVE)).min(1.0),
            usable,
            batch,
            step_s,
            wait_s,
        })
    }

    pub fn wait_share(&self) -> f64 {
        self.wait_s / self.step_s
    }

    /// The part of the step's own time that its samples do not change.
    pub fn fixed_share(&self) -> f64 {
        self.own.fixed_near(self.batch) / self.step_s
    }

    pub fn step_s(&self, batch: f64, workers: u64) -> f64 {
        let own_s = self.own.at(batch).max(self.device_s * batch);
        let load_s = self.load.at(batch);
        let aside_s = self.aside_s * batch;
        if workers == 0 {
            return own_s + load_s + aside_s;
        }
        let made_s = load_s / (workers as f64).min(self.usable);
        (own_s + self.handover_s)
            .max(made_s)
            .max((own_s + load_s) * self.spread)
            + aside_s
    }

    /// The factor on the rate that was measured.
    pub fn gain(&self, batch: f64, workers: u64) -> f64 {
        batch / self.step_s(batch, workers) / (self.batch / self.step_s)
    }
}

/// Only what all multiprocessors do grows with the samples: small kernels take as long for more of them.
fn device_s(situation: &Situation) -> Option<f64> {
    let analysis = situation.analysis;
    let width = analysis
        .busiest_gpu()
        .filter(|_| analysis.device() == Device::Cuda)?
        .sm_activity?;
    let window = analysis.window.as_ref()?;
    Some(width * window.step_ms() / 1e3 / window.samples_per_step().filter(|samples| *samples > 0.0)?)
}

fn samples_a_step(measured: &Measurement) -> Option<f64> {
    Some(measured.samples? as f64 / measured.steps.max(1) as f64).filter(|samples| *samples > 0.0)
}

/// How making a batch grows with its samples, from the two sizes that were made in between.
fn loading(situation: &Situation) -> Option<Line> {
    situation.trials.iter().find_map(|done| {
        let Outcome::Measured(measured) = &done.outcome else {
            return None;
        };
        let mut made: Vec<(f64, f64)> = measured
            .sizes
            .iter()
            .filter_map(|size| Some((size.samples as f64, size.wait_s?)))
            .collect();
        made.sort_by(|a, b| a.0.total_cmp(&b.0));
        let [small, .., large] = made.as_slice() else {
            return None;
        };
        Line::through(*small, *large)
    })
}

/// All sizes measured with what the best has, whatever the loader; the last measurement of each, by size.
pub fn points(situation: &Situation) -> Vec<Point> {
    points_with(situation, &computing(situation.settings))
}

/// Settings that change what a step computes; the loader only feeds it.
fn computing(settings: &Settings) -> Settings {
    let mut left = settings.clone();
    left.0.retain(|key, _| !key.starts_with("loader."));
    left
}

fn points_with(situation: &Situation, others: &Settings) -> Vec<Point> {
    let mut all: Vec<Point> = Vec::new();
    let same = |done: &&Done| computing(&done.settings) == *others;
    for done in situation.trials.iter().rev().filter(same) {
        for point in sizes(done, situation.on_gpu()) {
            let near = |known: &Point| (known.batch / point.batch - 1.0).abs() < 0.02;
            if !all.iter().any(near) {
                all.push(point);
            }
        }
    }
    all.sort_by(|a, b| a.batch.total_cmp(&b.batch));
    all
}

/// The sizes of one trial: those taken for their own sake, and its batch.
fn sizes(done: &Done, on_gpu: bool) -> Vec<Point> {
    let Outcome::Measured(measured) = &done.outcome else {
        return Vec::new();
    };
    let taken = measured.sizes.iter().map(|size| Point {
        batch: size.samples.max(1) as f64,
        own_s: Some(size.own_s),
        memory: size.memory_bytes.map(|bytes| bytes as f64),
    });
    let asked = done
        .settings
        .get(BATCH)
        .and_then(|value| value.parse::<f64>().ok());
    let wait_s = measured.wait_s.unwrap_or(0.0);
    let hidden = on_gpu && wait_s > STARVED * measured.seconds;
    let own_s = (measured.seconds - wait_s - measured.aside_s.unwrap_or(0.0)) / measured.steps.max(1) as f64;
    let whole = samples_a_step(measured).or(asked).filter(|_| !measured.cut);
    let whole = whole.map(|batch| Point {
        batch,
        own_s: (!hidden).then_some(own_s),
        memory: measured.memory_bytes.map(|bytes| bytes as f64),
    });
    taken.chain(whole).collect()
}

/// Through the sizes measured with what the best has; without two, with what any earlier trial had: the shape is much the same, and
/// the best gives the height.
fn curve(situation: &Situation) -> Option<Curve> {
    let best = computing(situation.settings);
    let earlier = situation
        .trials
        .iter()
        .rev()
        .map(|done| computing(&done.settings));
    std::iter::once(best).chain(earlier).find_map(|others| {
        let points = points_with(situation, &others);
        Curve::through(
            points
                .iter()
                .filter_map(|point| Some((point.batch, point.own_s?))),
        )
    })
}

/// From the one size there is: on a GPU what the device works at its full width grows with the samples; on the CPU the rule about
/// small batches knows, else it is a modest guess.
fn guessed(situation: &Situation, batch: f64, own_s: f64) -> Option<Line> {
    let analysis = situation.analysis;
    let share = match analysis.device() {
        Device::Cuda => {
            let busy = analysis.device_busy_share()?;
            let wide = analysis.busiest_gpu().and_then(|gpu| gpu.sm_activity);
            let step_s = situation.best.seconds / situation.best.steps.max(1) as f64;
            1.0 - wide.map_or(busy, |wide| wide.min(busy)) * step_s / own_s
        }
        _ => match situation.expected(&[BATCH]) {
            // The rule's gain is for four times the batch: 1 - 1/gain of the time goes, which is 3/4 of the fixed part.
            Some(gain) => (1.0 - 1.0 / gain) * 4.0 / 3.0,
            None => GUESSED_FIXED,
        },
    };
    let fixed = share.clamp(0.0, 0.99) * own_s;
    Some(Line {
        fixed,
        slope: (own_s - fixed) / batch,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_hide_the_loading_until_they_are_too_few() {
        let cost = Cost {
            own: Curve::straight(
                Line {
                    fixed: 2e-3,
                    slope: 0.0,
                },
                100.0,
            ),
            device_s: 0.0,
            aside_s: 0.0,
            load: Line {
                fixed: 0.0,
                slope: 10e-6,
            },
            handover_s: 0.0,
            spread: 0.1,
            usable: 8.0,
            batch: 100.0,
            step_s: 3e-3,
            wait_s: 1e-3,
        };
        assert!((cost.gain(100.0, 0) - 1.0).abs() < 1e-12);
        assert!((cost.gain(100.0, 1) - 1.5).abs() < 1e-12);
        let wide = Cost {
            device_s: 20e-6,
            aside_s: 1e-6,
            ..cost.clone()
        };
        assert!((wide.step_s(800.0, 8) - 16.8e-3).abs() < 1e-12);
        // More workers than CPUs make no more batches.
        assert!((cost.step_s(3200.0, 64) - 4e-3).abs() < 1e-12);
        // A batch of 1600 takes 16 ms to make: eight workers do it while a step of 2 ms runs.
        assert!(
            (cost.step_s(1600.0, 4) - 4e-3).abs() < 1e-12 && (cost.step_s(1600.0, 8) - 2e-3).abs() < 1e-12
        );
    }
}
