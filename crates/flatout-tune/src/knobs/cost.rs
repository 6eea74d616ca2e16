//! What a step would take with another batch or with other workers. Its own part is a curve over its samples, measured for several
//! sizes; making its batch is a line: beside the step where there are workers, in between where there are none. Evaluating and
//! saving go with the samples. Where a trial had some steps fed by other workers, what is reckoned meets those; where it asked other
//! workers for batches alone, that is what they supply.

mod along;
mod curve;
mod fed;
mod guess;
mod measured;
mod points;
mod step_threads;
mod supply;

pub use along::COPIED;
pub use curve::Line;
pub use points::points;

use along::Along;
use curve::Curve;
use fed::Feeding;
use step_threads::StepThreads;
use supply::Supply;

/// What handing a batch from process to process costs the training process (PyTorch 2: 0.2 to 0.4 ms).
const HANDOVER_S: f64 = 0.3e-3;
/// Workers that let the steps wait longer than this share are the bottleneck.
const STARVED: f64 = 0.05;
/// An epoch's first batch takes longer than those alone: samples are shuffled and dealt out, and all workers make one at once (on an
/// H200 1.2 to 5 times; where it takes long, about twice).
const FIRST: f64 = 2.0;
/// Steps in an epoch, at least.
const SHORTEST_EPOCH: f64 = 10.0;
/// A step of which less than this part is explained says little about others.
const EXPLAINED: f64 = 0.8;
const BATCH: &str = "loader.batch_size";

/// The cost of a step around the best trial so far.
#[derive(Clone, Debug)]
pub struct Cost {
    own: Curve,
    /// What a sample keeps the whole width of the device busy: a floor for sizes beyond those measured.
    device_s: f64,
    /// What a sample costs in evaluating and saving, and in workers that are started anew each epoch.
    aside_s: f64,
    along: Along,
    /// Making a batch in one process.
    load: Line,
    /// Samples in an epoch, where it is known.
    epoch: Option<f64>,
    handover_s: f64,
    sending_s: f64,
    usable: f64,
    workers: u64,
    step_threads: StepThreads,
    fed: Feeding,
    supply: Supply,
    /// Nothing that was measured tells how a step grows with its samples.
    blind: bool,
    batch: f64,
    step_s: f64,
    wait_s: f64,
}

impl Cost {
    /// Some steps were fed by other workers, but not by so many: then nothing tells their worth as well.
    pub fn is_unknown(&self, workers: u64) -> bool {
        self.is_fed() && !self.fed.knows(workers)
    }

    /// Steps fed by other workers were measured.
    pub fn is_fed(&self) -> bool {
        self.fed.compares()
    }

    /// Nothing that was measured tells how a step grows with its samples.
    pub fn is_guess(&self) -> bool {
        self.blind
    }

    /// Other numbers of threads that some steps were taken with.
    pub fn threads_tried(&self) -> impl Iterator<Item = u64> {
        let others = self
            .step_threads
            .tried
            .iter()
            .filter(|(count, _)| *count != self.step_threads.threads);
        others.map(|(count, _)| *count as u64)
    }

    /// Of the present step, waiting for batches and for workers that are started anew.
    pub fn wait_share(&self) -> f64 {
        (self.wait_s + self.along.restart_s * self.batch) / self.step_s
    }

    /// The part of the step's own time that its samples do not change. Sizes are measured apart from the loop, so the two may differ a
    /// little.
    pub fn fixed_share(&self) -> f64 {
        (self.own.fixed_near(self.batch) / self.step_s).min(1.0)
    }

    /// Threads for a step's own part beside so many workers: where threads that wait for each other have to share their CPUs, they
    /// all stand still.
    pub fn threads_beside(&self, workers: u64) -> f64 {
        let free = (self.usable - workers as f64).max(1.0);
        if self.step_threads.may_change && workers > 0 && workers != self.workers {
            self.step_threads.threads.min(free)
        } else {
            self.step_threads.threads
        }
    }

    /// The same, where it is another number than now.
    pub fn other_threads(&self, workers: u64) -> Option<u64> {
        let threads = self.threads_beside(workers);
        (threads < self.step_threads.threads).then_some(threads as u64)
    }

    pub fn step_s(&self, batch: f64, workers: u64) -> f64 {
        self.step_with(batch, workers, self.threads_beside(workers))
    }

    pub fn step_with(&self, batch: f64, workers: u64, threads: f64) -> f64 {
        let reckoned_s = self.reckoned_s(batch, workers, threads);
        reckoned_s * self.fed.factor(batch, workers, threads)
            + self.aside_s * batch
            + self.first_s(batch, workers)
    }

    /// A step's part of waiting for an epoch's first batch, which one worker makes while all steps wait.
    fn first_s(&self, batch: f64, workers: u64) -> f64 {
        let steps = self.epoch.filter(|_| workers > 0).map(|samples| samples / batch);
        // Fewer are no epoch: a sampler that repeats them, most likely.
        steps
            .filter(|steps| *steps >= SHORTEST_EPOCH)
            .map_or(0.0, |steps| FIRST * self.load.at(batch) / steps)
    }

    /// A step's own part. What keeps the device busy tells of sizes that nobody has measured.
    fn own_s(&self, batch: f64) -> f64 {
        let own_s = self.own.at(batch);
        if batch > self.own.largest() {
            own_s.max(self.device_s * batch)
        } else {
            own_s
        }
    }

    /// A step but for evaluating, saving and the beginnings of epochs, by its parts.
    fn reckoned_s(&self, batch: f64, workers: u64, threads: f64) -> f64 {
        let step_threads = &self.step_threads;
        let alone_s = self.own_s(batch) * step_threads.pace(threads);
        let load_s = self.load.at(batch);
        if workers == 0 {
            return alone_s + load_s;
        }
        let same = workers == self.workers && threads >= step_threads.threads;
        let own_s = if same {
            alone_s * step_threads.disturbed
        } else {
            alone_s
        };
        let handover_s = self.taking_s(batch);
        let shared_s = (alone_s * step_threads.busy.min(threads) + load_s) / self.usable;
        let beside_s = (own_s + handover_s)
            .max(self.made_s(batch, workers))
            .max(shared_s);
        let wanting = threads + workers as f64;
        if same || wanting <= self.usable {
            return beside_s;
        }
        if threads > 1.0 {
            // Threads that wait for each other stand still with the first of them: as good as nothing is done beside the step.
            return (own_s + handover_s + load_s).max(beside_s);
        }
        // All that want a CPU share those there are; the step wants one while it computes.
        let at_once = (workers as f64).min(self.usable) + own_s / beside_s;
        beside_s * (at_once / self.usable).max(1.0)
    }

    /// What it is worth to compute a step so many times faster.
    pub fn gain_by_computing(&self, factor: f64) -> f64 {
        let faster = Self {
            own: self.own.clone().scaled(1.0 / factor),
            device_s: self.device_s / factor,
            ..self.clone()
        };
        let now = |cost: &Self| cost.step_with(self.batch, self.workers, self.step_threads.threads);
        now(self) / now(&faster)
    }

    /// Whether workers make batches at least as fast as steps use them up: then only their unevenness, and taking batches over, lets
    /// the steps wait.
    pub fn is_supplied(&self) -> bool {
        self.made_s(self.batch, self.workers) < self.step_s - self.wait_s - self.aside_s * self.batch
    }

    /// Whether pinning, which a thread of its own does, would take the batches over as well.
    pub fn takes_over(&self) -> bool {
        self.along.copying_s.is_some() && self.workers > 0 && self.is_supplied()
    }

    /// With what goes along with so many workers.
    fn along(&self, workers: u64) -> Self {
        let Along {
            restart_s,
            stays,
            copying_s,
        } = self.along;
        let ends = workers == 0 || stays;
        let copying_s = copying_s.filter(|_| workers > 0);
        Self {
            own: self.own.clone().less(copying_s.unwrap_or(0.0)),
            aside_s: self.aside_s - if ends { restart_s } else { 0.0 },
            handover_s: copying_s.map_or(self.handover_s, |_| self.handover_s.min(HANDOVER_S)),
            ..self.clone()
        }
    }

    /// Seconds from batch to batch, by so many workers.
    fn made_s(&self, batch: f64, workers: u64) -> f64 {
        let reckoned_s =
            || (self.load.at(batch) + self.sending_s) / (workers as f64).min(self.usable).max(1.0);
        self.supply
            .batch_s(batch, workers, self.load)
            .unwrap_or_else(reckoned_s)
    }

    /// What taking a batch over costs the steps: whichever thread does it, it is in the way of what the host does for a step, as far as
    /// that is what a step takes.
    fn taking_s(&self, batch: f64) -> f64 {
        let measured = self.supply.host_s(batch, self.load);
        let share = self.own.fixed_near(batch) / self.own.at(batch).max(f64::MIN_POSITIVE);
        measured.map_or(self.handover_s, |host_s| host_s * share.clamp(0.0, 1.0))
    }

    /// The factor that other threads are worth.
    pub fn gain_by_threads(&self, threads: f64) -> f64 {
        self.now_s(self.workers) / self.step_with(self.batch, self.workers, threads)
    }

    /// The same for steps of as many samples as now.
    pub fn gain_by_workers(&self, workers: u64) -> f64 {
        self.gain(self.batch, workers)
    }

    /// Batches of this size that a step takes.
    pub fn batches_a_step(&self, batch: u64) -> f64 {
        (self.batch / batch.max(1) as f64).round().max(1.0)
    }

    /// The factor on the rate that was measured.
    pub fn gain(&self, batch: f64, workers: u64) -> f64 {
        let along = self.along(workers);
        let (then_s, now_s) = (along.step_s(batch, workers), self.now_s(workers));
        let too_much =
            workers > 0 && now_s > self.step_s && self.supplied_s(self.batch, self.workers) <= self.step_s;
        let then_s = if too_much {
            // What workers supply was not what was too much.
            then_s.max(along.supplied_s(batch, workers) * now_s / self.step_s)
        } else {
            then_s
        };
        batch / then_s / (self.batch / now_s)
    }

    /// A step that only waits for its batch.
    fn supplied_s(&self, batch: f64, workers: u64) -> f64 {
        self.made_s(batch, workers) + self.aside_s * batch + self.first_s(batch, workers)
    }

    /// The present step, to be held against one with so many workers. What the costs do not explain of it stays in its proportion, unless
    /// none or fewer workers would no longer be in each other's way. Steps that take less than what explains them show that it is too
    /// much for these workers, not for others; and what others do on the machine only adds. What is waited for while batches are taken over
    /// need not be.
    fn now_s(&self, workers: u64) -> f64 {
        let explained_s = self.explained_s();
        if workers > 0 && self.takes_over() {
            self.step_s
        } else if workers == self.workers && !self.fed.knows(workers) {
            explained_s
        } else if self.workers > 0 && !self.gives_room(workers) || self.is_fed_with(workers) {
            explained_s.min(self.step_s)
        } else {
            self.step_s
        }
    }

    /// Whether the costs tell what so many workers are worth: not where those there are were in each other's way, and they explain
    /// much less than what that takes.
    pub fn tells(&self, workers: u64) -> bool {
        self.is_fed_with(workers)
            || workers == 0
            || !self.gives_room(workers)
            || self.explained_s() > EXPLAINED * self.step_s
    }

    /// Some steps were fed by so many workers, and some by those there are.
    fn is_fed_with(&self, workers: u64) -> bool {
        self.fed.knows(workers) && self.fed.knows(self.workers)
    }

    /// Fewer workers, where there are more than CPUs now.
    fn gives_room(&self, workers: u64) -> bool {
        let crowded = self.step_threads.threads + self.workers as f64 > self.usable;
        workers == 0 || crowded && workers < self.workers
    }

    fn explained_s(&self) -> f64 {
        self.step_with(self.batch, self.workers, self.step_threads.threads)
    }
}

#[cfg(test)]
mod tests;
