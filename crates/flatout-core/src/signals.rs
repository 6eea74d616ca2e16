//! The first signal asks a program to end in order, the second means it. What comes along with the first is the same wish: `timeout`, shells
//! and schedulers signal a process and then its group.

use std::sync::atomic::{AtomicI64, Ordering};

/// What comes within this time belongs together; nobody presses Ctrl-C twice that fast.
const TOGETHER_MS: i64 = 300;

/// When the first signal came, on the monotonic clock; 0 before.
#[derive(Debug, Default)]
pub struct Signals(AtomicI64);

impl Signals {
    pub const fn new() -> Self {
        Self(AtomicI64::new(0))
    }

    pub fn came(&self) -> bool {
        self.0.load(Ordering::SeqCst) != 0
    }

    /// To be called in the handler: notes a signal, and ends the process at one that means it.
    pub fn note(&self) {
        if self.means_it(now_ms()) {
            // SAFETY: _exit may be called in a handler.
            unsafe { libc::_exit(130) };
        }
    }

    fn means_it(&self, now_ms: i64) -> bool {
        match self
            .0
            .compare_exchange(0, now_ms.max(1), Ordering::SeqCst, Ordering::SeqCst)
        {
            Ok(_) => false,
            Err(first_ms) => now_ms - first_ms > TOGETHER_MS,
        }
    }
}

fn now_ms() -> i64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: clock_gettime may be called in a handler, and fills what it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec * 1000 + time.tv_nsec / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_means_it_unless_it_came_along_with_the_first() {
        let signals = Signals::new();
        assert!(!signals.came());
        assert!(!signals.means_it(0) && signals.came());
        assert!(!signals.means_it(5) && !signals.means_it(TOGETHER_MS));
        assert!(signals.means_it(1000));
    }
}
