//! The run record of a training: the phases of any other job, so that the same rules read it. The training thread only counts;
//! `writing` has a thread of its own for files and sources.

mod tick;
mod writing;

use crate::TrainError;
use flatout_core::error::FileError;
use flatout_record::{Event, EventKind, ExitInfo, Fact, Phase, RecordWriter, RunInfo, SCHEMA, Sample};
use flatout_telemetry::{Sampler, SamplerOptions};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tick::Tick;
use writing::{Watched, Writing};

/// The training thread's side: it counts, and hands its counts over once a tick.
pub struct Recorder {
    folder: PathBuf,
    shared: Arc<Shared>,
    writing: Writing,
    begun: Instant,
    tick_began: f64,
    tick: Box<Tick>,
    loss: Option<f64>,
    /// Readings of the loss in this tick: their sum and number. One step's loss alone says little.
    losses: (f64, u64),
    /// What the device had worked in all, at the last tick and now.
    busy_before_ms: f64,
    busy_ms: Option<f64>,
}

/// What both threads touch.
struct Shared {
    writer: Mutex<RecordWriter>,
    watched: Mutex<Watched>,
}

/// What was last read of the device that trains. Unknown is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DeviceReading {
    pub busy_ratio: Option<f64>,
    pub memory_bytes: Option<u64>,
    pub power_w: Option<f64>,
}

/// Seconds of one tick.
const TICK_S: f64 = 1.0;

impl Recorder {
    pub fn create(folder: &Path, name: &str) -> Result<Self, TrainError> {
        let sampler = Sampler::start(&SamplerOptions {
            pid: Some(std::process::id()),
            ..SamplerOptions::default()
        })
        .ok();
        let mut info = RunInfo {
            schema: SCHEMA,
            id: name.to_owned(),
            name: name.to_owned(),
            kind: "train".to_owned(),
            command: flatout_core::secrets::own_command(),
            folder: std::env::current_dir().ok(),
            interval_s: Some(TICK_S),
            ..RunInfo::default()
        };
        info.versions
            .insert("flatout".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        if let Some(sampler) = &sampler {
            info.started_unix_ms = sampler.started_unix_ms();
            sampler.describe(&mut info);
        }
        let shared = Arc::new(Shared {
            writer: Mutex::new(RecordWriter::create(folder, info)?),
            watched: Mutex::default(),
        });
        let writing =
            Writing::start(shared.clone(), sampler).map_err(|source| FileError::writing(folder, source))?;
        Ok(Self {
            folder: folder.to_owned(),
            shared,
            writing,
            begun: Instant::now(),
            tick_began: 0.0,
            tick: Box::new(Tick::new()),
            loss: None,
            losses: (0.0, 0),
            busy_before_ms: 0.0,
            busy_ms: None,
        })
    }

    pub fn elapsed_s(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    pub fn fact(&mut self, key: &str, value: impl Into<serde_json::Value>) {
        let t = self.elapsed_s();
        self.shared.writer().fact(&Fact {
            t,
            key: key.to_owned(),
            value: value.into(),
            scope: None,
            place: None,
        });
    }

    /// Time that the main thread spent in a phase.
    pub fn add(&mut self, phase: Phase, seconds: f64) {
        self.tick.add(phase, seconds);
    }

    /// A step ended.
    pub fn step(&mut self, samples: usize, seconds: f64) {
        self.tick.step(samples, seconds);
        self.flush_if_due();
    }

    pub fn loss(&mut self, loss: f64) {
        self.losses = (self.losses.0 + loss, self.losses.1 + 1);
        self.loss = Some(self.losses.0 / self.losses.1 as f64);
    }

    pub fn event(&mut self, kind: EventKind) {
        let t = self.elapsed_s();
        self.shared.writer().event(&Event { t, kind });
    }

    /// Whether the next step ends a tick: what costs something to ask for is asked for then.
    pub fn is_due(&self) -> bool {
        self.elapsed_s() - self.tick_began >= TICK_S
    }

    /// What the device has worked since its session began, where it says so. A session that was opened anew begins at 0.
    pub fn busy(&mut self, total_ms: Option<f64>) {
        if total_ms.is_some_and(|total| total < self.busy_before_ms) {
            self.busy_before_ms = 0.0;
        }
        self.busy_ms = total_ms;
    }

    /// Hands over the steps of a tick that is over. Allocates nothing and waits for nobody.
    pub fn flush_if_due(&mut self) {
        if !self.is_due() {
            return;
        }
        let now = self.end_tick();
        if self.writing.exchange(&mut self.tick) {
            self.tick_began = now;
            self.losses = (0.0, 0);
            self.busy_before_ms = self.busy_ms.take().unwrap_or(self.busy_before_ms);
        }
    }

    fn end_tick(&mut self) -> f64 {
        let now = self.elapsed_s();
        (self.tick.t, self.tick.dt) = (now, now - self.tick_began);
        // Unknown where nobody asked the device in this tick; the next reading then stands for both.
        self.tick.busy_ms = self.busy_ms.map(|total| total - self.busy_before_ms);
        self.tick.loss = self.loss;
        now
    }

    /// Which device the next steps run on: `cpu`, `cuda:1`.
    pub fn watch(&mut self, device: &str) {
        *self.shared.watched() = Watched {
            gpu: device
                .strip_prefix("cuda:")
                .and_then(|number| number.parse().ok()),
            ..Watched::default()
        };
    }

    pub fn device(&self) -> DeviceReading {
        let watched = self.shared.watched();
        DeviceReading {
            busy_ratio: watched.own_busy_ratio.or(watched.reading.busy_ratio),
            ..watched.reading
        }
    }

    pub fn finish(&mut self, code: i32) {
        self.end_tick();
        let last = std::mem::replace(&mut self.tick, Box::new(Tick::new()));
        self.writing.finish(last);
        let t = self.elapsed_s();
        self.shared.writer().finish(ExitInfo {
            t,
            code: Some(code),
            signal: None,
        });
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Goes on in another folder.
    pub fn move_to(&mut self, folder: &Path) -> Result<(), TrainError> {
        self.shared.writer().move_to(folder)?;
        folder.clone_into(&mut self.folder);
        Ok(())
    }
}

/// A GPU is busy as its driver says; the CPU as the share of the usable CPUs that this program keeps busy.
fn reading(sample: &Sample, gpu: Option<usize>, usable_cpus: f64) -> DeviceReading {
    if let Some(number) = gpu {
        let Some(gpu) = sample.gpus.values().nth(number) else {
            return DeviceReading::default();
        };
        return DeviceReading {
            busy_ratio: gpu.util,
            memory_bytes: gpu.mem_used_bytes,
            power_w: gpu.power_w,
        };
    }
    let Some(own) = sample.processes.get(&std::process::id()) else {
        return DeviceReading::default();
    };
    DeviceReading {
        busy_ratio: own.cpus.map(|cpus| (cpus / usable_cpus).min(1.0)),
        memory_bytes: own.rss_bytes,
        power_w: None,
    }
}
