//! A source that may block (a driver call of two seconds, a process whose memory map is locked) reads in a thread of its own.
//! The sampler asks at every tick, waits a moment, and takes what is there; what comes late belongs to the next tick.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What a background source publishes. An answer that nobody took yet takes the next one in.
pub trait Reading: Send + 'static {
    fn absorb(&mut self, newer: Self);
}

struct State<T> {
    asked: u64,
    answered: u64,
    value: Option<(T, Instant)>,
    closed: bool,
}

struct Shared<T> {
    state: Mutex<State<T>>,
    asked: Condvar,
    answered: Condvar,
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sampler's end.
pub struct Background<T> {
    shared: Arc<Shared<T>>,
}

/// The reading thread's end.
pub struct Port<T> {
    shared: Arc<Shared<T>>,
    question: u64,
}

impl<T: Reading> Background<T> {
    pub fn start(name: &str, body: impl FnOnce(Port<T>) + Send + 'static) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                asked: 0,
                answered: 0,
                value: None,
                closed: false,
            }),
            asked: Condvar::new(),
            answered: Condvar::new(),
        });
        let port = Port {
            shared: Arc::clone(&shared),
            question: 0,
        };
        std::thread::Builder::new()
            .name(format!("flatout-{name}"))
            .stack_size(512 << 10)
            .spawn(move || body(port))?;
        Ok(Self { shared })
    }

    /// Asks for a reading. A thread that is still busy with the last question answers both at once.
    pub fn ask(&self) {
        self.shared.lock().asked += 1;
        self.shared.asked.notify_one();
    }

    /// Waits at most `patience` for the answer to the last question, then takes what there is and the time it was read.
    pub fn take(&self, patience: Duration) -> Option<(T, Instant)> {
        let deadline = Instant::now() + patience;
        let mut state = self.shared.lock();
        while state.answered < state.asked && !state.closed {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self
                .shared
                .answered
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        state.value.take()
    }
}

impl<T> Drop for Background<T> {
    /// The thread ends by itself once its call returns; nobody waits for a driver that hangs.
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.asked.notify_one();
    }
}

impl<T: Reading> Port<T> {
    /// Waits for a question; false when nobody will ask again.
    pub fn wait(&mut self) -> bool {
        let mut state = self.shared.lock();
        while state.asked == self.question && !state.closed {
            state = self
                .shared
                .asked
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        self.question = state.asked;
        !state.closed
    }

    pub fn publish(&self, value: T) {
        let mut state = self.shared.lock();
        state.answered = self.question;
        let now = Instant::now();
        match state.value.as_mut() {
            Some((unread, at)) => {
                unread.absorb(value);
                *at = now;
            }
            None => state.value = Some((value, now)),
        }
        self.shared.answered.notify_one();
    }
}

impl<T> Drop for Port<T> {
    /// A thread that ended (or panicked) keeps nobody waiting.
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.answered.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Reading for Vec<u32> {
        fn absorb(&mut self, newer: Self) {
            self.extend(newer);
        }
    }

    #[test]
    fn a_slow_answer_is_not_waited_for_and_not_lost() {
        let (release, gate) = std::sync::mpsc::channel::<()>();
        let background = Background::start("test", move |mut port: Port<Vec<u32>>| {
            let mut count = 0;
            while port.wait() {
                let _ = gate.recv();
                count += 1;
                port.publish(vec![count]);
            }
        })
        .unwrap();
        background.ask();
        assert!(background.take(Duration::from_millis(1)).is_none());
        release.send(()).unwrap();
        assert_eq!(background.take(Duration::from_secs(60)).unwrap().0, [1]);
        background.ask();
        release.send(()).unwrap();
        assert_eq!(background.take(Duration::from_secs(60)).unwrap().0, [2]);
        assert!(background.take(Duration::ZERO).is_none());
    }

    #[test]
    fn a_thread_that_ended_keeps_nobody_waiting() {
        let background = Background::start("test", |port: Port<Vec<u32>>| drop(port)).unwrap();
        background.ask();
        assert!(background.take(Duration::from_secs(60)).is_none());
    }
}
