//! Where Python programs are, read from outside: 20 times per second, 250 times inside windows. They are neither stopped nor
//! changed.
//!
//! The training thread of every process that trains, and one worker of each one's loader. py-spy reads the memory of our own
//! children (or of a process we may trace); a torn read is one lost sample. A thread inside the program could do it too, but it
//! would take the interpreter's lock from the training and make every later fork one of a program with threads.

mod frames;
mod thread;
mod watcher;
mod windows;

use flatout_record::{StackCount, StackTick};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};
pub use watcher::{Key, TimedStack, all_threads};
use watcher::{Seen, Watcher};
pub use windows::Windows;

/// Lines come soon at first, for the live finding, then once a minute.
const FIRST: Duration = Duration::from_secs(4);
const LONGEST: Duration = Duration::from_secs(60);
/// Processes watched at once: the ranks of one machine and a worker of each.
const MOST_WATCHED: usize = 32;
/// Stacks per line: those with most time. Others keep what they share with them, so that shares stay true.
const MOST_WRITTEN: usize = 120;

/// A process to watch, and the lane of the record that its stacks belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    pub pid: u32,
    pub lane: u32,
    /// A loader's worker.
    pub worker: bool,
    /// Tells the phase that is under way.
    pub ring: Option<PathBuf>,
}

pub struct Stacks {
    watchers: BTreeMap<u32, Watcher>,
    /// What stopped watchers had seen.
    left: BTreeMap<u32, Seen>,
    window: bool,
    interval: Duration,
    longest: Duration,
    due: Instant,
    failure: Option<String>,
}

impl Default for Stacks {
    fn default() -> Self {
        Self {
            watchers: BTreeMap::new(),
            left: BTreeMap::new(),
            window: false,
            interval: FIRST,
            longest: LONGEST,
            due: Instant::now() + FIRST,
            failure: None,
        }
    }
}

impl Stacks {
    /// For runs of a few seconds whose parts must be told apart.
    pub fn each_second() -> Self {
        let second = Duration::from_secs(1);
        Self {
            interval: second,
            longest: second,
            due: Instant::now() + second,
            ..Self::default()
        }
    }

    /// Watches these from now on, and no others.
    pub fn follow(&mut self, wanted: Vec<Watch>) {
        let gone: Vec<u32> = self
            .watchers
            .keys()
            .copied()
            .filter(|pid| !wanted.iter().any(|watch| watch.pid == *pid))
            .collect();
        for pid in gone {
            if let Some(watcher) = self.watchers.remove(&pid) {
                self.keep(&watcher);
            }
        }
        for watch in wanted.into_iter().take(MOST_WATCHED) {
            match self.watchers.get(&watch.pid) {
                Some(watcher) if *watcher.watch() == watch => {}
                _ => {
                    // Now more is known of it: its ring, its lane.
                    if let Some(watcher) = self.watchers.remove(&watch.pid) {
                        self.keep(&watcher);
                    }
                    let watcher = Watcher::start(watch);
                    watcher.set_window(self.window);
                    self.watchers.insert(watcher.watch().pid, watcher);
                }
            }
        }
    }

    /// Opens or closes a window: samples come closer together.
    pub fn set_window(&mut self, open: bool) {
        if std::mem::replace(&mut self.window, open) != open {
            self.watchers
                .values()
                .for_each(|watcher| watcher.set_window(open));
        }
    }

    /// Opens or closes a GPU window.
    pub fn set_gpu_window(&mut self, open: bool) {
        self.watchers
            .values()
            .for_each(|watcher| watcher.set_gpu_window(open));
    }

    /// The samples of a process during the last GPU window.
    pub fn take_timed(&self, pid: u32) -> Vec<TimedStack> {
        self.watchers
            .get(&pid)
            .map(Watcher::take_timed)
            .unwrap_or_default()
    }

    /// The same of the worker that is watched for a process.
    pub fn take_timed_of_worker(&self, pid: u32) -> Vec<TimedStack> {
        let lane = self.watchers.get(&pid).map_or(0, |watcher| watcher.watch().lane);
        let workers = self.watchers.values().filter(|watcher| watcher.watch().worker);
        workers
            .filter(|watcher| watcher.watch().lane == lane)
            .map(Watcher::take_timed)
            .max_by_key(Vec::len)
            .unwrap_or_default()
    }

    /// The processes that are watched and are no workers.
    pub fn training(&self) -> Vec<u32> {
        let training = self.watchers.values().filter(|watcher| !watcher.watch().worker);
        training.map(|watcher| watcher.watch().pid).collect()
    }

    fn keep(&mut self, watcher: &Watcher) {
        self.failure = self.failure.take().or_else(|| watcher.failure());
        let left = self.left.entry(watcher.watch().lane).or_default();
        left.merge(watcher.take());
    }

    /// A line for each lane, when one is due.
    pub fn lines(&mut self, t: f64, last: bool) -> Vec<(u32, StackTick)> {
        if !last && Instant::now() < self.due {
            return Vec::new();
        }
        self.due = Instant::now() + self.interval;
        self.interval = self.interval.mul_f64(1.5).min(self.longest);
        let mut lanes = std::mem::take(&mut self.left);
        for watcher in self.watchers.values() {
            lanes
                .entry(watcher.watch().lane)
                .or_default()
                .merge(watcher.take());
        }
        let lines = lanes.into_iter().filter(|(_, seen)| !seen.stacks.is_empty());
        let line = |(lane, seen): (u32, Seen)| {
            let tick = StackTick {
                t,
                stacks: condensed(seen.stacks),
                descheduled_ms: seen.descheduled_ms,
            };
            (lane, tick)
        };
        lines.map(line).collect()
    }

    /// Why a process could not be watched, once.
    pub fn take_failure(&mut self) -> Option<String> {
        let watched = self.watchers.values().find_map(Watcher::failure);
        let failure = self.failure.take().or(watched)?;
        self.watchers.values().for_each(Watcher::forget_failure);
        Some(failure)
    }
}

impl Seen {
    fn merge(&mut self, other: Seen) {
        self.stacks.extend(other.stacks);
        if let Some((waited, of)) = other.descheduled_ms {
            let (sum, all) = self.descheduled_ms.get_or_insert((0.0, 0.0));
            *sum += waited;
            *all += of;
        }
    }
}

/// Keeps the stacks with most time. Rare ones lose their innermost frames until they meet a stack that is kept, or each other:
/// the line of the loop they belong to stays known.
pub fn condensed(mut stacks: Vec<StackCount>) -> Vec<StackCount> {
    stacks.sort_by(|a, b| b.ms.total_cmp(&a.ms).then_with(|| a.frames.cmp(&b.frames)));
    while stacks.len() > MOST_WRITTEN {
        let rare = stacks.split_off(MOST_WRITTEN / 2);
        let deepest = rare.iter().map(|stack| stack.frames.len()).max().unwrap_or(0);
        for mut stack in rare {
            if stack.frames.len() == deepest {
                stack.frames.pop();
            }
            let same = |kept: &&mut StackCount| {
                kept.frames == stack.frames
                    && (kept.phase, kept.worker, kept.gil, kept.blocked, kept.gpu)
                        == (stack.phase, stack.worker, stack.gil, stack.blocked, stack.gpu)
            };
            match stacks.iter_mut().find(same) {
                Some(kept) => {
                    kept.count += stack.count;
                    kept.ms += stack.ms;
                }
                None => stacks.push(stack),
            }
        }
        stacks.sort_by(|a, b| b.ms.total_cmp(&a.ms).then_with(|| a.frames.cmp(&b.frames)));
        if deepest == 0 {
            break;
        }
    }
    stacks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_outer_frames_of_rare_stacks() {
        let stack = |number: u64| StackCount {
            frames: vec!["loop (a.py:7)".into(), format!("f (a.py:{number})")],
            count: number + 1,
            ms: number as f64 + 1.0,
            worker: number.is_multiple_of(2),
            ..StackCount::default()
        };
        let all: Vec<StackCount> = (0..600).map(stack).collect();
        let kept = condensed(all.clone());
        assert!(kept.len() <= MOST_WRITTEN);
        let sum = |stacks: &[StackCount]| stacks.iter().map(|stack| stack.count).sum::<u64>();
        assert_eq!(sum(&kept), sum(&all));
        assert!(kept.iter().all(|stack| stack.frames[0] == "loop (a.py:7)"));
        assert!(
            kept.iter()
                .any(|stack| stack.frames.len() == 2 && stack.count == 600)
        );
    }
}
