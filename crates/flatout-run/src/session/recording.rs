//! What goes into the record while a program runs: the machine and the process tree each tick, the rings several times a second.

use crate::collect::{Collector, Progress};
use crate::gpu_window;
use crate::probe::Runtime;
use crate::session::Options;
use crate::source::Sources;
use crate::stacks::{Stacks, Watch, Windows};
use flatout_telemetry::{Event, EventKind, RecordWriter, Sample, Sampler, SamplerOptions};
use std::time::{Duration, Instant};

pub struct Recording {
    collector: Collector,
    /// Gone when the program ended before it could be looked at.
    sampler: Option<Sampler>,
    stacks: Option<Stacks>,
    windows: Windows,
    sources: Sources,
    /// The number of the GPU window that is asked for.
    gpu_window: Option<u64>,
    untraced: bool,
    /// The program itself, watched until a process of it speaks.
    root: u32,
    /// Whether the stacks of the start-up were told.
    stepped: bool,
    interval: Duration,
    next_tick: Instant,
}

impl Recording {
    pub fn start(runtime: &Runtime, pid: u32, run: &Options, writer: &mut RecordWriter) -> Self {
        let interval = run.interval;
        let options = SamplerOptions {
            interval,
            pid: Some(pid),
            ..SamplerOptions::default()
        };
        let sampler = match Sampler::start(&options) {
            Ok(sampler) => Some(sampler),
            Err(error) => {
                log::info!("the process tree is not sampled: {error}");
                None
            }
        };
        let now = Instant::now();
        let passed = sampler.as_ref().map_or(0.0, Sampler::elapsed_s);
        let started = now.checked_sub(Duration::from_secs_f64(passed)).unwrap_or(now);
        if let Some(sampler) = &sampler {
            writer.update_info(|info| sampler.describe(info));
        }
        Self {
            collector: Collector::new(runtime.rings(), started),
            sampler,
            stacks: run.stacks.then(Stacks::default),
            windows: Windows::default(),
            gpu_window: None,
            untraced: false,
            sources: Sources::new(std::env::current_dir().unwrap_or_default()),
            root: pid,
            stepped: false,
            interval,
            next_tick: now + interval,
        }
    }

    pub fn elapsed_s(&self) -> f64 {
        self.collector.elapsed_s()
    }

    pub fn progress(&self) -> Progress {
        self.collector.progress()
    }

    /// Whatever is due.
    pub fn poll(&mut self, writer: &mut RecordWriter) {
        self.sample(writer);
        self.open_or_close_window();
        if Instant::now() >= self.next_tick {
            self.collector.tick(writer);
            self.watch(writer);
            // After a suspension the ticks that were missed are not made up for.
            self.next_tick = (self.next_tick + self.interval).max(Instant::now());
        } else {
            self.collector.poll(writer);
        }
        self.join_windows(writer);
    }

    fn open_or_close_window(&mut self) {
        let progress = self.collector.progress();
        let open = self
            .windows
            .open(self.collector.elapsed_s(), progress.first_step_s);
        let Some(stacks) = &mut self.stacks else { return };
        stacks.set_window(open);
        let gpu = self.windows.gpu_window(self.collector.elapsed_s());
        if gpu != self.gpu_window {
            self.gpu_window = gpu;
            self.collector.request_window(gpu.unwrap_or(0));
            if gpu.is_some() {
                stacks.set_gpu_window(true);
            }
        }
    }

    /// Joins the GPU windows that closed with the samples taken meanwhile.
    fn join_windows(&mut self, writer: &mut RecordWriter) {
        for (pid, closed) in self.collector.take_closed_windows() {
            let Some(stacks) = &mut self.stacks else { continue };
            let samples = stacks.take_timed(pid);
            stacks.set_gpu_window(self.gpu_window.is_some());
            let t = self.collector.elapsed_s();
            if closed.path.is_empty() {
                log::info!("no GPU window of process {pid}: {}", closed.reason);
                if closed.reason != "CUDA is not initialized" {
                    self.note_reason(&closed.reason, writer);
                }
                continue;
            }
            match flatout_tracer::read(&closed.path) {
                Ok(trace) => {
                    let window = gpu_window::join(&trace, &samples, closed.steps, t);
                    self.collector.write_window(pid, &window, writer);
                }
                Err(error) => self.note_reason(&error.to_string(), writer),
            }
            let _ = std::fs::remove_file(&closed.path);
        }
    }

    /// Says once why the GPU could not be traced.
    fn note_reason(&mut self, reason: &str, writer: &mut RecordWriter) {
        if std::mem::replace(&mut self.untraced, true) {
            return;
        }
        let kind = EventKind::Note {
            source: "flatout".into(),
            text: format!("the GPU could not be traced: {reason}"),
        };
        let t = self.collector.elapsed_s();
        writer.event(&Event { t, kind });
    }

    fn watch(&mut self, writer: &mut RecordWriter) {
        let Some(stacks) = &mut self.stacks else { return };
        let mut wanted = self.collector.watches();
        if wanted.is_empty() {
            wanted.push(Watch {
                pid: self.root,
                lane: 0,
                worker: false,
                ring: None,
            });
        } else if let Some(reason) = stacks.take_failure() {
            // Only now is it certain that a Python was there to be seen.
            let text = format!("the program's Python stacks cannot be read: {reason}");
            let kind = EventKind::Note {
                source: "flatout".into(),
                text,
            };
            writer.event(&Event {
                t: self.collector.elapsed_s(),
                kind,
            });
        }
        stacks.follow(wanted);
        // The start-up's stacks end where the steps begin.
        let steps = self.collector.progress().first_step_s.is_some();
        let begins = steps && !std::mem::replace(&mut self.stepped, steps);
        self.tell_stacks(writer, begins);
    }

    fn tell_stacks(&mut self, writer: &mut RecordWriter, last: bool) {
        let t = self.collector.elapsed_s();
        let lines = self.stacks.as_mut().map(|stacks| stacks.lines(t, last));
        for (lane, tick) in lines.unwrap_or_default() {
            self.sources.write(&tick, writer);
            self.collector.write_stacks(lane, &tick, writer);
        }
    }

    fn sample(&mut self, writer: &mut RecordWriter) {
        let Some(sampler) = &mut self.sampler else { return };
        let Some(tick) = sampler.poll() else { return };
        writer.sample(&tick.sample);
        tick.events.iter().for_each(|event| writer.event(event));
        if tick.described {
            writer.update_info(|info| sampler.describe(info));
        }
        self.collector
            .tell_gpu_utilization(mean_utilization(&tick.sample));
    }

    pub fn finish(&mut self, writer: &mut RecordWriter) {
        self.join_windows(writer);
        self.tell_stacks(writer, true);
        self.collector.finish(writer);
    }
}

fn mean_utilization(sample: &Sample) -> Option<f64> {
    let known: Vec<f64> = sample.gpus.values().filter_map(|gpu| gpu.util).collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}
