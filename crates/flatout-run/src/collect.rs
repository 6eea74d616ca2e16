//! Rings become the record: each tick the counters' growth is a line of steps, the messages are events and facts.
//!
//! A process that trains has a lane: rank N's folder, else the record itself for the first, further folders for others that train
//! at the same time. Loader workers have none: what they did is added up and told with the process that feeds on them.

mod collectives;
mod growth;
mod lane;
mod loaders;

use crate::ring::{Message, Ring, WindowMessage};
use crate::stacks::Watch;
use collectives::Collectives;
use flatout_record::{
    Event, EventKind, Fact, GpuWindow, InsideCollective, RecordWriter, StackTick, StalledRank, StepTick,
    StepTimeline,
};
use growth::Growth;
use lane::{Lanes, Own, Rank};
use loaders::Loaders;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// How many steps the program did, and since when: for the live finding and the end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    pub steps: u64,
    /// Seconds since the start at the first step seen.
    pub first_step_s: Option<f64>,
    /// Processes that spoke through a ring.
    pub probes: usize,
    pub lost: u64,
}

pub struct Collector {
    rings_folder: PathBuf,
    clock: Clock,
    known: HashSet<PathBuf>,
    processes: BTreeMap<PathBuf, Process>,
    loaders: Loaders,
    collectives: Collectives,
    /// When collectives are told again.
    collectives_due_s: f64,
    lanes: Lanes,
    progress: Progress,
    /// GPU windows that closed, by process.
    closed: Vec<(u32, WindowMessage)>,
    last_tick_s: f64,
    /// All counters that only grow while a program gets on, and when they last did.
    pulse: u64,
    pulse_s: f64,
    /// Every rank that ever trained or joined the process group, with the last that is known of it.
    ranks: BTreeMap<u32, StalledRank>,
}

struct Process {
    ring: Ring,
    growth: Growth,
    parent: u32,
    rank: Option<u32>,
    /// `LOCAL_RANK`.
    local_rank: Option<u32>,
    /// Whether the launcher gave the rank.
    from_launcher: bool,
    /// Ranks on this machine, where the launcher tells.
    local: Option<u32>,
    worker: bool,
    /// Spoken before it was clear which lane it belongs to.
    waiting: Vec<Message>,
    gone: bool,
}

impl Process {
    fn rank(&self) -> Option<Rank> {
        Some(Rank {
            number: self.rank?,
            local: self.local_rank,
            from_launcher: self.from_launcher,
        })
    }
}

/// The record's clock against the monotonic one that the probe stamps with.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: Instant,
    started_ns: u64,
}

impl Clock {
    /// A record that began at this moment.
    pub fn since(started: Instant) -> Self {
        let passed = started.elapsed().as_nanos() as u64;
        Self {
            started,
            started_ns: monotonic_ns().saturating_sub(passed),
        }
    }

    pub fn elapsed_s(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// Seconds since the record's start at a stamp.
    pub fn seconds(&self, at_ns: u64) -> f64 {
        at_ns.saturating_sub(self.started_ns) as f64 / 1e9
    }
}

pub(crate) fn monotonic_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel fills the struct on this stack.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

impl Collector {
    pub fn new(rings_folder: PathBuf, started: Instant) -> Self {
        Self {
            rings_folder,
            clock: Clock::since(started),
            known: HashSet::new(),
            processes: BTreeMap::new(),
            loaders: Loaders::default(),
            collectives: Collectives::default(),
            collectives_due_s: 0.0,
            lanes: Lanes::of_task(Own::from_environment()),
            progress: Progress::default(),
            closed: Vec::new(),
            last_tick_s: 0.0,
            pulse: 0,
            pulse_s: 0.0,
            ranks: BTreeMap::new(),
        }
    }

    pub fn progress(&self) -> Progress {
        self.progress
    }

    pub fn elapsed_s(&self) -> f64 {
        self.clock.elapsed_s()
    }

    /// Empties the rings, so that they never run full. Cheap: called several times a second.
    pub fn poll(&mut self, writer: &mut RecordWriter) {
        self.look_for_rings();
        for process in self.processes.values_mut() {
            let messages = process.ring.drain();
            self.progress.lost += std::mem::take(&mut process.ring.lost);
            for message in messages {
                if let Some(window) = message.window {
                    self.closed.push((process.ring.pid(), window));
                } else if let Some(hello) = &message.hello {
                    (process.parent, process.rank) = (hello.parent, hello.rank);
                    (process.local_rank, process.from_launcher) = (hello.local_rank, hello.rank.is_some());
                    (process.local, process.worker) = (hello.local, hello.worker);
                } else if let Some(group) = message.group {
                    // Where no launcher told it, the program itself does.
                    process.rank = process.rank.or(Some(group.rank));
                    let pid = process.ring.pid();
                    self.collectives.join(pid, group.world, process.local);
                    // What came before, imports for the most part, is no stall.
                    self.pulse_s = self.clock.elapsed_s();
                } else if let Some(site) = message.collective {
                    self.collectives.learn(process.ring.pid(), site);
                } else {
                    process.waiting.push(message);
                }
            }
            // A process without a lane may be a loader's worker for ever; what it says waits for its first step.
            let lane = self.lanes.known(process.ring.path());
            if lane.is_some() || process.waiting.len() > MOST_WAITING {
                let lane = lane.unwrap_or(0);
                for message in process.waiting.drain(..) {
                    write_message(self.lanes.writer(lane, writer), &self.clock, message);
                }
            }
            let pid = process.ring.pid();
            if let Some(next) = self.collectives.next_of(pid) {
                self.collectives.add(pid, process.ring.stamps(next));
            }
        }
        self.collectives.align();
    }

    /// Ends a tick: what the counters grew by becomes a line a lane.
    pub fn tick(&mut self, writer: &mut RecordWriter) {
        self.poll(writer);
        let t = self.clock.elapsed_s();
        let dt = t - std::mem::replace(&mut self.last_tick_s, t);
        let now_ns = monotonic_ns();
        let mut grown_of = Vec::new();
        let mut pulse = self.processes.len() as u64;
        for (path, process) in &mut self.processes {
            let counters = process.ring.counters();
            pulse = pulse.wrapping_add(counters.progress());
            let alive = !counters.closed && !process.gone;
            let grown = process.growth.take(&counters, alive.then_some(now_ns));
            // A loader's worker never trains: what it prepared belongs to the process that made it.
            let trains = process.growth.trains();
            let owner = if trains {
                process.ring.pid()
            } else {
                process.parent
            };
            self.loaders.add(owner, &grown.loaders);
            if process.worker {
                self.loaders
                    .add_garbage(owner, &grown.loaders, grown.collections_ns);
            }
            if trains {
                let lane = self.lanes.of(path, process.rank());
                grown_of.push((process.ring.pid(), lane, grown));
            }
        }
        // Two ticks far apart: everything was suspended.
        if std::mem::replace(&mut self.pulse, pulse) != pulse || dt > LONGEST_TICK_S {
            self.pulse_s = t;
        }
        self.remember_ranks(now_ns);
        // What waited for a lane comes before what this tick tells.
        self.poll(writer);
        let tell_collectives = self.collectives_are_due(t);
        for (pid, lane, grown) in grown_of {
            if grown.steps > 0 && self.progress.first_step_s.is_none() {
                self.progress.first_step_s = Some(t);
            }
            if lane == 0 {
                self.progress.steps += grown.steps;
            }
            let line = self.lanes.writer(lane, writer);
            if let Some(tick) = grown.tick(t, dt) {
                line.steps(&tick);
            }
            let events = self.loaders.events_of(pid).into_iter().chain(grown.collections());
            events.for_each(|kind| line.event(&Event { t, kind }));
            if tell_collectives {
                let events = self.collectives.events_of(pid).into_iter();
                events.for_each(|kind| line.event(&Event { t, kind }));
            }
        }
        self.forget_the_dead(writer);
    }

    /// The end: the last growth, and what was said by processes that never trained.
    pub fn finish(&mut self, writer: &mut RecordWriter) {
        self.collectives_due_s = 0.0;
        self.tick(writer);
        for process in self.processes.values_mut() {
            for message in process.waiting.drain(..) {
                write_message(writer, &self.clock, message);
            }
        }
        if self.progress.lost > 0 {
            let kind = EventKind::Note {
                source: "flatout".into(),
                text: format!("{} messages of the probe were lost", self.progress.lost),
            };
            let t = self.clock.elapsed_s();
            writer.event(&Event { t, kind });
        }
        self.lanes.finish();
    }

    /// Seconds without a step, a batch or a collective; `None` before the first step, unless a rank waits in a collective.
    pub fn quiet_s(&self) -> Option<f64> {
        let waits = self.ranks.values().any(|rank| rank.inside.is_some());
        let begun = self.progress.first_step_s.is_some() || waits;
        begun.then(|| self.clock.elapsed_s() - self.pulse_s)
    }

    /// Where the ranks are, without their stacks. Without ranks, the process that trains.
    pub fn ranks(&self) -> Vec<StalledRank> {
        self.ranks.values().cloned().collect()
    }

    fn remember_ranks(&mut self, now_ns: u64) {
        for rank in self.ranks.values_mut() {
            rank.ended = true;
        }
        for (path, process) in &self.processes {
            let pid = process.ring.pid();
            let lane = self.lanes.known(path);
            let member = self.collectives.next_of(pid).is_some();
            if process.gone || process.worker || lane.is_none() && !member {
                continue;
            }
            let inside = process.ring.in_collective().and_then(|(number, since_ns)| {
                let site = self.collectives.site(pid, number)?;
                Some(InsideCollective {
                    op: site.op.clone(),
                    place: site.place.clone(),
                    seconds: now_ns.saturating_sub(since_ns) as f64 / 1e9,
                })
            });
            let rank = process.rank.or(lane).unwrap_or(0);
            let now = StalledRank {
                rank,
                pid,
                steps: process.ring.steps(),
                collectives: process.ring.collectives(),
                inside,
                ..StalledRank::default()
            };
            self.ranks.insert(rank, now);
        }
    }

    /// The processes whose stacks tell something: all that speak, but of a loader's workers one.
    pub fn watches(&self) -> Vec<Watch> {
        let mut fed = HashSet::new();
        let alive = self.processes.iter().filter(|(_, process)| !process.gone);
        let one_worker = alive.filter(|(_, process)| !process.worker || fed.insert(process.parent));
        let watch = |(path, process): (&PathBuf, &Process)| Watch {
            pid: process.ring.pid(),
            lane: self.lanes.known(path).or(process.rank).unwrap_or(0),
            worker: process.worker,
            ring: Some(path.clone()),
        };
        one_worker.map(watch).collect()
    }

    /// Writes a line of stacks where its process belongs.
    pub fn write_stacks(&mut self, lane: u32, tick: &StackTick, writer: &mut RecordWriter) {
        // A rank that has not stepped yet has no folder, and may never have one.
        if lane == 0 || self.lanes.has(lane) {
            self.lanes.writer(lane, writer).stacks(tick);
        }
    }

    /// Asks every process that trains to open the GPU window of this number; with 0 to close it.
    pub fn request_window(&self, number: u64) {
        for process in self
            .processes
            .values()
            .filter(|process| !process.gone && !process.worker)
        {
            process.ring.request_window(number);
        }
    }

    /// GPU windows that closed since the last call.
    pub fn take_closed_windows(&mut self) -> Vec<(u32, WindowMessage)> {
        std::mem::take(&mut self.closed)
    }

    /// Writes a GPU window where its process belongs.
    pub fn write_window(&mut self, pid: u32, window: &GpuWindow, writer: &mut RecordWriter) {
        let lane = self.lane_of(pid);
        self.lanes.writer(lane, writer).window(window);
    }

    /// Writes a step's events where its process belongs.
    pub fn write_timeline(&mut self, pid: u32, timeline: &StepTimeline, writer: &mut RecordWriter) {
        let lane = self.lane_of(pid);
        self.lanes.writer(lane, writer).timeline(timeline);
    }

    /// Seconds since the record's start at an instant of the monotonic clock.
    pub fn seconds(&self, at_ns: u64) -> f64 {
        self.clock.seconds(at_ns)
    }

    fn lane_of(&self, pid: u32) -> u32 {
        self.processes
            .iter()
            .find(|(_, process)| process.ring.pid() == pid)
            .and_then(|(path, _)| self.lanes.known(path))
            .unwrap_or(0)
    }

    /// Tells the programs how busy the GPU is.
    pub fn tell_gpu_utilization(&self, ratio: Option<f64>) {
        for process in self.processes.values().filter(|process| !process.gone) {
            process.ring.tell_gpu_utilization(ratio);
        }
    }

    fn look_for_rings(&mut self) {
        let Ok(entries) = std::fs::read_dir(&self.rings_folder) else {
            return;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.extension().is_none_or(|extension| extension != "ring") || self.known.contains(&path) {
                continue;
            }
            self.known.insert(path.clone());
            if let Some(ring) = Ring::open(&path) {
                self.progress.probes += 1;
                let process = Process {
                    ring,
                    growth: Growth::default(),
                    parent: 0,
                    rank: None,
                    local_rank: None,
                    from_launcher: false,
                    local: None,
                    worker: false,
                    waiting: Vec::new(),
                    gone: false,
                };
                self.processes.insert(path, process);
            }
        }
    }

    /// A process that ended keeps its ring for one more tick; then its file goes, so that shared memory does not fill up
    /// with the rings of workers that are made anew each epoch.
    fn forget_the_dead(&mut self, writer: &mut RecordWriter) {
        let mut forgotten = Vec::new();
        for (path, process) in &mut self.processes {
            let exists = Path::new("/proc").join(process.ring.pid().to_string()).exists();
            if !exists && process.gone && (process.waiting.is_empty() || !process.growth.trains()) {
                let notes = process.waiting.drain(..);
                let notes = notes.filter(|message| matches!(message.event, Some(EventKind::Note { .. })));
                notes.for_each(|message| write_message(writer, &self.clock, message));
                forgotten.push(path.clone());
            }
            process.gone = !exists;
        }
        for path in forgotten {
            let _ = std::fs::remove_file(&path);
            self.lanes.leave(&path);
            if let Some(process) = self.processes.remove(&path) {
                self.collectives.leave(process.ring.pid());
            }
        }
    }

    /// Whether the collectives since the last time are written down now: each second at first, then every ten.
    fn collectives_are_due(&mut self, t: f64) -> bool {
        let since_s = t - self.progress.first_step_s.unwrap_or(t);
        let due = t >= self.collectives_due_s;
        if due {
            self.collectives_due_s = t + if since_s < SOON_S { 0.0 } else { LATER_S };
        }
        due
    }
}

/// A longer tick than this is a suspension's.
const LONGEST_TICK_S: f64 = 15.0;
/// How long after the first step collectives are told each second, and how often after that.
const SOON_S: f64 = 60.0;
const LATER_S: f64 = 10.0;

/// What a process without a lane may say before it is written anyway.
const MOST_WAITING: usize = 2000;

fn write_message(writer: &mut RecordWriter, clock: &Clock, message: Message) {
    let t = clock.seconds(message.at);
    if let Some(kind) = message.event {
        writer.event(&Event { t, kind });
    }
    if let Some(fact) = message.fact {
        if fact.key == "python.version" || fact.key == "torch.version" {
            let name = fact.key.split('.').next().unwrap_or_default().to_owned();
            if let Some(version) = fact.value.as_str() {
                let version = version.to_owned();
                writer.update_info(|info| {
                    info.versions.insert(name, version);
                });
            }
        }
        writer.fact(&Fact {
            t,
            key: fact.key,
            value: fact.value,
            scope: fact.scope,
            place: fact.place,
        });
    }
}

/// Whether a tick says anything: a process that is starting up only passes time.
fn says_something(tick: &StepTick) -> bool {
    tick.steps > 0 || tick.phases.values().any(|time| time.ms > 0.0)
}
