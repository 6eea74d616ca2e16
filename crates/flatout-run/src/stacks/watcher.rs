//! One process's stacks, in a thread of its own.

use super::thread::{CpuClock, Thread};
use super::{Watch, frames};
use crate::ring::Ring;
use flatout_record::{Blocked, Phase, StackCount, ThreadStack};
use py_spy::config::LockingStrategy;
use py_spy::{Config, PythonSpy, StackTrace};
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Between two samples outside of windows, and inside. A sample costs 0.14 ms of a CPU (11 frames, PyTorch 2.11, 2026-11-18):
/// 0.3% of one outside, 3.5% inside.
const PERIOD: Duration = Duration::from_millis(50);
const WINDOW_PERIOD: Duration = Duration::from_millis(4);
/// While the GPU is traced: its idle time is split by these samples, and the window is short.
const GPU_WINDOW_PERIOD: Duration = Duration::from_millis(2);
/// Samples are never closer together than this many times what one costs: a deep stack is sampled less often.
const COST_FACTOR: u32 = 12;
/// CPUs that a process uses at least while one of its threads waits for the others' part of an operator.
const WORKING: f64 = 0.3;
/// Different stacks kept between two lines.
const MOST_STACKS: usize = 4000;
/// A process is looked at again and again until it shows an interpreter: it may be starting, or about to exec one.
const FIRST_TRY: Duration = Duration::from_millis(200);
const LAST_TRY: Duration = Duration::from_secs(20);
/// This many samples in a row fail when it is no longer Python.
const MOST_FAILED: u32 = 100;
/// Reads of one sample. A read fails if Python calls or returns meanwhile, so failed samples are not random: in records of programs that call
/// small functions all the time (pandas, scikit-learn) half of those in Python were lost, and hardly any in operators (2026-11-18).
const MOST_READS: u32 = 8;
/// The time of failed samples that the next one stands for as well, at most.
const MOST_CARRIED: Duration = Duration::from_secs(1);

/// What samples are counted by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub frames: Vec<String>,
    pub phase: Option<Phase>,
    /// The interpreter's lock was held.
    pub gil: bool,
    pub blocked: Option<Blocked>,
}

impl Key {
    /// Without samples yet.
    pub fn stack(&self) -> StackCount {
        StackCount {
            frames: self.frames.clone(),
            phase: self.phase,
            gil: self.gil,
            blocked: self.blocked,
            ..StackCount::default()
        }
    }
}

/// A sample with its instant, for the join with the GPU's trace.
#[derive(Clone, Debug)]
pub struct TimedStack {
    /// Of the monotonic clock.
    pub at_ns: u64,
    /// The time it stands for.
    pub ms: f64,
    /// Optimizer steps so far.
    pub steps: u64,
    pub key: Key,
}

/// Samples kept for a GPU window: ten seconds at the highest rate.
const MOST_TIMED: usize = 5000;

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    count: u64,
    time: Duration,
}

/// What was seen since the last look.
#[derive(Debug, Default)]
struct Counts {
    stacks: HashMap<Key, Tally>,
    /// Those of the GPU window that is open.
    timed: Vec<TimedStack>,
    /// Time without a CPU although ready to run, and the time looked at.
    descheduled: Option<(Duration, Duration)>,
}

#[derive(Default)]
struct Shared {
    counts: Mutex<Counts>,
    failure: Mutex<Option<String>>,
    stop: AtomicBool,
    window: AtomicBool,
    gpu_window: AtomicBool,
}

/// What a watcher saw since it was asked last.
#[derive(Default)]
pub struct Seen {
    pub stacks: Vec<StackCount>,
    pub descheduled_ms: Option<(f64, f64)>,
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

    /// Samples at the rate of a window, or at the usual one.
    pub fn set_window(&self, open: bool) {
        self.shared.window.store(open, Ordering::Relaxed);
    }

    /// Keeps samples with their instants while the GPU is traced.
    pub fn set_gpu_window(&self, open: bool) {
        self.shared.gpu_window.store(open, Ordering::Relaxed);
    }

    /// The samples of the last GPU window.
    pub fn take_timed(&self) -> Vec<TimedStack> {
        std::mem::take(&mut locked(&self.shared.counts).timed)
    }

    /// The counts since the last call.
    pub fn take(&self) -> Seen {
        let counts = {
            let mut counts = locked(&self.shared.counts);
            let timed = std::mem::take(&mut counts.timed);
            let taken = std::mem::take(&mut *counts);
            counts.timed = timed;
            taken
        };
        let stack = |(key, tally): (Key, Tally)| StackCount {
            frames: key.frames,
            count: tally.count,
            ms: milliseconds(tally.time),
            phase: key.phase,
            gil: key.gil,
            worker: self.watch.worker,
            blocked: key.blocked,
            gpu: None,
        };
        Seen {
            stacks: counts.stacks.into_iter().map(stack).collect(),
            descheduled_ms: counts
                .descheduled
                .filter(|_| !self.watch.worker)
                .map(|(waited, of)| (milliseconds(waited), milliseconds(of))),
        }
    }
}

/// Rounded to microseconds, so that the record stays small.
fn milliseconds(time: Duration) -> f64 {
    time.as_micros() as f64 / 1e3
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
    let thread = Thread::open(watch.pid, watch.pid);
    let cpu = CpuClock::of(watch.pid);
    let mut used = cpu.as_ref().and_then(CpuClock::used);
    let mut failed = 0;
    let mut last = Instant::now();
    let mut waited_ns = thread.as_ref().and_then(Thread::waited_for_cpu_ns);
    let mut cost = Duration::ZERO;
    let mut carried = Duration::ZERO;
    while !shared.stop.load(Ordering::Relaxed) {
        pause(shared, last, cost);
        let begun = Instant::now();
        let (mut moment, mut traces) = read(&mut spy, ring.as_ref(), thread.as_ref());
        for _ in 1..MOST_READS {
            let same_phase = ring.as_ref().and_then(Ring::phase) == moment.phase;
            if traces.is_ok() && same_phase {
                break;
            }
            (moment, traces) = read(&mut spy, ring.as_ref(), thread.as_ref());
        }
        cost = begun.elapsed();
        let passed = begun - std::mem::replace(&mut last, begun);
        // After a suspension a sample stands for no more than the longest period.
        let stands_for = passed.min(PERIOD * 2);
        let before = std::mem::replace(&mut used, cpu.as_ref().and_then(CpuClock::used));
        // An operator's threads wait for each other with the same system call as a lock: but then others of them run.
        let works = match (before, used) {
            (Some(before), Some(now)) => now.saturating_sub(before) > passed.mul_f64(WORKING),
            _ => true,
        };
        let blocked = moment
            .blocked
            .filter(|blocked| *blocked != Blocked::Lock || !works);
        match traces {
            Ok(traces) => {
                failed = 0;
                let time = stands_for + std::mem::take(&mut carried);
                let (frames, gil) = frames::of_main_thread(&traces, watch.pid, watch.worker);
                let mut counts = locked(&shared.counts);
                if !frames.is_empty() {
                    let phase = moment.phase.filter(|_| !watch.worker);
                    let key = Key {
                        frames,
                        phase,
                        gil,
                        blocked,
                    };
                    if shared.gpu_window.load(Ordering::Relaxed) && counts.timed.len() < MOST_TIMED {
                        counts.timed.push(TimedStack {
                            at_ns: moment.at_ns + moment.cost.as_nanos() as u64 / 2,
                            ms: milliseconds(time),
                            steps: moment.steps,
                            key: key.clone(),
                        });
                    }
                    counts.add(key, time);
                }
                let now_ns = thread.as_ref().and_then(Thread::waited_for_cpu_ns);
                if let (Some(before), Some(now)) = (waited_ns, now_ns) {
                    counts.wait(Duration::from_nanos(now.saturating_sub(before)), passed);
                }
                waited_ns = now_ns;
            }
            Err(error) => {
                failed += 1;
                carried = (carried + stands_for).min(MOST_CARRIED);
                if !lives(watch.pid) {
                    return Ok(());
                }
                if failed > MOST_FAILED {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

/// What is read along with a stack.
struct Moment {
    at_ns: u64,
    phase: Option<Phase>,
    blocked: Option<Blocked>,
    steps: u64,
    cost: Duration,
}

/// The state first: reading the stack takes a tenth of a millisecond, in which a short wait ends.
fn read(
    spy: &mut PythonSpy,
    ring: Option<&Ring>,
    thread: Option<&Thread>,
) -> (Moment, Result<Vec<StackTrace>, String>) {
    let begun = Instant::now();
    let mut moment = Moment {
        blocked: thread.and_then(Thread::blocked),
        phase: ring.and_then(Ring::phase),
        steps: ring.map_or(0, Ring::steps),
        at_ns: crate::collect::monotonic_ns(),
        cost: Duration::ZERO,
    };
    let traces = spy.get_stack_traces().map_err(|error| format!("{error:#}"));
    moment.cost = begun.elapsed();
    (moment, traces)
}

/// Sleeps until the next sample is due; a window that opens meanwhile is not missed by more than a part of the usual period.
fn pause(shared: &Shared, last: Instant, cost: Duration) {
    loop {
        let period = if shared.gpu_window.load(Ordering::Relaxed) {
            GPU_WINDOW_PERIOD
        } else if shared.window.load(Ordering::Relaxed) {
            WINDOW_PERIOD
        } else {
            PERIOD
        };
        let due = last + period.max(cost * COST_FACTOR);
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() || shared.stop.load(Ordering::Relaxed) {
            return;
        }
        std::thread::sleep(left.min(PERIOD / 4));
    }
}

impl Counts {
    fn add(&mut self, key: Key, time: Duration) {
        let room = self.stacks.len() < MOST_STACKS;
        if let Some(tally) = self.stacks.get_mut(&key) {
            tally.count += 1;
            tally.time += time;
        } else if room {
            self.stacks.insert(key, Tally { count: 1, time });
        }
    }

    fn wait(&mut self, waited: Duration, of: Duration) {
        let (sum, all) = self.descheduled.get_or_insert((Duration::ZERO, Duration::ZERO));
        *sum += waited.min(of);
        *all += of;
    }
}

/// Where every thread of a process is now.
pub fn all_threads(pid: u32) -> Result<Vec<ThreadStack>, String> {
    let target = py_spy::Pid::try_from(pid).map_err(|error| error.to_string())?;
    let read = || {
        let mut spy = PythonSpy::new(target, &config())?;
        spy.get_stack_traces()
    };
    // A torn read is rare; twice in a row it is something else.
    let traces = read().or_else(|_| read()).map_err(|error| format!("{error:#}"))?;
    Ok(frames::of_all_threads(&traces, pid))
}

fn config() -> Config {
    Config {
        blocking: LockingStrategy::NonBlocking,
        collect_thread_names: false,
        // Else it looks for each file's package on the disk.
        full_filenames: true,
        ..Config::default()
    }
}

/// `None` when the process ended, or nobody wants it any more.
fn find_interpreter(pid: u32, shared: &Shared) -> Result<Option<PythonSpy>, String> {
    let config = config();
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
