//! One thread at a time for what must not meet a recording: while one thread records a graph, another that allocates, frees, loads
//! code or starts a kernel for the first time spoils the recording, whichever session it belongs to. Steps take no turn.

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

static TURN: Mutex<()> = Mutex::new(());

thread_local! {
    static MINE: Cell<bool> = const { Cell::new(false) };
}

/// Gives the turn back, also when the work panics.
struct Ended;

impl Drop for Ended {
    fn drop(&mut self) {
        MINE.set(false);
    }
}

/// Runs the work while no other thread is in here. A thread that has its turn already keeps it.
pub fn alone<T>(work: impl FnOnce() -> T) -> T {
    if MINE.get() {
        return work();
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
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
                        alone(|| {
                            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                            alone(std::thread::yield_now);
                            inside.fetch_sub(1, Ordering::SeqCst);
                        });
                    }
                });
            }
        });
        let broken = std::panic::catch_unwind(|| alone(|| panic!("on purpose")));
        assert!(broken.is_err());
        assert_eq!(alone(|| 7), 7, "a panic gives the turn back");
    }
}
