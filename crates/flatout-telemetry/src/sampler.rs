//! The sampler: reads all sources on a drift-free schedule and hands a [`Tick`] to whoever drives it.
//!
//! It neither draws nor writes nor judges. A command with a loop of its own asks [`Sampler::remaining`] and [`Sampler::poll`];
//! one without calls [`Sampler::wait`]. A source that blocks does not delay the tick.

use crate::scope::GpuScope;
use crate::sources::gpus::GpuState;
use crate::sources::{self, Source, TickTime};
use flatout_core::cpus::UsableCpus;
use flatout_core::{Explain, Message, explained, message};
use flatout_record::{Event, HostInfo, RunInfo, SCHEMA, Sample};
use std::time::{Duration, Instant, SystemTime};

mod host_info;
mod job;
mod schedule;

pub use job::job_from_environment;
pub use schedule::Schedule;

/// Below this the driver answers with the same numbers again, and asking costs the program that is watched.
pub const SHORTEST_INTERVAL: Duration = Duration::from_millis(50);

/// A source is waited for at most this share of the interval, and at most [`LONGEST_PATIENCE`].
const PATIENCE_SHARE: u32 = 4;
const LONGEST_PATIENCE: Duration = Duration::from_millis(20);
/// The first sample waits for the driver a little longer: an empty first screen helps nobody.
const FIRST_PATIENCE: Duration = Duration::from_millis(40);

#[derive(Clone, Debug)]
pub struct SamplerOptions {
    pub interval: Duration,
    /// Which GPUs; `None` leaves GPUs alone altogether.
    pub gpus: Option<GpuScope>,
    /// Whether the machine is read.
    pub host: bool,
    /// The root of a process tree to watch.
    pub pid: Option<u32>,
}

impl Default for SamplerOptions {
    /// All GPUs the environment leaves visible, and the host, every second.
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(1),
            gpus: Some(GpuScope::from_environment()),
            host: true,
            pid: None,
        }
    }
}

#[derive(Debug)]
pub enum SamplerError {
    Interval { seconds: f64 },
    NoSuchProcess { pid: u32 },
}

impl Explain for SamplerError {
    fn message(&self) -> Message {
        match self {
            Self::Interval { seconds } => {
                message!(en: "{seconds} s is not a valid interval", zh: "采样间隔不能是 {seconds} 秒")
            }
            Self::NoSuchProcess { pid } => message!(en: "there is no process {pid}", zh: "进程 {pid} 不存在"),
        }
    }

    fn hint(&self) -> Option<Message> {
        Some(match self {
            Self::Interval { .. } => {
                message!(en: "use 0.05 to 86400 seconds: --interval 0.1", zh: "请给出 0.05 到 86400 之间的秒数，例如 --interval 0.1")
            }
            Self::NoSuchProcess { .. } => {
                message!(en: "list the processes on the GPU with: flatout doctor", zh: "用 flatout doctor 查看 GPU 上的进程")
            }
        })
    }
}
explained!(SamplerError);

/// Reads `--interval`.
pub fn interval_from_seconds(seconds: f64) -> Result<Duration, SamplerError> {
    if (SHORTEST_INTERVAL.as_secs_f64()..=86_400.0).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(SamplerError::Interval { seconds })
    }
}

/// What one tick brought.
#[derive(Clone, Debug, Default)]
pub struct Tick {
    pub sample: Sample,
    pub events: Vec<Event>,
    /// [`Sampler::describe`] has something new to say: a GPU was named, a value turned out to be unreadable.
    pub described: bool,
    /// The root of the watched process tree has ended.
    pub ended: bool,
}

pub struct Sampler {
    sources: Vec<Box<dyn Source>>,
    schedule: Schedule,
    started_unix_ms: u64,
    pid: Option<u32>,
    pid_seen: bool,
    ticks: u64,
    revision: u64,
}

impl Sampler {
    pub fn start(options: &SamplerOptions) -> Result<Self, SamplerError> {
        interval_from_seconds(options.interval.as_secs_f64())?;
        if let Some(pid) = options.pid
            && !sources::process_tree::exists(pid)
        {
            return Err(SamplerError::NoSuchProcess { pid });
        }
        Ok(Self {
            sources: sources::all(options),
            schedule: Schedule::new(Instant::now(), options.interval),
            started_unix_ms: SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)),
            pid: options.pid,
            pid_seen: false,
            ticks: 0,
            revision: 0,
        })
    }

    /// Milliseconds since 1970 at `t = 0`.
    pub fn started_unix_ms(&self) -> u64 {
        self.started_unix_ms
    }

    /// Seconds since the start, the clock of every sample.
    pub fn elapsed_s(&self) -> f64 {
        self.schedule.started().elapsed().as_secs_f64()
    }

    pub fn interval(&self) -> Duration {
        self.schedule.interval()
    }

    pub fn ticks(&self) -> u64 {
        self.ticks
    }

    /// Ticks that could not be taken in time, because whoever drives the sampler was busy or the machine was.
    pub fn missed(&self) -> u64 {
        self.schedule.missed()
    }

    /// How long until the next tick is due.
    pub fn remaining(&self) -> Duration {
        self.schedule.remaining(Instant::now())
    }

    /// The tick that is due, if one is. Does not wait but for the sources' patience.
    pub fn poll(&mut self) -> Option<Tick> {
        let now = Instant::now();
        let elapsed = self.schedule.take(now)?;
        let interval = self.schedule.interval();
        let patience = if self.ticks == 0 {
            FIRST_PATIENCE
        } else {
            (interval / PATIENCE_SHARE).min(LONGEST_PATIENCE)
        };
        let time = TickTime {
            now,
            interval,
            patience,
        };
        let mut sample = Sample {
            t: elapsed.as_secs_f64(),
            ..Sample::default()
        };
        let mut kinds = Vec::new();
        for source in &mut self.sources {
            source.begin();
        }
        // In reverse, so that the sources that read at once do so while the others' threads work.
        for source in self.sources.iter_mut().rev() {
            source.read(&time, &mut sample, &mut kinds);
        }
        self.ticks += 1;
        let revision = self.sources.iter().map(|source| source.revision()).sum();
        let described = std::mem::replace(&mut self.revision, revision) != revision;
        let t = sample.t;
        Some(Tick {
            ended: self.ended(&sample),
            sample,
            events: kinds.into_iter().map(|kind| Event { t, kind }).collect(),
            described,
        })
    }

    fn ended(&mut self, sample: &Sample) -> bool {
        let Some(pid) = self.pid else {
            return false;
        };
        self.pid_seen |= sample.processes.contains_key(&pid);
        self.pid_seen && !sample.processes.contains_key(&pid) && !sources::process_tree::exists(pid)
    }

    /// Sleeps until the next tick is due and takes it.
    pub fn wait(&mut self) -> Tick {
        loop {
            if let Some(tick) = self.poll() {
                return tick;
            }
            std::thread::sleep(self.remaining());
        }
    }

    /// What is known of the GPUs by now. Waits at most `patience` while the driver starts.
    pub fn gpus(&self, patience: Duration) -> GpuState {
        let deadline = Instant::now() + patience;
        loop {
            let state = self.sources.iter().find_map(|source| source.gpus());
            match state {
                Some(GpuState::Starting) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Some(state) => return state,
                None => return GpuState::NotAsked,
            }
        }
    }

    /// Fills in what this machine is: host, GPUs, versions, job, interval, and why things are unknown.
    pub fn describe(&self, info: &mut RunInfo) {
        info.schema = SCHEMA;
        info.started_unix_ms = self.started_unix_ms;
        info.interval_s = Some(self.schedule.interval().as_secs_f64());
        if info.host.is_none() {
            info.host = Some(HostInfo {
                name: host_info::name(),
                kernel: host_info::kernel(),
                cpus: UsableCpus::here(),
                memory_bytes: host_info::memory_bytes(),
                page: None,
            });
        }
        if info.job.is_none() {
            info.job = job_from_environment();
        }
        info.versions
            .entry("flatout".into())
            .or_insert_with(|| env!("CARGO_PKG_VERSION").into());
        for source in &self.sources {
            source.describe(info);
        }
    }
}
