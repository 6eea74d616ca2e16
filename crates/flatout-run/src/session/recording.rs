//! What goes into the record while a program runs: the machine and the process tree each tick, the rings several times a second.

use crate::collect::{Collector, Progress};
use crate::gpu_window;
use crate::probe::Runtime;
use crate::session::Options;
use crate::source::Sources;
use crate::stacks::{Stacks, TimedStack, Watch, Windows, all_threads};
use crate::timeline;
use flatout_record::{Event, EventKind, RecordWriter, Sample, StalledRank};
use flatout_telemetry::{Sampler, SamplerOptions};
use flatout_tracer::format::Trace;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A program closes a window after the step that is under way.
const LONGEST_CLOSING: Duration = Duration::from_secs(2);
/// Stretches kept event by event for each process: one before the first step, else two steps.
const MOST_TIMELINES: usize = 3;

pub struct Recording {
    collector: Collector,
    /// Gone when the program ended before it could be looked at.
    sampler: Option<Sampler>,
    stacks: Option<Stacks>,
    /// `None` where nothing is looked at closely: then stacks are told each second instead.
    windows: Option<Windows>,
    sources: Sources,
    /// The number of the GPU window that is asked for.
    gpu_window: Option<u64>,
    /// The last one that was, and since when it should be closed.
    last_gpu_window: u64,
    closing: Option<Instant>,
    /// The program answered that it has no GPU to trace.
    refused: bool,
    /// Steps written event by event, by process.
    timelines: BTreeMap<u32, usize>,
    untraced: bool,
    /// Whether the GPU's peaks are in the record.
    peaks_told: bool,
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
            stacks: run.stacks.then(|| {
                if run.windows {
                    Stacks::default()
                } else {
                    Stacks::each_second()
                }
            }),
            windows: run.windows.then(Windows::default),
            gpu_window: None,
            last_gpu_window: 0,
            closing: None,
            refused: false,
            timelines: BTreeMap::new(),
            untraced: false,
            peaks_told: false,
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

    /// Seconds without a sign of progress; `None` where none is expected yet.
    pub fn quiet_s(&self) -> Option<f64> {
        self.collector.quiet_s()
    }

    /// Where every rank is now, with the stacks of all its threads.
    pub fn where_ranks_are(&self) -> Vec<StalledRank> {
        let mut ranks = self.collector.ranks();
        for rank in ranks.iter_mut().filter(|rank| !rank.ended) {
            match all_threads(rank.pid) {
                Ok(threads) => rank.threads = threads,
                Err(reason) => rank.unread = Some(reason),
            }
        }
        ranks
    }

    /// Whatever is due.
    pub fn poll(&mut self, writer: &mut RecordWriter) {
        self.sample(writer);
        self.open_or_close_window();
        self.end_closing_window(writer);
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
        let Some(windows) = &mut self.windows else { return };
        let open = windows.open(self.collector.elapsed_s(), progress.first_step_s);
        let Some(stacks) = &mut self.stacks else { return };
        stacks.set_window(open);
        let gpu = windows.gpu_window(self.collector.elapsed_s());
        if gpu != self.gpu_window {
            self.gpu_window = gpu;
            self.collector.request_window(gpu.unwrap_or(0));
            self.closing = gpu.is_none().then(Instant::now);
            if let Some(number) = gpu {
                self.last_gpu_window = number;
                self.refused = false;
                stacks.set_gpu_window(true);
            }
        }
    }

    /// Samples come close together for a window's length only, also where the program has no GPU to trace, or does not answer.
    fn end_closing_window(&mut self, writer: &mut RecordWriter) {
        // Without a GPU there is no trace to wait for; a step of the host alone may be longer than a trace.
        let untraced = self.refused || writer.info().gpus.is_empty();
        let due = |since: &Instant| since.elapsed() > LONGEST_CLOSING;
        if self.closing.take_if(|since| due(since)).is_none() {
            return;
        }
        let Some(stacks) = &mut self.stacks else { return };
        stacks.set_gpu_window(false);
        // A trace that comes late is joined with the samples.
        let processes = if untraced { stacks.training() } else { Vec::new() };
        let samples = |pid: u32| (pid, stacks.take_timed(pid));
        let samples: Vec<(u32, Vec<TimedStack>)> = processes.into_iter().map(samples).collect();
        for (pid, samples) in samples {
            self.write_timeline(pid, &samples, None, writer);
        }
    }

    /// Keeps a step of the first windows event by event.
    fn write_timeline(
        &mut self,
        pid: u32,
        samples: &[TimedStack],
        trace: Option<&Trace>,
        writer: &mut RecordWriter,
    ) {
        let written = self.timelines.get(&pid).copied().unwrap_or(0);
        // Before the first step there is only a start-up to be seen, or a program without steps.
        let stepped = self.collector.progress().first_step_s.is_some();
        let most = if stepped { MOST_TIMELINES } else { 1 };
        let Some(stacks) = self.stacks.as_ref().filter(|_| written < most) else {
            return;
        };
        if Windows::records_syncs(self.last_gpu_window) {
            return;
        }
        let worker = stacks.take_timed_of_worker(pid);
        let seconds = |at_ns: u64| self.collector.seconds(at_ns);
        if let Some(timeline) = timeline::build(samples, &worker, trace, seconds) {
            self.collector.write_timeline(pid, &timeline, writer);
            self.timelines.insert(pid, written + 1);
        }
    }

    /// Joins the GPU windows that closed with the samples taken meanwhile.
    fn join_windows(&mut self, writer: &mut RecordWriter) {
        for (pid, closed) in self.collector.take_closed_windows() {
            let Some(stacks) = &mut self.stacks else { continue };
            let samples = stacks.take_timed(pid);
            stacks.set_gpu_window(self.gpu_window.is_some());
            self.refused = closed.path.is_empty();
            if self.gpu_window.is_none() {
                self.closing = None;
            }
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
                    self.write_timeline(pid, &samples, Some(&trace), writer);
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
        if !self.peaks_told && !writer.info().gpus.is_empty() {
            self.peaks_told = true;
            let facts = super::peaks::facts(writer.info(), tick.sample.t);
            facts.iter().for_each(|fact| writer.fact(fact));
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
