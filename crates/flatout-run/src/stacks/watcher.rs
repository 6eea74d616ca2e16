//! One process's stacks, in a thread of its own.

use super::{Watch, frames};
use crate::ring::Ring;
use flatout_telemetry::Phase;
use flatout_telemetry::record::StackCount;
use py_spy::config::LockingStrategy;
use py_spy::{Config, PythonSpy};
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const PERIOD: Duration = Duration::from_millis(50);
/// Different stacks kept between two lines.
const MOST_STACKS: usize = 2000;
/// A process is looked at again and again until it shows an interpreter: it may be starting, or about to exec one.
const FIRST_TRY: Duration = Duration::from_millis(200);
const LAST_TRY: Duration = Duration::from_secs(20);
/// So many reads in a row fail when it is no longer Python.
const MOST_FAILED: u32 = 100;

/// Frames, the phase under way, and whether the interpreter's lock was held.
type Key = (Vec<String>, Option<Phase>, bool);
type Counts = HashMap<Key, u64>;

#[derive(Default)]
struct Shared {
    counts: Mutex<Counts>,
    failure: Mutex<Option<String>>,
    stop: AtomicBool,
}

pub struct Watcher {
    watch: Watch,
    shared: Arc<Shared>,
}

impl Watcher {
    pub fn start(watch: Watch) -> Self {
        let shared = Arc::<Shared>::default();
        let (seen, thread_watch) = (shared.clone(), watch.clone());
        let run = move || {
            if let Err(reason) = sample(&thread_watch, &seen) {
                log::info!("no stacks of process {}: {reason}", thread_watch.pid);
                *locked(&seen.failure) = Some(reason);
            }
        };
        if let Err(error) = std::thread::Builder::new().name("stacks".into()).spawn(run) {
            *locked(&shared.failure) = Some(error.to_string());
        }
        Self { watch, shared }
    }

    pub fn watch(&self) -> &Watch {
        &self.watch
    }

    pub fn failure(&self) -> Option<String> {
        locked(&self.shared.failure).clone()
    }

    pub fn forget_failure(&self) {
        *locked(&self.shared.failure) = None;
    }

    /// The counts since the last call.
    pub fn take(&self) -> Vec<StackCount> {
        let counts = std::mem::take(&mut *locked(&self.shared.counts));
        let stack = |((frames, phase, gil), count)| StackCount {
            frames,
            count,
            phase,
            gil,
            worker: self.watch.worker,
        };
        counts.into_iter().map(stack).collect()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn sample(watch: &Watch, shared: &Shared) -> Result<(), String> {
    let Some(mut spy) = find_interpreter(watch.pid, shared)? else {
        return Ok(());
    };
    let ring = watch.ring.as_deref().and_then(Ring::open);
    let mut failed = 0;
    let mut next = Instant::now();
    while !shared.stop.load(Ordering::Relaxed) {
        next = (next + PERIOD).max(Instant::now());
        std::thread::sleep(next - Instant::now());
        let phase = ring.as_ref().and_then(Ring::phase);
        match spy.get_stack_traces() {
            Ok(traces) => {
                failed = 0;
                let (frames, gil) = frames::of_main_thread(&traces, watch.pid, watch.worker);
                if !frames.is_empty() {
                    count(
                        &mut locked(&shared.counts),
                        (frames, phase.filter(|_| !watch.worker), gil),
                    );
                }
            }
            Err(error) => {
                failed += 1;
                if !lives(watch.pid) {
                    return Ok(());
                }
                if failed > MOST_FAILED {
                    return Err(format!("{error:#}"));
                }
            }
        }
    }
    Ok(())
}

/// `None` when the process ended, or nobody wants it any more.
fn find_interpreter(pid: u32, shared: &Shared) -> Result<Option<PythonSpy>, String> {
    let config = Config {
        blocking: LockingStrategy::NonBlocking,
        collect_thread_names: false,
        // Else it looks for each file's package on the disk.
        full_filenames: true,
        ..Config::default()
    };
    let target = py_spy::Pid::try_from(pid).map_err(|error| error.to_string())?;
    let begun = Instant::now();
    let mut pause = FIRST_TRY;
    loop {
        if shared.stop.load(Ordering::Relaxed) || !lives(pid) {
            return Ok(None);
        }
        match PythonSpy::new(target, &config) {
            Ok(spy) => return Ok(Some(spy)),
            Err(error) if begun.elapsed() > LAST_TRY => return Err(format!("{error:#}")),
            Err(_) => std::thread::sleep(pause),
        }
        pause = pause.mul_f64(1.5).min(Duration::from_secs(5));
    }
}

fn lives(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

fn count(counts: &mut Counts, key: Key) {
    if let Some(known) = counts.get_mut(&key) {
        *known += 1;
    } else if counts.len() < MOST_STACKS {
        counts.insert(key, 1);
    }
}
