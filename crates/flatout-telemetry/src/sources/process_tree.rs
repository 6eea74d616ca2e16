//! A process and its descendants: CPU, memory, page faults, switches, I/O, state, and the coming and going of children (loader workers).
//!
//! Reading another process's files can block on its locks, so this runs in a thread of its own.

pub(crate) mod member;
mod page;
mod stat;

use super::background::{Background, Port, Reading};
use super::{Source, TickTime};
use flatout_record::{EventKind, PageInfo, ProcessSample, RunInfo, Sample};
use member::Member;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

/// See `host::FASTEST`: CPU time comes in steps of 10 ms.
const FASTEST: Duration = Duration::from_millis(200);
/// Threads other than the main one rarely start processes; their lists are read this often.
const ALL_THREADS_EVERY: Duration = Duration::from_secs(1);

/// Whether there is such a process, dead ones that wait for their parent not counted.
pub fn exists(pid: u32) -> bool {
    fs::read(format!("/proc/{pid}/stat"))
        .ok()
        .and_then(|text| stat::parse(&text).map(|stat| stat.state != b'Z'))
        .unwrap_or(false)
}

#[derive(Default)]
pub struct TreeReading {
    processes: BTreeMap<u32, ProcessSample>,
    events: Vec<EventKind>,
}

impl Reading for TreeReading {
    fn absorb(&mut self, newer: Self) {
        self.processes = newer.processes;
        self.events.extend(newer.events);
    }
}

pub struct ProcessTreeSource {
    background: Option<Background<TreeReading>>,
    last: BTreeMap<u32, ProcessSample>,
    page: Option<PageInfo>,
}

impl ProcessTreeSource {
    pub fn start(root: u32) -> Self {
        let background = Background::start("processes", move |port| watch(root, port));
        if let Err(error) = &background {
            log::warn!("the process tree of {root} is not watched: {error}");
        }
        Self {
            background: background.ok(),
            last: BTreeMap::new(),
            page: page::cost(),
        }
    }
}

impl Source for ProcessTreeSource {
    fn begin(&mut self) {
        if let Some(background) = &self.background {
            background.ask();
        }
    }

    fn read(&mut self, tick: &TickTime, sample: &mut Sample, events: &mut Vec<EventKind>) {
        let answer = self
            .background
            .as_ref()
            .and_then(|background| background.take(tick.patience));
        if let Some((reading, _)) = answer {
            self.last = reading.processes;
            events.extend(reading.events);
        }
        sample.processes.clone_from(&self.last);
    }

    fn describe(&self, info: &mut RunInfo) {
        if let Some(host) = &mut info.host {
            host.page = host.page.or(self.page);
        }
        if self.background.is_none() {
            info.unknown.push("processes: no thread could be started".into());
        }
    }
}

fn watch(root: u32, mut port: Port<TreeReading>) {
    let mut tree = Tree::new(root);
    while port.wait() {
        port.publish(tree.read(Instant::now()));
    }
}

struct Tree {
    root: u32,
    members: BTreeMap<u32, Member>,
    last: Option<Instant>,
    all_threads: Option<Instant>,
    processes: BTreeMap<u32, ProcessSample>,
    buffer: Vec<u8>,
}

impl Tree {
    fn new(root: u32) -> Self {
        Self {
            root,
            members: BTreeMap::new(),
            last: None,
            all_threads: None,
            processes: BTreeMap::new(),
            buffer: Vec::new(),
        }
    }

    fn read(&mut self, now: Instant) -> TreeReading {
        let mut events = Vec::new();
        let passed = self.last.map(|last| now.saturating_duration_since(last));
        if passed.is_none_or(|passed| passed + Duration::from_micros(500) >= FASTEST) {
            self.last = Some(now);
            let deep = self
                .all_threads
                .is_none_or(|last| now.saturating_duration_since(last) >= ALL_THREADS_EVERY);
            if deep {
                self.all_threads = Some(now);
            }
            self.refresh(now, passed, deep, &mut events);
        }
        TreeReading {
            processes: self.processes.clone(),
            events,
        }
    }

    fn refresh(&mut self, now: Instant, passed: Option<Duration>, deep: bool, events: &mut Vec<EventKind>) {
        let first = self.members.is_empty();
        let mut alive = BTreeSet::new();
        let mut queue = vec![self.root];
        // Children reparented to init (their parent died) are found no more, but those known stay members.
        queue.extend(self.members.keys().copied());
        while let Some(pid) = queue.pop() {
            if !alive.insert(pid) {
                continue;
            }
            let known = self.members.get_mut(&pid);
            let values = match known {
                Some(member) => member.read(now, passed, &mut self.buffer),
                None => Member::open(pid, &mut self.buffer).and_then(|mut member| {
                    let values = member.read(now, None, &mut self.buffer);
                    self.members.insert(pid, member);
                    if !first {
                        events.push(process_event(pid, true));
                    }
                    values
                }),
            };
            let Some(values) = values else {
                alive.remove(&pid);
                continue;
            };
            self.processes.insert(pid, values);
            if let Some(member) = self.members.get(&pid) {
                member.children(deep, &mut self.buffer, &mut queue);
            }
        }
        let gone: Vec<u32> = self
            .members
            .keys()
            .copied()
            .filter(|pid| !alive.contains(pid))
            .collect();
        for pid in gone {
            self.members.remove(&pid);
            self.processes.remove(&pid);
            events.push(process_event(pid, false));
        }
    }
}

fn process_event(pid: u32, began: bool) -> EventKind {
    EventKind::Process {
        pid,
        began,
        role: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn children_come_and_go() {
        let mut tree = Tree::new(std::process::id());
        let start = Instant::now();
        let first = tree.read(start);
        let own = &first.processes[&std::process::id()];
        assert!(own.rss_bytes.unwrap() > 0 && own.threads.unwrap() >= 1);
        assert!(own.command.as_ref().is_some_and(|command| !command.is_empty()));
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let second = tree.read(start + Duration::from_secs(1));
        assert!(
            second.processes.contains_key(&child.id()),
            "{:?}",
            second.processes.keys()
        );
        assert!(second.events.contains(&process_event(child.id(), true)));
        let own = &second.processes[&std::process::id()];
        assert!(own.cpus.is_some() && own.faults_s.is_some());
        assert!(own.kernel_cpus.unwrap() <= own.cpus.unwrap() + 0.01);
        // Rates need two readings: one that has just begun has none, not 0.
        let new = &second.processes[&child.id()];
        assert!(new.faults_s.is_none() && new.kernel_cpus.is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        let third = tree.read(start + Duration::from_secs(2));
        assert!(!third.processes.contains_key(&child.id()));
        assert!(third.events.contains(&process_event(child.id(), false)));
    }

    #[test]
    fn a_process_that_is_not_there() {
        assert!(exists(std::process::id()));
        assert!(!exists(u32::MAX));
        assert!(Tree::new(u32::MAX).read(Instant::now()).processes.is_empty());
    }
}
