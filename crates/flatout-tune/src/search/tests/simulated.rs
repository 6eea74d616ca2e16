//! A program whose cost is known by formula, with records as a real run would leave them.

use super::*;
use crate::trial::Outcome;
use crate::trial::Size;
use flatout_core::Message;
use flatout_core::cpus::UsableCpus;
use flatout_record::{
    Event, EventKind, Fact, HostInfo, Phase, PhaseTime, RecordWriter, RunInfo, SCHEMA, StepTick,
};
use serde_json::json;

/// A program: fixed and per-sample compute, per-sample loading, memory; all in milliseconds and samples.
#[derive(Clone)]
pub struct Simulated {
    pub folder: std::path::PathBuf,
    pub runs: usize,
    pub batch: u64,
    pub workers: u64,
    pub fixed_ms: f64,
    pub compute_ms: f64,
    pub load_ms: f64,
    pub largest_batch: u64,
    /// Runs in which it fails.
    pub fails_from: usize,
    pub hurts: bool,
    /// From this batch on, workers make a step three times as long.
    pub workers_hurt_from: u64,
    /// Takes steps of other sizes.
    pub tells_sizes: bool,
    /// The part of a step that goes to pages.
    pub on_pages: f64,
    /// The first run is a tenth slower than the program is, and varies by half.
    pub shaky: bool,
}

impl Simulated {
    pub fn new(folder: &std::path::Path) -> Self {
        Self {
            folder: folder.to_owned(),
            runs: 0,
            batch: 32,
            workers: 0,
            fixed_ms: 2.0,
            compute_ms: 0.05,
            load_ms: 0.5,
            largest_batch: u64::MAX,
            fails_from: usize::MAX,
            hurts: false,
            workers_hurt_from: u64::MAX,
            tells_sizes: true,
            on_pages: 0.0,
            shaky: false,
        }
    }

    fn number(settings: &Settings, key: &str, own: u64) -> u64 {
        settings
            .get(key)
            .and_then(|value| value.parse().ok())
            .unwrap_or(own)
    }

    /// On eight CPUs, which workers and steps share: where one more wants one, all take longer.
    pub fn step_ms(&self, batch: u64, workers: u64) -> f64 {
        let compute_ms = self.fixed_ms + self.compute_ms * batch as f64;
        let load_ms = self.load_ms * batch as f64;
        match workers {
            0 => compute_ms + load_ms,
            _ if batch >= self.workers_hurt_from => 3.0 * (compute_ms + load_ms),
            8 => {
                let step_ms = compute_ms.max((compute_ms + load_ms) / 8.0);
                step_ms + compute_ms / 8.0
            }
            _ => compute_ms.max(load_ms / workers as f64),
        }
    }

    /// As the probe takes them: all of the batch several times, then a part of it.
    fn sizes(&self, batch: u64, workers: u64, most: u64) -> Vec<Size> {
        let size = |samples: u64| Size {
            samples,
            own_s: (self.fixed_ms + self.compute_ms * samples as f64) / 1e3,
            wait_s: (workers == 0 && samples <= batch).then_some(self.load_ms * samples as f64 / 1e3),
            memory_bytes: None,
        };
        let factors = [1, 2, 4, 8].into_iter().filter(|factor| *factor <= most);
        let mut sizes: Vec<Size> = factors.map(|factor| size(batch * factor)).collect();
        sizes.extend((most > 0).then(|| size(batch / 4)));
        sizes
    }

    fn record(&self, batch: u64, workers: u64, step_ms: f64, wait_ms: f64) -> std::path::PathBuf {
        let folder = self.folder.join(self.runs.to_string());
        let cpus = UsableCpus {
            online: 8,
            affinity: 8,
            quota: None,
        };
        let host = HostInfo {
            name: "test".into(),
            kernel: String::new(),
            cpus,
            memory_bytes: None,
            page: None,
        };
        let info = RunInfo {
            schema: SCHEMA,
            host: Some(host),
            ..RunInfo::default()
        };
        let mut writer = RecordWriter::create(&folder, info).unwrap();
        let facts = [
            ("loader.num_workers", json!(workers)),
            ("loader.batch_size", json!(batch)),
            ("loader.length", json!(1_000_000)),
            ("loader.persistent_workers", json!(false)),
        ];
        for (key, value) in facts {
            writer.fact(&Fact {
                t: 0.0,
                key: key.into(),
                value,
                scope: Some("loader.0".into()),
                place: None,
            });
        }
        writer.fact(&Fact {
            t: 0.0,
            key: "device".into(),
            value: json!("cpu"),
            scope: None,
            place: None,
        });
        for tick in 1..=10u32 {
            let steps = (500.0 / step_ms).round().max(1.0);
            let time = |ms: f64| PhaseTime {
                ms: ms * steps,
                ..PhaseTime::default()
            };
            let phases = [
                (Phase::Data, time(wait_ms)),
                (Phase::Compute, time(step_ms - wait_ms)),
            ];
            let t = f64::from(tick) * 0.5;
            writer.steps(&StepTick {
                t,
                dt: 0.5,
                steps: steps as u64,
                samples: Some(steps as u64 * batch),
                phases: phases.into(),
                ..StepTick::default()
            });
            let fetch_ms = self.load_ms * batch as f64 * steps;
            writer.event(&Event {
                t,
                kind: EventKind::Workers {
                    loader: 0,
                    fetch_ms,
                    collate_ms: 0.0,
                    garbage_ms: None,
                    batches: steps as u64,
                },
            });
            writer.event(&Event {
                t,
                kind: EventKind::LoaderUse {
                    loader: 0,
                    batches: steps as u64,
                    wait_ms: wait_ms * steps,
                    eval: false,
                },
            });
        }
        folder
    }
}

impl Trial for Simulated {
    fn run(&mut self, settings: &Settings, plan: &Plan) -> Result<Outcome> {
        self.runs += 1;
        if self.runs >= self.fails_from {
            return Ok(Outcome::Failed {
                how: Message::verbatim("exit code 1"),
                tail: String::new(),
            });
        }
        let batch = Self::number(settings, "loader.batch_size", self.batch);
        let workers = Self::number(settings, "loader.num_workers", self.workers);
        if batch > self.largest_batch {
            return Ok(Outcome::OutOfMemory {
                message: "full".into(),
                batch: Some(batch),
            });
        }
        let compute_ms = self.fixed_ms + self.compute_ms * batch as f64;
        let kept = settings.get("malloc.keep") == Some("on");
        let step_ms = self.step_ms(batch, workers) * if kept { 1.0 - self.on_pages } else { 1.0 };
        let record = self.record(batch, workers, step_ms, step_ms - compute_ms);
        let shaky = self.shaky && self.runs == 1;
        let rate = batch as f64 / step_ms * 1e3 * if shaky { 0.9 } else { 1.0 };
        let noise = if shaky { 0.5 } else { 0.01 };
        let worse = if self.hurts && batch > self.batch {
            50.0
        } else {
            0.0
        };
        Ok(Outcome::Measured(Box::new(Measurement {
            steps: 40,
            samples: Some(40 * batch),
            seconds: 40.0 * step_ms / 1e3,
            rate: Rate {
                mean: rate,
                low: rate * (1.0 - noise),
                high: rate * (1.0 + noise),
            },
            on_pages: Some(if kept { 0.0 } else { self.on_pages }),
            wait_s: Some(40.0 * (step_ms - compute_ms) / 1e3),
            sizes: self.sizes(batch, workers, if self.tells_sizes { plan.sizes } else { 0 }),
            losses: (1..=40).map(|step| (step * batch, Some(1.0 + worse))).collect(),
            record,
            ..Measurement::default()
        })))
    }
}
