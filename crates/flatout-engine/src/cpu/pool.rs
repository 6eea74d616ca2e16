//! A fixed set of threads that lives as long as the session. Work is divided by worker number alone, never by who is
//! free, so a result never depends on timing.

use std::cell::UnsafeCell;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, Thread};

type Task = *const (dyn Fn(usize) + Sync);

/// How often a waiting thread looks before it gives its core away: some tens of microseconds, about the longest serial
/// stretch between two parallel operations.
const SPINS: usize = 4_000;

struct Shared {
    /// Counts tasks; a change tells the workers that `task` is new.
    epoch: AtomicUsize,
    task: UnsafeCell<Option<Task>>,
    unfinished: AtomicUsize,
    stopping: AtomicBool,
    panicked: AtomicBool,
    arrived: AtomicUsize,
    barrier_epoch: AtomicUsize,
    workers: usize,
}

// SAFETY: `task` is written by the one thread that holds `Pool::running` before it publishes a new epoch, and read by
// workers only after they saw that epoch.
unsafe impl Sync for Shared {}
// SAFETY: the task pointer is only followed while `run` keeps the closure alive.
unsafe impl Send for Shared {}

pub struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    handles: Vec<Thread>,
    /// Held while a task runs: a second caller waits for its turn.
    running: Mutex<()>,
}

impl Pool {
    pub fn new(workers: usize) -> Self {
        let workers = workers.max(1);
        let shared = Arc::new(Shared {
            epoch: AtomicUsize::new(0),
            task: UnsafeCell::new(None),
            unfinished: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
            panicked: AtomicBool::new(false),
            arrived: AtomicUsize::new(0),
            barrier_epoch: AtomicUsize::new(0),
            workers,
        });
        let mut pool = Self {
            shared: Arc::clone(&shared),
            threads: Vec::new(),
            handles: Vec::new(),
            running: Mutex::new(()),
        };
        for index in 1..workers {
            let shared = Arc::clone(&shared);
            let name = format!("flatout-cpu-{index}");
            let spawned = std::thread::Builder::new()
                .name(name)
                .spawn(move || work(&shared, index));
            match spawned {
                Ok(thread) => {
                    pool.handles.push(thread.thread().clone());
                    pool.threads.push(thread);
                }
                // Fewer threads than hoped: without all of them the fixed division would wait for ever, so do without any.
                Err(_) => return Self::new(1),
            }
        }
        pool
    }

    pub fn workers(&self) -> usize {
        self.shared.workers
    }

    /// Calls `task` once for each worker number, the caller being worker 0, and returns when all are done. Not to be called
    /// from inside a task.
    pub fn run(&self, task: &(dyn Fn(usize) + Sync)) {
        let shared = &*self.shared;
        if shared.workers == 1 {
            return task(0);
        }
        // A panic of an earlier task left nothing half done: every worker was waited for.
        let _running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let task: *const (dyn Fn(usize) + Sync + '_) = task;
        // SAFETY: only the lifetime is changed; `run` does not return before every worker is done with it.
        let task: Task = unsafe { std::mem::transmute(task) };
        // SAFETY: all workers are idle (`unfinished` was 0 when the last `run` returned), so nobody reads the cell.
        unsafe { *shared.task.get() = Some(task) };
        shared.arrived.store(0, Ordering::Relaxed);
        shared.unfinished.store(shared.workers - 1, Ordering::Relaxed);
        shared.epoch.fetch_add(1, Ordering::Release);
        self.handles.iter().for_each(Thread::unpark);
        // SAFETY: the closure is alive: it is borrowed by the caller.
        let own = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| unsafe { (*task)(0) }));
        if own.is_err() {
            // Lets workers out of a barrier that this thread will never reach.
            shared.panicked.store(true, Ordering::Relaxed);
        }
        wait_until(|| shared.unfinished.load(Ordering::Acquire) == 0);
        if let Err(panic) = own {
            shared.panicked.store(false, Ordering::Relaxed);
            std::panic::resume_unwind(panic);
        }
        if shared.panicked.swap(false, Ordering::Relaxed) {
            std::panic::resume_unwind(Box::new("a worker of the CPU back end panicked"));
        }
    }

    /// Inside a task: waits until every worker is here.
    pub fn barrier(&self) {
        let shared = &*self.shared;
        if shared.workers == 1 {
            return;
        }
        let epoch = shared.barrier_epoch.load(Ordering::Acquire);
        if shared.arrived.fetch_add(1, Ordering::AcqRel) + 1 == shared.workers {
            shared.arrived.store(0, Ordering::Relaxed);
            shared.barrier_epoch.fetch_add(1, Ordering::Release);
        } else {
            wait_until(|| {
                shared.barrier_epoch.load(Ordering::Acquire) != epoch
                    || shared.panicked.load(Ordering::Relaxed)
            });
        }
    }

    /// The part of `count` items that is worker `worker`'s: contiguous, in multiples of `grain`.
    pub fn share(&self, worker: usize, count: usize, grain: usize) -> Range<usize> {
        share(worker, self.shared.workers, count, grain)
    }
}

/// The part of `count` items, in multiples of `grain`, that belongs to one of `workers`.
pub fn share(worker: usize, workers: usize, count: usize, grain: usize) -> Range<usize> {
    let grains = count.div_ceil(grain.max(1));
    let start = grains * worker / workers * grain;
    let end = grains * (worker + 1) / workers * grain;
    start.min(count)..end.min(count)
}

fn wait_until(done: impl Fn() -> bool) {
    let mut spins = 0;
    while !done() {
        spins += 1;
        if spins < SPINS {
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}

fn work(shared: &Shared, index: usize) {
    let mut seen = 0;
    loop {
        let mut spins = 0;
        while shared.epoch.load(Ordering::Acquire) == seen {
            if shared.stopping.load(Ordering::Acquire) {
                return;
            }
            spins += 1;
            if spins < SPINS {
                std::hint::spin_loop();
            } else {
                std::thread::park();
            }
        }
        seen += 1;
        // SAFETY: the epoch changed after the task was written, and it stays until `unfinished` reaches 0.
        if let Some(task) = unsafe { *shared.task.get() } {
            // SAFETY: `run` keeps the closure alive until this worker counts itself finished.
            let call = std::panic::AssertUnwindSafe(|| unsafe { (*task)(index) });
            if std::panic::catch_unwind(call).is_err() {
                shared.panicked.store(true, Ordering::Relaxed);
            }
        }
        shared.unfinished.fetch_sub(1, Ordering::Release);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// A slice that several workers write at once, each its own part.
pub struct Parts<'a, T> {
    pointer: *mut T,
    length: usize,
    lifetime: std::marker::PhantomData<&'a mut [T]>,
}

impl<T> Clone for Parts<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Parts<'_, T> {}

// SAFETY: it is a `&mut [T]` whose parts go to different threads; `part` has the caller keep them apart.
unsafe impl<T: Send> Send for Parts<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Parts<'_, T> {}

impl<'a, T> Parts<'a, T> {
    pub fn new(slice: &'a mut [T]) -> Self {
        Self {
            pointer: slice.as_mut_ptr(),
            length: slice.len(),
            lifetime: std::marker::PhantomData,
        }
    }

    pub fn len(&self) -> usize {
        self.length
    }

    pub fn pointer(&self) -> *mut T {
        self.pointer
    }

    /// # Safety
    /// No two workers may hold overlapping parts at the same time.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn part(&self, range: Range<usize>) -> &'a mut [T] {
        assert!(range.start <= range.end && range.end <= self.length);
        // SAFETY: in bounds by the assertion; the caller keeps parts apart.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.add(range.start), range.end - range.start) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_done_once_and_barriers_hold() {
        for workers in [1, 2, 3, 5] {
            let pool = Pool::new(workers);
            let mut counts = vec![0usize; 103];
            for round in 0..50 {
                let parts = Parts::new(&mut counts);
                let total = AtomicUsize::new(0);
                pool.run(&|worker| {
                    // SAFETY: shares do not overlap.
                    let mine = unsafe { parts.part(pool.share(worker, 103, 8)) };
                    mine.iter_mut().for_each(|count| *count += 1);
                    total.fetch_add(mine.len(), Ordering::Relaxed);
                    pool.barrier();
                    assert_eq!(total.load(Ordering::Relaxed), 103);
                });
                assert!(counts.iter().all(|&count| count == round + 1));
            }
        }
    }

    #[test]
    fn two_callers_take_turns() {
        let pool = Pool::new(3);
        let inside = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        pool.run(&|worker| {
                            if worker == 0 {
                                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                            }
                            pool.barrier();
                            if worker == 0 {
                                inside.fetch_sub(1, Ordering::SeqCst);
                            }
                        });
                    }
                });
            }
        });
    }

    #[test]
    fn a_panic_in_a_worker_reaches_the_caller_and_the_pool_lives_on() {
        let pool = Pool::new(2);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            pool.run(&|worker| assert_eq!(worker, 0));
        }));
        assert!(result.is_err());
        pool.run(&|_| {});
    }
}
