//! What the trainer and the threads share: free memories, batches being filled, batches that wait to be taken.

use super::controller::Controller;
use crate::batch::{BatchMemory, Draw, Filled, SampleSource};
use crate::order::{EpochOrder, Position};
use crate::{DataError, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// A batch that is about to be filled.
pub struct Job<M> {
    pub filled: Filled<M>,
    pub number: u64,
}

pub struct State<M> {
    pub free: Vec<Filled<M>>,
    /// Batch `n` waits at `n % ready.len()`.
    pub ready: Vec<Option<Filled<M>>>,
    /// The next batch to fill, and its number.
    pub fill_position: Position,
    pub fill_number: u64,
    pub take_number: u64,
    pub controller: Controller,
    pub error: Option<DataError>,
    pub stop: bool,
    /// Threads that sleep for want of a free memory.
    pub idle: usize,
    pub trainer_sleeps: bool,
    /// What filling a batch takes, smoothed.
    pub fill_ns: u64,
}

/// Below this the trainer fills a batch itself rather than sleep until a thread has done it: to sleep and be woken takes some 50 µs.
const CHEAP_NS: u64 = 500_000;

impl<M> State<M> {
    pub fn begin(&mut self, order: &EpochOrder) -> Option<Job<M>> {
        let mut filled = self.free.pop()?;
        filled.position = self.fill_position;
        self.fill_position = order.after(filled.position);
        self.fill_number += 1;
        Some(Job {
            filled,
            number: self.fill_number - 1,
        })
    }

    pub fn finish(&mut self, job: Job<M>, result: Result<()>) {
        match result {
            Ok(()) => {
                let time = job.filled.time;
                self.fill_ns = (3 * self.fill_ns + time.fetch_ns + time.prepare_ns) / 4;
                let slot = (job.number % self.ready.len() as u64) as usize;
                self.ready[slot] = Some(job.filled);
            }
            Err(error) => {
                self.error.get_or_insert(error);
            }
        }
    }

    pub fn is_cheap(&self) -> bool {
        self.fill_ns < CHEAP_NS
    }

    /// Whether a sleeping thread is worth waking: there are batches for a while, or someone waits for the first.
    pub fn wakes_one(&self) -> bool {
        let several = self.free.len() * 2 >= self.ready.len();
        self.idle > 0 && !self.free.is_empty() && (several || self.trainer_sleeps)
    }
}

pub struct Shared<M> {
    pub state: Mutex<State<M>>,
    /// Free memories, or the end.
    pub work: Condvar,
    /// A larger number of threads, or the end.
    pub parked: Condvar,
    /// A batch became ready, or failed.
    pub done: Condvar,
    pub source: Arc<dyn SampleSource>,
    pub order: EpochOrder,
}

impl<M> Shared<M> {
    pub fn lock(&self) -> MutexGuard<'_, State<M>> {
        self.state.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    pub fn wake_all(&self) {
        self.work.notify_all();
        self.parked.notify_all();
    }
}

/// What a thread does from its start to the end.
pub fn work<M: BatchMemory>(shared: &Shared<M>, thread: usize) {
    let mut state = shared.lock();
    loop {
        if state.stop || state.error.is_some() {
            return;
        }
        if thread >= state.controller.threads() {
            let woken = shared.parked.wait(state);
            state = woken.unwrap_or_else(|poison| poison.into_inner());
            continue;
        }
        let Some(mut job) = state.begin(&shared.order) else {
            state.idle += 1;
            let woken = shared.work.wait(state);
            state = woken.unwrap_or_else(|poison| poison.into_inner());
            state.idle -= 1;
            continue;
        };
        drop(state);
        let result = fill(shared, &mut job.filled);
        state = shared.lock();
        if result.is_err() {
            shared.wake_all();
        }
        state.finish(job, result);
        if state.trainer_sleeps {
            shared.done.notify_one();
        }
    }
}

pub fn fill<M: BatchMemory>(shared: &Shared<M>, filled: &mut Filled<M>) -> Result<()> {
    filled.samples = shared.order.fill(filled.position, &mut filled.sample_ids);
    let draw = Draw {
        seed: shared.order.seed(),
        epoch: filled.position.epoch,
    };
    let ids = &filled.sample_ids[..filled.samples];
    // A panic in here would leave the trainer waiting for ever for this batch.
    let result = catch_unwind(AssertUnwindSafe(|| {
        shared
            .source
            .fill(ids, draw, filled.memory.slices(filled.samples))
    }));
    filled.time = result.unwrap_or_else(|_| Err(failed_thread()))?;
    Ok(())
}

fn failed_thread() -> DataError {
    DataError::Setting(flatout_core::message!(
        en: "a data thread failed while filling a batch",
        zh: "数据线程在填充 batch 时出错"
    ))
}
