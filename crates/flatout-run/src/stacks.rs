//! Where Python programs stand, twenty times a second, read from outside: they are neither stopped nor changed.
//!
//! The training thread of every process that trains, and one worker of each one's loader. py-spy reads the memory of our own
//! children (or of a process we may trace); a torn read is one lost sample. A thread inside the program could do it too, but it
//! would take the interpreter's lock from the training and make every later fork one of a program with threads.

mod frames;
mod watcher;

use flatout_telemetry::StackTick;
use flatout_telemetry::record::StackCount;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use watcher::Watcher;

/// Lines come soon at first, for the live finding, then once a minute.
const FIRST: Duration = Duration::from_secs(4);
const LONGEST: Duration = Duration::from_secs(60);
/// Processes watched at once: the ranks of one machine and a worker of each.
const MOST_WATCHED: usize = 32;
/// Stacks a line names: the commonest. The others are counted together, so that shares stay true.
const MOST_TOLD: usize = 30;

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
    left: BTreeMap<u32, Vec<StackCount>>,
    interval: Duration,
    due: Instant,
    failure: Option<String>,
}

impl Default for Stacks {
    fn default() -> Self {
        Self {
            watchers: BTreeMap::new(),
            left: BTreeMap::new(),
            interval: FIRST,
            due: Instant::now() + FIRST,
            failure: None,
        }
    }
}

impl Stacks {
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
                    self.watchers.insert(watch.pid, Watcher::start(watch));
                }
            }
        }
    }

    fn keep(&mut self, watcher: &Watcher) {
        self.failure = self.failure.take().or_else(|| watcher.failure());
        self.left
            .entry(watcher.watch().lane)
            .or_default()
            .extend(watcher.take());
    }

    /// A line for each lane, when one is due.
    pub fn lines(&mut self, t: f64, last: bool) -> Vec<(u32, StackTick)> {
        if !last && Instant::now() < self.due {
            return Vec::new();
        }
        self.due = Instant::now() + self.interval;
        self.interval = self.interval.mul_f64(1.5).min(LONGEST);
        let mut lanes = std::mem::take(&mut self.left);
        for watcher in self.watchers.values() {
            lanes
                .entry(watcher.watch().lane)
                .or_default()
                .extend(watcher.take());
        }
        let lines = lanes.into_iter().filter(|(_, stacks)| !stacks.is_empty());
        lines
            .map(|(lane, stacks)| {
                (
                    lane,
                    StackTick {
                        t,
                        stacks: commonest(stacks),
                    },
                )
            })
            .collect()
    }

    /// Why a process could not be watched, once.
    pub fn take_failure(&mut self) -> Option<String> {
        let watched = self.watchers.values().find_map(Watcher::failure);
        let failure = self.failure.take().or(watched)?;
        self.watchers.values().for_each(Watcher::forget_failure);
        Some(failure)
    }
}

fn commonest(mut stacks: Vec<StackCount>) -> Vec<StackCount> {
    stacks.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.frames.cmp(&b.frames)));
    let mut others: Vec<StackCount> = Vec::new();
    for stack in stacks.drain(MOST_TOLD.min(stacks.len())..) {
        let same = |other: &&mut StackCount| {
            (other.phase, other.worker, other.gil) == (stack.phase, stack.worker, stack.gil)
        };
        match others.iter_mut().find(same) {
            Some(other) => other.count += stack.count,
            None => others.push(StackCount {
                frames: Vec::new(),
                ..stack
            }),
        }
    }
    stacks.extend(others);
    stacks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_stacks_are_counted_together() {
        let stack = |number: u64| StackCount {
            frames: vec![format!("f (a.py:{number})")],
            count: number + 1,
            worker: number.is_multiple_of(2),
            ..StackCount::default()
        };
        let all: Vec<StackCount> = (0..60).map(stack).collect();
        let told = commonest(all.clone());
        assert_eq!(told.len(), MOST_TOLD + 2);
        let sum = |stacks: &[StackCount]| stacks.iter().map(|stack| stack.count).sum::<u64>();
        assert_eq!(sum(&told), sum(&all));
        assert!(told[MOST_TOLD].frames.is_empty() && told[0].count == 60);
    }
}
