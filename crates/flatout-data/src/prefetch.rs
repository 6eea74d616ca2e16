//! Batches ahead of the trainer: threads fill lent memory, the trainer takes batches in order and gives the memory back.
//!
//! A batch is filled by one thread. A thread takes a batch number and a free memory in one step, so batches come out in order and
//! there is always a thread on the one the trainer waits for. No free memory means that the threads wait: that is the back-pressure, and
//! the number of memories is the memory budget. Nothing is allocated once the first round is done.

pub mod controller;

use crate::batch::{BatchMemory, Draw, Filled, SampleShape, SampleSource};
use crate::order::{EpochOrder, Position};
use crate::{DataError, Result};
use controller::{Change, Controller};
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
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

struct State<M> {
    free: Vec<Filled<M>>,
    /// Batch `n` waits at `n % ready.len()`.
    ready: Vec<Option<Filled<M>>>,
    /// The next batch to fill, and its number.
    fill_position: Position,
    fill_number: u64,
    take_number: u64,
    controller: Controller,
    error: Option<DataError>,
    stop: bool,
}

struct Shared<M> {
    state: Mutex<State<M>>,
    /// Something for threads to do (a free memory, a larger thread count, or the end).
    work: Condvar,
    /// A batch became ready, or failed.
    done: Condvar,
    source: Arc<dyn SampleSource>,
    order: EpochOrder,
}

impl<M> Shared<M> {
    fn lock(&self) -> MutexGuard<'_, State<M>> {
        self.state.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

pub struct Prefetcher<M: BatchMemory + 'static> {
    shared: Arc<Shared<M>>,
    threads: Vec<JoinHandle<()>>,
    maximum_threads: usize,
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
        };
        let mut prefetcher = Self {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                work: Condvar::new(),
                done: Condvar::new(),
                source,
                order,
            }),
            threads: Vec::with_capacity(maximum),
            maximum_threads: maximum,
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
        let (filled, wanted) = {
            let mut state = self.shared.lock();
            let slot = (state.take_number % state.ready.len() as u64) as usize;
            let waited = state.ready[slot].is_none();
            while state.ready[slot].is_none() {
                if let Some(error) = state.error.take() {
                    state.stop = true;
                    self.shared.work.notify_all();
                    return Err(error);
                }
                if state.stop {
                    return Err(DataError::Setting(flatout_core::message!(
                        en: "the data threads have stopped after an earlier error",
                        zh: "数据线程已因之前的错误停止"
                    )));
                }
                state = self
                    .shared
                    .done
                    .wait(state)
                    .unwrap_or_else(|poison| poison.into_inner());
            }
            let wait_ns = if waited {
                asked.elapsed().as_nanos() as u64
            } else {
                0
            };
            let filled = state.ready[slot].take();
            state.take_number += 1;
            let queue_full = state.free.is_empty()
                && state.fill_number >= state.take_number + state.ready.len() as u64 - 1;
            let batch = state.take_number;
            let before = state.controller.threads();
            state.controller.observe(batch, wait_ns, queue_full, asked);
            (
                filled,
                (state.controller.threads() != before).then(|| state.controller.threads()),
            )
        };
        if let Some(threads) = wanted {
            self.start_threads(threads)?;
            self.shared.work.notify_all();
        }
        match filled {
            Some(filled) => Ok(Lease {
                filled: ManuallyDrop::new(filled),
                shared: Arc::clone(&self.shared),
            }),
            None => Err(crate::split::setting_at_least_one("batches")),
        }
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
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// What a thread does from its start to the end.
fn work<M: BatchMemory>(shared: &Shared<M>, thread: usize) {
    loop {
        let (mut filled, number) = {
            let mut state = shared.lock();
            loop {
                if state.stop || state.error.is_some() {
                    return;
                }
                if thread < state.controller.threads()
                    && let Some(mut filled) = state.free.pop()
                {
                    filled.position = state.fill_position;
                    state.fill_position = shared.order.after(filled.position);
                    let number = state.fill_number;
                    state.fill_number += 1;
                    break (filled, number);
                }
                state = shared
                    .work
                    .wait(state)
                    .unwrap_or_else(|poison| poison.into_inner());
            }
        };
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
        }))
        .unwrap_or_else(|_| Err(failed_thread()));
        let mut state = shared.lock();
        match result {
            Ok(time) => {
                filled.time = time;
                let slot = (number % state.ready.len() as u64) as usize;
                state.ready[slot] = Some(filled);
            }
            Err(error) => {
                state.error.get_or_insert(error);
                shared.work.notify_all();
            }
        }
        shared.done.notify_all();
    }
}

fn failed_thread() -> DataError {
    DataError::Setting(flatout_core::message!(
        en: "a data thread failed while it filled a batch",
        zh: "数据线程在填充 batch 时出错"
    ))
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
        self.shared.lock().free.push(filled);
        // Parked threads wait on the same condition: one of them might swallow a single notification.
        self.shared.work.notify_all();
    }
}
