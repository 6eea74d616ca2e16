//! Batches ahead of the trainer: threads fill lent memory, the trainer takes batches in order and gives the memory back.
//!
//! A batch is filled by one thread. A thread takes a batch number and a free memory in one step, so batches come out in order and
//! there is always a thread on the one the trainer waits for. No free memory means that the threads wait: that is the back-pressure, and
//! the number of memories is the memory budget. Nothing is allocated once the first round is done.
//!
//! Where filling is so cheap that sleeping and waking would cost as much, a trainer that would have to wait fills a batch itself,
//! and threads are woken for several batches at once.

pub mod controller;
mod queue;

use crate::batch::{BatchMemory, Filled, SampleShape, SampleSource};
use crate::order::{EpochOrder, Position};
use crate::{DataError, Result};
use controller::{Change, Controller, Seen};
use queue::{Shared, State, fill, work};
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

/// How many threads fill batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Threads {
    /// The controller decides, up to the usable CPUs.
    #[default]
    Auto,
    /// Exactly so many (at least 1).
    Fixed(usize),
}

pub struct Prefetcher<M: BatchMemory + 'static> {
    shared: Arc<Shared<M>>,
    threads: Vec<JoinHandle<()>>,
    maximum_threads: usize,
    /// Whether the trainer fills batches, too.
    helps: bool,
}

impl<M: BatchMemory + 'static> Prefetcher<M> {
    /// Starts filling at `start`, epoch after epoch without end. `memories` are lent for the life of the prefetcher: two are
    /// the least that lets filling and training overlap; each must hold `order.batch_size()` samples.
    pub fn new(
        source: Arc<dyn SampleSource>,
        order: EpochOrder,
        start: Position,
        memories: Vec<M>,
        threads: Threads,
    ) -> Result<Self> {
        if memories.is_empty() || order.batches_per_epoch() == 0 {
            return Err(crate::split::setting_at_least_one("batches"));
        }
        let depth = memories.len();
        let usable = crate::parallel::threads(None);
        let (first, maximum) = match threads {
            Threads::Auto => (1, usable.min(depth)),
            Threads::Fixed(count) => (count.max(1), count.max(1)),
        };
        let free = memories
            .into_iter()
            .map(|memory| Filled {
                memory,
                samples: 0,
                sample_ids: vec![0; order.batch_size()],
                position: start,
                time: Default::default(),
            })
            .collect();
        let state = State {
            free,
            ready: (0..depth).map(|_| None).collect(),
            fill_position: start,
            fill_number: 0,
            take_number: 0,
            controller: Controller::new(first, maximum),
            error: None,
            stop: false,
            idle: 0,
            trainer_sleeps: false,
            fill_ns: 0,
        };
        let mut prefetcher = Self {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                work: Condvar::new(),
                parked: Condvar::new(),
                done: Condvar::new(),
                source,
                order,
            }),
            threads: Vec::with_capacity(maximum),
            maximum_threads: maximum,
            helps: threads == Threads::Auto,
        };
        prefetcher.start_threads(first)?;
        Ok(prefetcher)
    }

    fn start_threads(&mut self, wanted: usize) -> Result<()> {
        while self.threads.len() < wanted.min(self.maximum_threads) {
            let (shared, number) = (Arc::clone(&self.shared), self.threads.len());
            let thread = std::thread::Builder::new()
                .name(format!("flatout-data-{number}"))
                .spawn(move || work(&shared, number))
                .map_err(|source| DataError::reading("thread", source))?;
            self.threads.push(thread);
        }
        Ok(())
    }

    /// The next batch, waiting for it when it is not ready. Its memory goes back when the lease is dropped.
    pub fn next_batch(&mut self) -> Result<Lease<M>> {
        let asked = Instant::now();
        let mut state = self.shared.lock();
        let slot = (state.take_number % state.ready.len() as u64) as usize;
        let (mut waited, mut helped) = (false, false);
        let filled = loop {
            if let Some(filled) = state.ready[slot].take() {
                break filled;
            }
            waited = true;
            if let Some(error) = state.error.take() {
                state.stop = true;
                self.shared.wake_all();
                return Err(error);
            }
            if state.stop {
                return Err(DataError::Setting(flatout_core::message!(
                    en: "the data threads stopped after an earlier error",
                    zh: "数据线程已因之前的错误停止"
                )));
            }
            let not_begun = state.fill_number == state.take_number;
            if self.helps
                && (not_begun || state.is_cheap())
                && let Some(mut job) = state.begin(&self.shared.order)
            {
                drop(state);
                helped = true;
                let result = fill(&self.shared, &mut job.filled);
                state = self.shared.lock();
                state.finish(job, result);
                continue;
            }
            state.trainer_sleeps = true;
            if state.wakes_one() {
                self.shared.work.notify_one();
            }
            state = self
                .shared
                .done
                .wait(state)
                .unwrap_or_else(|poison| poison.into_inner());
            state.trainer_sleeps = false;
        };
        state.take_number += 1;
        let depth = state.ready.len() as u64;
        let seen = Seen {
            batch: state.take_number,
            wait_ns: if waited {
                asked.elapsed().as_nanos() as u64
            } else {
                0
            },
            queue_full: state.free.is_empty() && state.fill_number >= state.take_number + depth - 1,
            helped,
        };
        let before = state.controller.threads();
        state.controller.observe(seen, asked);
        let threads = state.controller.threads();
        drop(state);
        if threads != before {
            self.start_threads(threads)?;
            self.shared.wake_all();
        }
        Ok(Lease {
            filled: ManuallyDrop::new(filled),
            shared: Arc::clone(&self.shared),
        })
    }

    /// Threads filling now.
    pub fn threads(&self) -> usize {
        self.shared.lock().controller.threads()
    }

    /// What the controller did and why, oldest first.
    pub fn changes(&self) -> Vec<Change> {
        self.shared.lock().controller.changes().to_vec()
    }

    pub fn order(&self) -> &EpochOrder {
        &self.shared.order
    }
}

impl<M: BatchMemory> Drop for Prefetcher<M> {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.wake_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// How many memories for batches fit a budget: at least the two that let filling and training overlap.
pub fn memories_for_budget(shape: SampleShape, batch_size: usize, budget_bytes: usize) -> usize {
    (budget_bytes / (shape.size_bytes() * batch_size).max(1)).clamp(2, 64)
}

/// A batch on loan. Dropping it gives the memory back to the threads.
pub struct Lease<M: BatchMemory> {
    filled: ManuallyDrop<Filled<M>>,
    shared: Arc<Shared<M>>,
}

impl<M: BatchMemory> Deref for Lease<M> {
    type Target = Filled<M>;

    fn deref(&self) -> &Filled<M> {
        &self.filled
    }
}

impl<M: BatchMemory> DerefMut for Lease<M> {
    fn deref_mut(&mut self) -> &mut Filled<M> {
        &mut self.filled
    }
}

impl<M: BatchMemory> Drop for Lease<M> {
    fn drop(&mut self) {
        // SAFETY: taken out once, here, and never looked at again.
        let filled = unsafe { ManuallyDrop::take(&mut self.filled) };
        let mut state = self.shared.lock();
        state.free.push(filled);
        if state.wakes_one() {
            self.shared.work.notify_one();
        }
    }
}
