//! Decides how many threads fill batches, from what the trainer feels: it waits (add one), or the queue is always full (park
//! one). Pure arithmetic over observations, so that it can be tested without threads.

use std::time::Instant;

/// Batches looked at before each decision.
const WINDOW_BATCHES: u64 = 32;
/// Waiting for more than this share of the time is worth another thread: well below the 5% at which tools call a job input-bound.
const WAIT_SHARE: f64 = 0.02;
/// Changes kept for the report.
const CHANGES_KEPT: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The trainer waited for batches.
    TrainerWaited,
    /// The queue was full at every batch.
    QueueFull,
}

/// One decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Batches delivered before it.
    pub batch: u64,
    pub threads: usize,
    pub reason: Reason,
}

/// What the trainer felt when it took a batch.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// Batches delivered before, with this one.
    pub batch: u64,
    pub wait_ns: u64,
    /// Whether all others were ready, too.
    pub queue_full: bool,
    /// Whether the trainer filled batches while it waited.
    pub helped: bool,
}

#[derive(Debug)]
pub struct Controller {
    threads: usize,
    maximum: usize,
    window_started: Option<Instant>,
    batches: u64,
    waited_ns: u64,
    full: u64,
    helped: u64,
    /// Windows to sit still; doubled whenever parking a thread made the trainer wait.
    patience_windows: u64,
    calm_windows: u64,
    parked_last: bool,
    changes: Vec<Change>,
}

impl Controller {
    pub fn new(threads: usize, maximum: usize) -> Self {
        Self {
            threads,
            maximum,
            window_started: None,
            batches: 0,
            waited_ns: 0,
            full: 0,
            helped: 0,
            patience_windows: 4,
            calm_windows: 0,
            parked_last: false,
            changes: Vec::with_capacity(CHANGES_KEPT),
        }
    }

    pub fn threads(&self) -> usize {
        self.threads
    }

    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// One batch was taken.
    pub fn observe(&mut self, seen: Seen, now: Instant) {
        let Seen { batch, wait_ns, .. } = seen;
        let started = *self.window_started.get_or_insert(now);
        self.batches += 1;
        self.waited_ns += wait_ns;
        self.full += u64::from(seen.queue_full);
        self.helped += u64::from(seen.helped);
        if self.batches < WINDOW_BATCHES {
            return;
        }
        let elapsed_ns = now.duration_since(started).as_nanos() as u64 + wait_ns;
        self.decide(batch, elapsed_ns.max(1));
        (self.batches, self.waited_ns, self.full, self.helped) = (0, 0, 0, 0);
        self.window_started = Some(now);
    }

    fn decide(&mut self, batch: u64, elapsed_ns: u64) {
        let waiting = self.waited_ns as f64 / elapsed_ns as f64 > WAIT_SHARE;
        // A trainer that fills batches itself takes a CPU for it.
        let trainer = usize::from(self.helped * 4 > self.batches);
        if waiting && self.threads + trainer < self.maximum {
            if self.parked_last {
                self.patience_windows = (self.patience_windows * 2).min(1 << 20);
            }
            self.change(batch, self.threads + 1, Reason::TrainerWaited);
        } else if self.full == self.batches && self.threads > 1 {
            self.calm_windows += 1;
            if self.calm_windows >= self.patience_windows {
                self.change(batch, self.threads - 1, Reason::QueueFull);
            }
        } else {
            self.calm_windows = 0;
        }
    }

    fn change(&mut self, batch: u64, threads: usize, reason: Reason) {
        self.parked_last = threads < self.threads;
        self.threads = threads;
        self.calm_windows = 0;
        if self.changes.len() < CHANGES_KEPT {
            self.changes.push(Change {
                batch,
                threads,
                reason,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn drive(controller: &mut Controller, windows: u64, wait_ns: u64, full: bool) {
        let mut now = Instant::now();
        for batch in 0..windows * WINDOW_BATCHES {
            now += Duration::from_millis(1);
            let seen = Seen {
                batch,
                wait_ns,
                queue_full: full,
                helped: false,
            };
            controller.observe(seen, now);
        }
    }

    #[test]
    fn adds_while_the_trainer_waits_up_to_the_cpus() {
        let mut controller = Controller::new(1, 4);
        drive(&mut controller, 2, 500_000, false);
        assert_eq!(controller.threads(), 3);
        drive(&mut controller, 10, 500_000, false);
        assert_eq!(controller.threads(), 4);
        assert_eq!(controller.changes().len(), 3);
        assert_eq!(controller.changes()[0].reason, Reason::TrainerWaited);
    }

    #[test]
    fn parks_when_full_and_learns_from_it() {
        let mut controller = Controller::new(3, 4);
        drive(&mut controller, 4, 0, true);
        assert_eq!(controller.threads(), 2);
        drive(&mut controller, 1, 500_000, false);
        assert_eq!(controller.threads(), 3);
        drive(&mut controller, 7, 0, true);
        assert_eq!(controller.threads(), 3, "twice as patient after a mistake");
        drive(&mut controller, 1, 0, true);
        assert_eq!(controller.threads(), 2);
    }

    #[test]
    fn does_nothing_when_balanced() {
        let mut controller = Controller::new(2, 4);
        drive(&mut controller, 50, 1_000, false);
        assert_eq!(controller.threads(), 2);
        assert!(controller.changes().is_empty());
    }
}
