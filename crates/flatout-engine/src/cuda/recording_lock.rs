//! A lock around the recording of CUDA graphs: while one thread records a graph, another that allocates, frees, loads code or starts a
//! kernel for the first time spoils the recording, whichever session it belongs to. Steps do not take the lock.

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

static LOCK: Mutex<()> = Mutex::new(());

thread_local! {
    static MINE: Cell<bool> = const { Cell::new(false) };
}

/// Marks the lock as free for this thread again, also when the work panics.
struct Ended;

impl Drop for Ended {
    fn drop(&mut self) {
        MINE.set(false);
    }
}

/// Runs the work while no other thread is in here. A thread that holds the lock already may call it again.
pub fn exclusive<T>(work: impl FnOnce() -> T) -> T {
    if MINE.get() {
        return work();
    }
    let _guard = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    MINE.set(true);
    let _ended = Ended;
    work()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn exclusive_sections_serialize_threads_and_nest() {
        let inside = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        exclusive(|| {
                            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                            exclusive(std::thread::yield_now);
                            inside.fetch_sub(1, Ordering::SeqCst);
                        });
                    }
                });
            }
        });
        let broken = std::panic::catch_unwind(|| exclusive(|| panic!("on purpose")));
        assert!(broken.is_err());
        assert_eq!(exclusive(|| 7), 7, "a panic releases the lock");
    }
}
