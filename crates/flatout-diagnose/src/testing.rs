//! A tiny builder of records for the rules' tests.

use crate::analysis::Analysis;
use crate::candidate::Candidate;
use flatout_core::cpus::UsableCpus;
use flatout_core::histogram::Histogram;
use flatout_core::{Finding, Kind, Place};
use flatout_record::{
    Blocked, Copy, Event, EventKind, ExitInfo, Fact, GpuInfo, GpuSample, GpuWindow, HostInfo, HostSample,
    KernelKind, KindTime, LaunchStack, NamedTime, PageInfo, Phase, PhaseTime, ProcessSample, RunData, Sample,
    SourceLine, SourceLoop, StackCount, StackTick, StepTick, SyncStack,
};
use serde_json::Value;
use std::collections::BTreeMap;

/// Seconds before the first step of a built run.
const START_S: f64 = 2.0;

#[allow(dead_code, reason = "a builder serves rules to come")]
pub struct Build {
    data: RunData,
    seconds: usize,
    steps_per_s: u64,
    batch: u64,
    shares: BTreeMap<Phase, f64>,
    slow_every: Option<(usize, f64)>,
    busy: Option<f64>,
    host: HostSample,
    gpu: Option<GpuSample>,
    processes: BTreeMap<u32, ProcessSample>,
}

#[allow(dead_code, reason = "a builder serves rules to come")]
impl Build {
    /// A run of this many seconds of steps, 100 a second, all of it computing unless said otherwise.
    pub fn steady(seconds: usize) -> Self {
        Self {
            data: RunData::default(),
            seconds,
            steps_per_s: 100,
            batch: 32,
            shares: BTreeMap::new(),
            slow_every: None,
            busy: None,
            host: HostSample {
                cpu_util: Some(0.4),
                ..HostSample::default()
            },
            gpu: None,
            processes: BTreeMap::new(),
        }
    }

    pub fn phase(mut self, phase: Phase, share: f64) -> Self {
        self.shares.insert(phase, share);
        self
    }

    pub fn steps_per_s(mut self, steps: u64) -> Self {
        self.steps_per_s = steps;
        self
    }

    pub fn batch(mut self, batch: u64) -> Self {
        self.batch = batch;
        self
    }

    /// Every so many seconds only this share of the steps.
    pub fn slow_every(mut self, seconds: usize, share: f64) -> Self {
        self.slow_every = Some((seconds, share));
        self
    }

    pub fn busy(mut self, share: f64) -> Self {
        self.busy = Some(share);
        self
    }

    pub fn fact(mut self, key: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        self.data.facts.push(Fact {
            t: 0.1,
            key: key.into(),
            value,
            scope: None,
            place: None,
        });
        self
    }

    pub fn command(mut self, words: &[&str]) -> Self {
        self.data.info.command = words.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    pub fn loader(mut self, id: u64, settings: Value) -> Self {
        for (key, value) in settings.as_object().into_iter().flatten() {
            self.data.facts.push(Fact {
                t: 0.1,
                key: format!("loader.{key}"),
                value: value.clone(),
                scope: Some(format!("loader.{id}")),
                place: Some(Place::new("train.py", 40)),
            });
        }
        self
    }

    /// Batches a second and the milliseconds a second waited for them.
    pub fn loader_use(self, loader: u64, batches: u64, wait_ms: f64) -> Self {
        self.each_second(move || EventKind::LoaderUse {
            loader,
            batches,
            wait_ms,
            eval: false,
        })
    }

    pub fn worker_cost(self, loader: u64, fetch_ms: f64, collate_ms: f64, batches: u64) -> Self {
        self.each_second(move || EventKind::Workers {
            loader,
            fetch_ms,
            collate_ms,
            garbage_ms: None,
            batches,
        })
    }

    /// Milliseconds per second in collectives: until the last rank came, after that, and how late this one was.
    pub fn collective(self, wait_ms: f64, transfer_ms: f64, late_ms: f64) -> Self {
        self.each_second(move || EventKind::Collective {
            op: "ddp-gradients".into(),
            place: Some(Place::new("train.py", 80)),
            count: 100,
            aligned: 100,
            ms: wait_ms + transfer_ms,
            wait_ms: Some(wait_ms),
            transfer_ms: Some(transfer_ms),
            last: u64::from(late_ms > 0.0) * 100,
            late_ms,
            ranks: 2,
            world: 2,
        })
    }

    /// Another rank of the same run.
    pub fn rank(mut self, rank: u32, data: RunData) -> Self {
        self.data.ranks.push((rank, data));
        self
    }

    pub fn each_second(mut self, kind: impl Fn() -> EventKind) -> Self {
        for second in 1..=self.seconds {
            self = self.event(START_S + second as f64, kind());
        }
        self
    }

    pub fn event(mut self, t: f64, kind: EventKind) -> Self {
        self.data.events.push(Event { t, kind });
        self
    }

    pub fn cpus(mut self, count: usize) -> Self {
        self.data.info.host = Some(HostInfo {
            name: "test".into(),
            kernel: "test".into(),
            cpus: UsableCpus {
                online: 64,
                affinity: count,
                quota: None,
            },
            memory_bytes: None,
            page: None,
        });
        self
    }

    pub fn host(mut self, change: impl FnOnce(&mut HostSample)) -> Self {
        change(&mut self.host);
        self
    }

    pub fn gpu(mut self, change: impl FnOnce(&mut GpuSample)) -> Self {
        self.data.info.gpus.entry(0).or_insert_with(|| GpuInfo {
            mem_total_bytes: Some(80 << 30),
            compute_capability: Some((9, 0)),
            ..GpuInfo::default()
        });
        let mut gpu = self.gpu.take().unwrap_or(GpuSample {
            util: Some(0.9),
            ..GpuSample::default()
        });
        change(&mut gpu);
        self.gpu = Some(gpu);
        self.fact("device", "cuda")
    }

    /// A main process and this many workers, each using so many CPUs and holding so much memory of its own.
    pub fn workers(mut self, count: u32, cpus: f64, private_bytes: u64) -> Self {
        let process = |parent| ProcessSample {
            parent: Some(parent),
            command: Some("python train.py".into()),
            cpus: Some(cpus),
            private_bytes: Some(private_bytes),
            ..ProcessSample::default()
        };
        self.processes.insert(
            100,
            ProcessSample {
                parent: Some(1),
                ..process(1)
            },
        );
        for index in 0..count {
            self.processes.insert(101 + index, process(100));
        }
        self
    }

    /// A training process that takes so many pages a second, and uses so many CPUs, these of them in the kernel. A page costs 2 µs.
    pub fn pages(mut self, faults_s: f64, kernel_cpus: f64, cpus: f64) -> Self {
        if self.data.info.host.is_none() {
            self = self.cpus(2);
        }
        if let Some(host) = &mut self.data.info.host {
            host.page = Some(PageInfo { bytes: 4096, us: 2.0 });
        }
        self.processes.insert(
            100,
            ProcessSample {
                parent: Some(1),
                command: Some("python train.py".into()),
                cpus: Some(cpus),
                kernel_cpus: Some(kernel_cpus),
                faults_s: Some(faults_s),
                rss_bytes: Some(1 << 30),
                ..ProcessSample::default()
            },
        );
        self
    }

    /// A window of a second and ten steps in which the GPU ran kernels of these kinds, in milliseconds, and was idle otherwise.
    pub fn kernels(mut self, kinds: &[(KernelKind, f64)]) -> Self {
        let computing_ms: f64 = kinds.iter().map(|(_, ms)| ms).sum();
        self.data.windows.push(GpuWindow {
            wall_ms: 1000.0,
            computing_ms,
            idle_ms: 1000.0 - computing_ms,
            steps: 10,
            kinds: kinds
                .iter()
                .map(|(kind, ms)| KindTime {
                    ms: *ms,
                    count: 100,
                    ..KindTime::none(*kind)
                })
                .collect(),
            ..GpuWindow::default()
        });
        self
    }

    /// Kernels that a stack launched, in the last window.
    pub fn launch(mut self, frames: &[&str], kind: KernelKind, ms: f64) -> Self {
        if let Some(window) = self.data.windows.last_mut() {
            window.launches.push(LaunchStack {
                frames: frames.iter().map(|frame| (*frame).to_owned()).collect(),
                kinds: vec![KindTime {
                    ms,
                    count: 10,
                    ..KindTime::none(kind)
                }],
                copies: Vec::new(),
            });
        }
        self
    }

    /// Waits for a stream in the last window, 10 µs each, and the stack that waited.
    pub fn waits(mut self, frames: &[&str], count: u64) -> Self {
        if let Some(window) = self.data.windows.last_mut() {
            window.sync_stacks.push(SyncStack {
                frames: frames.iter().map(|frame| (*frame).to_owned()).collect(),
                count,
                ms: count as f64 * 0.01,
            });
        }
        self
    }

    /// Copies of the last window, and the stack that launched them.
    pub fn copies(mut self, frames: &[&str], direction: &str, count: u64, bytes: u64, ms: f64) -> Self {
        if let Some(window) = self.data.windows.last_mut() {
            let copy = Copy {
                direction: direction.into(),
                memory: "pageable".into(),
                count,
                bytes,
                ms,
            };
            window.copies.push(copy.clone());
            window.launches.push(LaunchStack {
                frames: frames.iter().map(|frame| (*frame).to_owned()).collect(),
                copies: vec![copy],
                ..LaunchStack::default()
            });
        }
        self
    }

    /// A line of the source that samples fell on.
    pub fn source_line(mut self, line: u32, text: &str) -> Self {
        self.data.lines.push(SourceLine {
            file: "t.py".into(),
            line,
            text: text.into(),
            ..SourceLine::default()
        });
        self
    }

    /// A fact with its line.
    pub fn fact_at(mut self, key: &str, value: impl Into<Value>, line: u32) -> Self {
        self = self.fact(key, value);
        if let Some(fact) = self.data.facts.last_mut() {
            fact.place = Some(Place::new("t.py", line));
        }
        self
    }

    /// Time without a CPU although ready to run, of each line of stacks.
    pub fn descheduled(mut self, waited_ms: f64, of_ms: f64) -> Self {
        for tick in &mut self.data.stacks {
            tick.descheduled_ms = Some((waited_ms, of_ms));
        }
        self
    }

    pub fn stack(self, frames: &[&str], count: u64) -> Self {
        self.stack_of(frames, count, None, false)
    }

    /// A stack with the phase that was under way, of the training thread or of a worker.
    pub fn stack_of(mut self, frames: &[&str], count: u64, phase: Option<Phase>, worker: bool) -> Self {
        let frames = frames.iter().map(|frame| (*frame).to_owned()).collect();
        self.data.stacks.push(StackTick {
            t: START_S + 5.0,
            stacks: vec![StackCount {
                frames,
                count,
                phase,
                worker,
                ..StackCount::default()
            }],
            descheduled_ms: None,
        });
        self
    }

    pub fn done(mut self) -> RunData {
        for second in 0..self.seconds {
            let t = START_S + second as f64 + 1.0;
            let tick = self.tick(second, t);
            self.data.steps.push(tick);
            let gpus = self.gpu.iter().map(|gpu| (0, gpu.clone())).collect();
            self.data.samples.push(Sample {
                t,
                gpus,
                host: self.host.clone(),
                processes: self.processes.clone(),
            });
        }
        self.data.info.exit = Some(ExitInfo {
            t: START_S + self.seconds as f64 + 0.5,
            code: Some(0),
            signal: None,
        });
        self.data
    }

    fn tick(&self, second: usize, t: f64) -> StepTick {
        let slow = self
            .slow_every
            .filter(|(every, _)| second % every == every - 1)
            .map_or(1.0, |(_, share)| share);
        let steps = (self.steps_per_s as f64 * slow) as u64;
        let shares = if self.shares.is_empty() {
            BTreeMap::from([(Phase::Compute, 1.0)])
        } else {
            self.shares.clone()
        };
        let histogram = |ms: f64| {
            let mut histogram = Histogram::default();
            histogram.add_count(Histogram::bucket_of(ms * 1e6), steps);
            histogram
        };
        let time = |share: f64| PhaseTime {
            ms: share * 1e3,
            hist: histogram(share * 1e3 / steps.max(1) as f64),
        };
        StepTick {
            t,
            dt: 1.0,
            steps,
            samples: Some(steps * self.batch),
            busy_ms: self.busy.map(|share| share * 1e3),
            phases: shares
                .iter()
                .map(|(phase, share)| (*phase, time(*share)))
                .collect(),
            step_hist: histogram(1e3 / steps.max(1) as f64),
            loss: None,
        }
    }
}

/// The rule alone on a record.
pub fn check(rule: fn(&Analysis) -> Option<Candidate>, build: Build) -> Option<Finding> {
    rule(&Analysis::new(&build.done())).map(|candidate| candidate.finding)
}

/// The rule on a record with nothing in it.
pub fn check_empty(rule: fn(&Analysis) -> Option<Candidate>) -> Option<Finding> {
    rule(&Analysis::new(&RunData::default())).map(|candidate| candidate.finding)
}

/// The ids of all causes that the whole diagnosis names.
pub fn causes(build: Build) -> Vec<String> {
    let diagnosis = crate::diagnose(&build.done());
    diagnosis
        .findings
        .into_iter()
        .filter(|f| f.kind == Kind::Cause)
        .map(|f| f.rule)
        .collect()
}

/// A loop in which one line costs a share of the time: its frame, its source, what it calls.
pub struct CostlyLine {
    frame: String,
    text: String,
    calls: Option<String>,
    inside: Option<String>,
    blocked: Option<Blocked>,
    share: f64,
    phase: Phase,
    syncs: u64,
}

impl CostlyLine {
    /// `frame` is in `t.py`.
    pub fn new(frame: &str, text: &str) -> Self {
        Self {
            frame: frame.into(),
            text: text.into(),
            calls: None,
            inside: None,
            blocked: None,
            share: 0.0,
            phase: Phase::Other,
            syncs: 0,
        }
    }

    pub fn calls(mut self, frame: &str) -> Self {
        self.calls = Some(frame.into());
        self
    }

    pub fn in_loop(mut self, header: &str) -> Self {
        self.inside = Some(header.into());
        self
    }

    pub fn blocked(mut self, blocked: Blocked) -> Self {
        self.blocked = Some(blocked);
        self
    }

    pub fn in_batches(mut self, share: f64) -> Self {
        (self.phase, self.share) = (Phase::Data, share);
        self
    }

    pub fn between_steps(mut self, share: f64) -> Self {
        (self.phase, self.share) = (Phase::Other, share);
        self
    }

    /// The GPU's traces show this many waits per step.
    pub fn syncs(mut self, per_step: u64) -> Self {
        self.syncs = per_step;
        self
    }

    /// In operators of the step, without the interpreter's lock.
    pub fn in_operators(mut self, share: f64) -> Self {
        (self.phase, self.share) = (Phase::Compute, share);
        self
    }

    pub fn build(self) -> Build {
        let module = "<module> (t.py:90)";
        let backward = "backward (/v/lib/python3.11/site-packages/torch/_tensor.py:600)";
        let step = "step (/v/lib/python3.11/site-packages/torch/optim/adamw.py:9)";
        let mut frames = vec![module, "train (t.py:50)", self.frame.as_str()];
        frames.extend(self.calls.as_deref());
        let mut build = Build::steady(20)
            .phase(self.phase, self.share)
            .phase(Phase::Compute, 1.0 - self.share)
            .cpus(2)
            .loader(0, serde_json::json!({"num_workers": 0, "batch_size": 32}))
            .stack_of(
                &[module, "train (t.py:41)", backward],
                150,
                Some(Phase::Compute),
                false,
            )
            .stack_of(
                &[module, "train (t.py:42)", step],
                50,
                Some(Phase::Compute),
                false,
            )
            .stack_of(&frames, 100, Some(self.phase), false);
        if self.phase == Phase::Compute {
            return self.among_operators(build);
        }
        for stack in build.data.stacks.iter_mut().flat_map(|tick| &mut tick.stacks) {
            stack.gil = stack.phase == Some(self.phase);
            stack.blocked = self.blocked.filter(|_| stack.phase == Some(self.phase));
        }
        self.source(&mut build);
        build
    }

    /// The line's samples are among those of the step.
    fn among_operators(self, mut build: Build) -> Build {
        build = build.phase(Phase::Compute, 1.0);
        if let Some(tick) = build.data.stacks.last_mut() {
            tick.stacks[0].count = (200.0 * self.share / (1.0 - self.share)) as u64;
        }
        self.source(&mut build);
        build
    }

    fn source(self, build: &mut Build) {
        if self.syncs > 0 {
            build.data.windows.push(GpuWindow {
                wall_ms: 1000.0,
                computing_ms: 200.0,
                idle_ms: 800.0,
                steps: 10,
                syncs: vec![NamedTime {
                    name: "stream".into(),
                    count: 10 * self.syncs,
                    ms: 1.0,
                }],
                ..GpuWindow::default()
            });
        }
        let loops = self.inside.iter().map(|text| SourceLoop {
            line: 11,
            text: text.clone(),
        });
        build.data.lines.push(SourceLine {
            file: "t.py".into(),
            line: 12,
            text: self.text,
            loops: loops.collect(),
            lint: Vec::new(),
            makes: Vec::new(),
        });
    }
}
