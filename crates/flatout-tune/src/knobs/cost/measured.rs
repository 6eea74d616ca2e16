//! The costs around the best trial so far, from what it and the trials before it measured.

use super::along::Along;
use super::curve::{Curve, Line};
use super::fed::Feeding;
use super::guess::{device_s, guessed};
use super::points::{curve, loading};
use super::step_threads::{StepThreads, threads, tried};
use super::supply::Supply;
use super::{Cost, FIRST, HANDOVER_S, STARVED};
use crate::knobs::Situation;
use flatout_record::Phase;

/// What it costs a worker, beside making a batch: copying it to shared memory, and the queue (1 to 1.5 ms for small ones).
pub const SENDING_S: f64 = 1.2e-3;

impl Cost {
    /// `None` when the program does not say how many samples a step has.
    pub fn of(situation: &Situation) -> Option<Self> {
        let best = situation.best;
        let batch = best
            .samples_a_step()
            .or_else(|| situation.batch().map(|batch| batch as f64))?;
        let steps = best.steps.max(1) as f64;
        let step_s = best.seconds / steps;
        let waited = best
            .wait_s
            .unwrap_or_else(|| situation.analysis.share(Phase::Data) * best.seconds);
        let aside = best.aside_s.unwrap_or_else(|| {
            let analysis = situation.analysis;
            (analysis.share(Phase::Eval) + analysis.share(Phase::Checkpoint)) * best.seconds
        });
        let mut along = Along::of(situation);
        // It was waited for, and goes with the samples all the same.
        along.restart_s = along.restart_s.min(waited / steps / batch);
        let restart_s = along.restart_s * batch;
        let aside_s = (aside / steps + restart_s).min(step_s);
        let wait_s = (waited / steps - restart_s).clamp(0.0, step_s - aside_s);
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
        let on_gpu = situation.on_gpu();
        let line = loading(situation);
        // Workers that share their CPUs with the steps take longer than the work: what it takes with nobody beside was measured.
        let alone_s = line.filter(|_| !on_gpu && workers > 0).map(|line| line.at(batch));
        let load_s = match (workers, alone_s.or(prepare_s)) {
            (0, _) => wait_s,
            (_, Some(prepare_s)) => prepare_s.min(step_s * at_work),
            (_, None) if starved => step_s * at_work,
            (_, None) => own_s,
        };
        let supply = Supply::of(situation);
        let mut blind = false;
        let (own, disturbed) = match curve(situation) {
            Some((curve, same)) => {
                let known = curve.at(batch).max(f64::MIN_POSITIVE);
                if on_gpu && workers > 0 && same && supply.is_known() {
                    // What the loop takes beyond that is taking batches over.
                    (curve, 1.0)
                } else if on_gpu {
                    // It works on while the steps wait: then its own part is more than what was seen, at most the whole step.
                    (curve.scaled(known.clamp(own_s, own_s + wait_s) / known), 1.0)
                } else if workers > 0 && same {
                    // The curve is that of steps beside which nobody loaded.
                    (curve, (own_s / known).max(1.0))
                } else {
                    (curve.scaled(own_s / known), 1.0)
                }
            }
            None => {
                let guess = guessed(situation, batch, own_s)?;
                blind = guess.blind;
                (Curve::straight(guess.line, batch), 1.0)
            }
        };
        let threads = threads(situation).filter(|_| !on_gpu).unwrap_or(1.0);
        let cpus = situation.analysis.host.tree_cpus.unwrap_or(1.0);
        // PyTorch's idle threads spin: how much of the CPU time was work lies between one thread's and all of it.
        let busy = (1.0 + (cpus * step_s - load_s) / own_s.max(f64::MIN_POSITIVE)) / 2.0;
        let step_threads = StepThreads {
            threads,
            busy: busy.clamp(1.0, threads),
            disturbed,
            may_change: !on_gpu && situation.allows("threads.torch"),
            tried: if on_gpu { Vec::new() } else { tried(situation) },
        };
        let mut cost = Self {
            own,
            device_s: device_s(situation).unwrap_or(0.0),
            aside_s: aside_s / batch,
            along,
            load: line
                .unwrap_or(Line {
                    fixed: 0.0,
                    slope: 1.0,
                })
                .meeting(batch, load_s),
            epoch: situation.data_length().map(|samples| samples as f64),
            handover_s: if workers > 0 && !starved {
                wait_s
            } else {
                HANDOVER_S
            },
            // What workers were seen to take holds it already.
            sending_s: if workers == 0 || alone_s.is_some() {
                SENDING_S
            } else {
                0.0
            },
            usable,
            workers,
            step_threads,
            fed: Feeding::default(),
            supply,
            blind,
            batch,
            step_s,
            wait_s,
        };
        let first_s = cost.first_s(batch, workers);
        if first_s / FIRST > waited / steps {
            // As long as one takes alone would have been seen: whatever its samples are, they do not end.
            cost.epoch = None;
        } else if workers > 0 && !starved {
            cost.handover_s = (wait_s - first_s).max(0.0);
        }
        cost.fed = Feeding::of(situation, |one| {
            cost.reckoned_s(one.samples as f64, one.workers, one.threads as f64)
        });
        Some(cost)
    }
}
