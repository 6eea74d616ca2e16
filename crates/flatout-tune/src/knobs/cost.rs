//! What a step would take with another batch or with other workers. Its own part is a curve over its samples, measured for several
//! sizes; making its batch is a line: beside the step where there are workers, in between where there are none. Evaluating and
//! saving go with the samples.

mod curve;
mod points;

pub use curve::Line;
pub use points::points;

use super::Situation;
use curve::Curve;
use flatout_diagnose::analysis::Device;
use flatout_telemetry::Phase;
use points::{curve, loading, samples_a_step};

/// What handing a batch from process to process costs the training process (PyTorch 2: 0.2 to 0.4 ms).
const HANDOVER_S: f64 = 0.3e-3;
/// What it costs the worker, beside making the batch: copying it to shared memory, and the queue (1 to 1.5 ms for small ones).
const SENDING_S: f64 = 1.2e-3;
/// Workers that let the steps wait longer than this share are the bottleneck.
const STARVED: f64 = 0.05;
/// The part of a CPU's step that is taken to be fixed where only one size was measured.
const GUESSED_FIXED: f64 = 0.15;
const BATCH: &str = "loader.batch_size";

/// Those who do a step's own part on the CPU: its threads, or the one that launches a GPU's work.
#[derive(Clone, Copy, Debug)]
struct Crew {
    threads: f64,
    /// How many CPUs they keep busy with work.
    busy: f64,
    /// How many times longer they take beside the workers there are now.
    disturbed: f64,
    /// Whether their number may be changed along with the workers'.
    may_change: bool,
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
    sending_s: f64,
    usable: f64,
    workers: u64,
    crew: Crew,
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
        let prepare_s = situation
            .analysis
            .train_loader()
            .and_then(|loader| Some(loader.prepare_ms()? / 1e3 / loader.batch_size? as f64 * batch));
        let load_s = match (workers, prepare_s) {
            (0, _) => wait_s,
            (_, Some(prepare_s)) => prepare_s.min(step_s * at_work),
            (_, None) if starved => step_s * at_work,
            (_, None) => own_s,
        };
        let on_gpu = situation.on_gpu();
        let (own, disturbed) = match curve(situation) {
            Some((curve, same)) => {
                let known = curve.at(batch).max(f64::MIN_POSITIVE);
                if on_gpu {
                    // It works on while the steps wait: then its own part is more than what was seen, at most the whole step.
                    (curve.scaled(known.clamp(own_s, own_s + wait_s) / known), 1.0)
                } else if workers > 0 && same {
                    // The curve is that of steps beside which nobody loaded.
                    (curve, (own_s / known).max(1.0))
                } else {
                    (curve.scaled(own_s / known), 1.0)
                }
            }
            None => (Curve::straight(guessed(situation, batch, own_s)?, batch), 1.0),
        };
        let threads = threads(situation).filter(|_| !on_gpu).unwrap_or(1.0);
        let cpus = situation.analysis.host.tree_cpus.unwrap_or(1.0);
        // PyTorch's idle threads spin: how much of the CPU time was work lies between one thread's and all of it.
        let busy = (1.0 + (cpus * step_s - load_s) / own_s.max(f64::MIN_POSITIVE)) / 2.0;
        let crew = Crew {
            threads,
            busy: busy.clamp(1.0, threads),
            disturbed,
            may_change: !on_gpu && situation.allows("threads.torch"),
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
            sending_s: if workers == 0 { SENDING_S } else { 0.0 },
            usable,
            workers,
            crew,
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

    /// Threads for a step's own part beside so many workers: where threads that wait for each other have to share their CPUs, they
    /// all stand still.
    pub fn threads_beside(&self, workers: u64) -> f64 {
        let free = (self.usable - workers as f64).max(1.0);
        if self.crew.may_change && workers > 0 && workers != self.workers {
            self.crew.threads.min(free)
        } else {
            self.crew.threads
        }
    }

    /// The same, where it is another number than now.
    pub fn other_threads(&self, workers: u64) -> Option<u64> {
        let threads = self.threads_beside(workers);
        (threads < self.crew.threads).then_some(threads as u64)
    }

    pub fn step_s(&self, batch: f64, workers: u64) -> f64 {
        self.step_with(batch, workers, self.threads_beside(workers))
    }

    pub fn step_with(&self, batch: f64, workers: u64, threads: f64) -> f64 {
        let crew = self.crew;
        let slower = if threads < crew.threads {
            (crew.busy / threads).max(1.0)
        } else {
            1.0
        };
        let alone_s = self.own.at(batch).max(self.device_s * batch) * slower;
        let load_s = self.load.at(batch);
        let aside_s = self.aside_s * batch;
        if workers == 0 {
            return alone_s + load_s + aside_s;
        }
        let same = workers == self.workers && threads >= crew.threads;
        let own_s = if same { alone_s * crew.disturbed } else { alone_s };
        let made_s = (load_s + self.sending_s) / (workers as f64).min(self.usable);
        let shared_s = (alone_s * crew.busy.min(threads) + load_s) / self.usable;
        let beside_s = (own_s + self.handover_s).max(made_s).max(shared_s);
        let wanting = threads + workers as f64;
        if same || wanting <= self.usable {
            return beside_s + aside_s;
        }
        if threads > 1.0 {
            // Threads that wait for each other stand still with the first of them: as good as nothing is done beside the step.
            return (own_s + self.handover_s + load_s).max(beside_s) + aside_s;
        }
        // All that want a CPU share those there are; the step wants one while it computes.
        let at_once = (workers as f64).min(self.usable) + own_s / beside_s;
        beside_s * (at_once / self.usable).max(1.0) + aside_s
    }

    /// What it is worth to compute a step so many times faster.
    pub fn gain_by_computing(&self, factor: f64) -> f64 {
        let faster = Self {
            own: self.own.clone().scaled(1.0 / factor),
            device_s: self.device_s / factor,
            ..self.clone()
        };
        let now = |cost: &Self| cost.step_with(self.batch, self.workers, self.crew.threads);
        now(self) / now(&faster)
    }

    /// Whether workers make batches at least as fast as steps use them up: then only their unevenness lets the steps wait.
    pub fn is_supplied(&self) -> bool {
        let made_s = self.load.at(self.batch) / (self.workers as f64).min(self.usable).max(1.0);
        made_s < self.step_s - self.wait_s
    }

    /// The factor that other threads are worth.
    pub fn gain_by_threads(&self, threads: f64) -> f64 {
        self.step_with(self.batch, self.workers, self.crew.threads)
            / self.step_with(self.batch, self.workers, threads)
    }

    /// The factor on the rate that was measured. With the same workers, what the costs do not explain stays in its proportion.
    pub fn gain(&self, batch: f64, workers: u64) -> f64 {
        let explained_s = if workers == self.workers {
            self.step_s(self.batch, workers)
        } else {
            self.step_s
        };
        batch / self.step_s(batch, workers) / (self.batch / explained_s)
    }
}

/// PyTorch's threads: those the search has set, else the program's own.
fn threads(situation: &Situation) -> Option<f64> {
    let own = situation.analysis.facts.number("threads.torch");
    situation
        .number("threads.torch")
        .map(|threads| threads as f64)
        .or(own)
        .filter(|threads| *threads >= 1.0)
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
            sending_s: 0.0,
            usable: 8.0,
            workers: 0,
            crew: Crew {
                threads: 1.0,
                busy: 1.0,
                disturbed: 1.0,
                may_change: false,
            },
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
        assert!((wide.step_s(800.0, 7) - 16.8e-3).abs() < 1e-12);
        // More workers than CPUs make no more batches, and the step needs one of them, which they share.
        assert!((cost.step_s(3200.0, 64) - (4.25e-3 + 2e-3 / 8.0)).abs() < 1e-12);
        // A batch of 1600 takes 16 ms to make.
        assert!(
            (cost.step_s(1600.0, 4) - 4e-3).abs() < 1e-12 && (cost.step_s(1400.0, 7) - 2e-3).abs() < 1e-12
        );
    }

    /// Two CPUs, two threads that share a product: a table's MLP, where one worker beside them made it slower, and one beside one
    /// thread faster.
    #[test]
    fn threads_make_room_for_workers() {
        let line = Line {
            fixed: 1e-3,
            slope: 4e-6,
        };
        let load = Line {
            fixed: 0.0,
            slope: 16e-6,
        };
        let mut cost = Cost {
            own: Curve::straight(line, 1000.0),
            device_s: 0.0,
            aside_s: 0.0,
            load,
            handover_s: 0.0,
            sending_s: 0.0,
            usable: 2.0,
            workers: 0,
            crew: Crew {
                threads: 2.0,
                busy: 1.2,
                disturbed: 1.0,
                may_change: true,
            },
            batch: 1000.0,
            step_s: 21e-3,
            wait_s: 16e-3,
        };
        assert_eq!(cost.other_threads(1), Some(1));
        assert!((cost.step_s(1000.0, 1) - 16e-3).abs() < 1e-12);
        cost.crew.may_change = false;
        assert_eq!(cost.other_threads(1), None);
        assert!((cost.step_s(1000.0, 1) - 21e-3).abs() < 1e-12);
        // With a worker already there, the steps are disturbed as they were measured.
        cost.workers = 1;
        cost.crew.disturbed = 2.0;
        assert!(
            (cost.step_s(1000.0, 1) - 16e-3).abs() < 1e-12 && (cost.step_s(1000.0, 0) - 21e-3).abs() < 1e-12
        );
        assert!(!cost.is_supplied() && cost.gain_by_threads(1.0) > 0.99);
        // Of 21 ms these costs explain 16: twice the batch takes twice as long, not less.
        assert!((cost.gain(2000.0, 1) - 1.0).abs() < 0.02);
    }
}
