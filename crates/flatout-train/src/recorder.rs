//! The run record of a training: the phases of any other job, so that the same rules read it.

use crate::TrainError;
use flatout_core::cpus::UsableCpus;
use flatout_core::histogram::Histogram;
use flatout_telemetry::record::{ExitInfo, RunInfo, SCHEMA};
use flatout_telemetry::{
    Event, EventKind, Fact, Phase, PhaseTime, RecordWriter, Sample, Sampler, SamplerOptions, StepTick,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

pub struct Recorder {
    writer: RecordWriter,
    sampler: Option<Sampler>,
    begun: Instant,
    /// The tick that is being filled.
    tick_began: f64,
    steps: u64,
    samples: u64,
    phases: BTreeMap<Phase, PhaseTime>,
    step_hist: Histogram,
    loss: Option<f64>,
    /// What the device had worked in all, at the last tick and now.
    busy_before_ms: f64,
    busy_ms: Option<f64>,
    /// Which of the visible GPUs trains; `None` for the CPU.
    gpu: Option<usize>,
    threads: f64,
    device: DeviceReading,
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
            command: std::env::args().collect(),
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
        Ok(Self {
            writer: RecordWriter::create(folder, info)?,
            sampler,
            begun: Instant::now(),
            tick_began: 0.0,
            steps: 0,
            samples: 0,
            phases: BTreeMap::new(),
            step_hist: Histogram::default(),
            loss: None,
            busy_before_ms: 0.0,
            busy_ms: None,
            gpu: None,
            threads: UsableCpus::here().count() as f64,
            device: DeviceReading::default(),
        })
    }

    pub fn elapsed_s(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    pub fn fact(&mut self, key: &str, value: impl Into<serde_json::Value>) {
        let t = self.elapsed_s();
        self.writer.fact(&Fact {
            t,
            key: key.to_owned(),
            value: value.into(),
            scope: None,
            place: None,
        });
    }

    /// Time that the main thread spent in a phase.
    pub fn add(&mut self, phase: Phase, seconds: f64) {
        let entry = self.phases.entry(phase).or_default();
        entry.ms += seconds * 1e3;
        entry.hist.add_ms(seconds * 1e3);
    }

    /// A step ended.
    pub fn step(&mut self, samples: usize, seconds: f64) {
        self.steps += 1;
        self.samples += samples as u64;
        self.step_hist.add_ms(seconds * 1e3);
        self.flush_if_due();
    }

    pub fn loss(&mut self, loss: f64) {
        self.loss = Some(loss);
    }

    pub fn event(&mut self, kind: EventKind) {
        let t = self.elapsed_s();
        self.writer.event(&Event { t, kind });
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

    /// Writes what is due: the steps of a tick, and the samples of the sources.
    pub fn flush_if_due(&mut self) {
        if self.is_due() {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let now = self.elapsed_s();
        let dt = now - self.tick_began;
        let mut phases = std::mem::take(&mut self.phases);
        // What no phase explains is said as such, so that the phases add up.
        let known: f64 = phases.values().map(|time| time.ms).sum();
        phases.entry(Phase::Other).or_default().ms += (dt * 1e3 - known).max(0.0);
        // Unknown where nobody asked the device in this tick; the next reading then stands for both.
        let total = self.busy_ms.take();
        let busy = total.map(|total| total - self.busy_before_ms);
        self.busy_before_ms = total.unwrap_or(self.busy_before_ms);
        self.writer.steps(&StepTick {
            t: now,
            dt,
            steps: std::mem::take(&mut self.steps),
            samples: Some(std::mem::take(&mut self.samples)),
            busy_ms: busy,
            phases,
            step_hist: std::mem::take(&mut self.step_hist),
            loss: self.loss,
        });
        self.tick_began = now;
        while let Some(tick) = self.sampler.as_mut().and_then(Sampler::poll) {
            self.writer.sample(&tick.sample);
            self.device = reading(&tick.sample, self.gpu, self.threads);
            // What the device measured itself is nearer to the truth than the driver's sampling.
            if let Some(busy) = busy {
                self.device.busy_ratio = Some((busy / (dt * 1e3)).clamp(0.0, 1.0));
            }
            for event in &tick.events {
                self.writer.event(event);
            }
            if tick.described
                && let Some(sampler) = &self.sampler
            {
                self.writer.update_info(|info| sampler.describe(info));
            }
        }
        if let Some(busy_ms) = busy {
            // The device's own clock knows better than the driver's samples.
            self.device.busy_ratio = Some((busy_ms / (dt * 1e3)).clamp(0.0, 1.0));
        }
    }

    /// Which device the next steps run on: `cpu`, `cuda:1`.
    pub fn watch(&mut self, device: &str) {
        self.gpu = device
            .strip_prefix("cuda:")
            .and_then(|number| number.parse().ok());
    }

    pub fn device(&self) -> DeviceReading {
        self.device
    }

    pub fn finish(&mut self, code: i32) {
        self.flush();
        let t = self.elapsed_s();
        self.writer.finish(ExitInfo {
            t,
            code: Some(code),
            signal: None,
        });
    }

    pub fn folder(&self) -> &Path {
        self.writer.folder()
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
