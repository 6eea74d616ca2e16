//! One representative step out of a window, event by event, from the samples of the host, those of a worker and the GPU's trace.

use crate::gpu_window::kernels;
use crate::stacks::TimedStack;
use flatout_record::{GpuSlice, HostSlice, StepTimeline};
use flatout_tracer::format::{Activity, PAGEABLE, PINNED, Record, Trace};
use std::collections::HashMap;
use std::hash::Hash;

/// Events of the GPU that are kept: 60 KB of a record.
const MOST_EVENTS: usize = 2000;
/// Samples of a lane that are kept.
const MOST_SAMPLES: usize = 600;
/// Short steps are shown several at once, so that samples fall into each of their parts.
const SHORTEST_NS: u64 = 24_000_000;
const MOST_STEPS: usize = 12;
/// Fewer samples draw nothing.
const FEWEST_SAMPLES: usize = 5;

/// `seconds` turns an instant into the record's time. `None` where too little was seen.
pub fn build(
    host: &[TimedStack],
    worker: &[TimedStack],
    trace: Option<&Trace>,
    seconds: impl Fn(u64) -> f64,
) -> Option<StepTimeline> {
    let (start, mut end, steps) = representative(host)?;
    let mut timeline = StepTimeline {
        t: seconds(start),
        steps,
        ..StepTimeline::default()
    };
    if let Some(trace) = trace {
        let mut names = Table::default();
        let mut records: Vec<&Record> = trace
            .records
            .iter()
            .filter(|record| is_shown(record) && record.start < end && record.end > start)
            .collect();
        records.sort_by_key(|record| record.start);
        if let Some(beyond) = records.get(MOST_EVENTS) {
            end = beyond.start.max(start + 1);
            timeline.cut = true;
            records.truncate(MOST_EVENTS);
        }
        let slice = |record: &&Record| gpu_slice(trace, record, start, end, &mut names);
        timeline.gpu = records.iter().map(slice).collect();
        timeline.names = names.values;
    }
    timeline.us = us(end - start);
    let mut stacks = Table::default();
    timeline.host = slices(host, start, end, &mut stacks);
    timeline.workers = slices(worker, start, end, &mut stacks);
    timeline.stacks = stacks.values;
    (!timeline.host.is_empty() || !timeline.gpu.is_empty()).then_some(timeline)
}

/// Values once each, by their index.
struct Table<T> {
    values: Vec<T>,
    index: HashMap<T, usize>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            index: HashMap::new(),
        }
    }
}

impl<T: Clone + Eq + Hash> Table<T> {
    fn of(&mut self, value: T) -> usize {
        if let Some(found) = self.index.get(&value) {
            return *found;
        }
        self.values.push(value.clone());
        self.index.insert(value, self.values.len() - 1);
        self.values.len() - 1
    }
}

/// The beginning and the end of the steps nearest to the median, and how many they are.
fn representative(samples: &[TimedStack]) -> Option<(u64, u64, u64)> {
    let (first, last) = (samples.first()?, samples.last()?);
    if samples.len() < FEWEST_SAMPLES {
        return None;
    }
    // A step ends between two samples: the later one is the first of the next step.
    let ends: Vec<(u64, u64)> = samples
        .windows(2)
        .filter(|pair| pair[1].steps > pair[0].steps)
        .map(|pair| (pair[1].at_ns, pair[1].steps))
        .collect();
    let whole = (first.at_ns, last.at_ns, 0);
    let (Some(begin), Some(finish)) = (ends.first(), ends.last()) else {
        return Some(whole);
    };
    let steps = finish.1 - begin.1;
    if steps == 0 {
        return Some(whole);
    }
    let mean_ns = (finish.0 - begin.0) / steps;
    let wanted = SHORTEST_NS.div_ceil(mean_ns.max(1)).clamp(1, MOST_STEPS as u64);
    let spans: Vec<(u64, u64, u64)> = ends
        .iter()
        .enumerate()
        .filter_map(|(at, (from, before))| {
            let (to, after) = ends[at + 1..]
                .iter()
                .find(|(_, after)| after - before >= wanted)?;
            Some((*from, *to, after - before))
        })
        .collect();
    let per_step = |span: &(u64, u64, u64)| (span.1 - span.0) / span.2.max(1);
    let mut lengths: Vec<u64> = spans.iter().map(per_step).collect();
    lengths.sort_unstable();
    let median = *lengths.get(lengths.len() / 2)?;
    spans
        .into_iter()
        .min_by_key(|span| per_step(span).abs_diff(median))
}

fn us(ns: u64) -> f64 {
    (ns as f64 / 100.0).round() / 10.0
}

/// Samples of the same stack in a row are one slice, each until the next sample.
fn slices(samples: &[TimedStack], start: u64, end: u64, stacks: &mut Table<Vec<String>>) -> Vec<HostSlice> {
    let mut found: Vec<HostSlice> = Vec::new();
    for (index, sample) in samples.iter().enumerate() {
        let until = samples.get(index + 1).map_or(end, |next| next.at_ns).min(end);
        let from = sample.at_ns.max(start);
        if until <= from || found.len() >= MOST_SAMPLES {
            continue;
        }
        let slice = HostSlice {
            at: us(from - start),
            us: us(until - from),
            stack: stacks.of(sample.key.frames.clone()),
            phase: sample.key.phase,
            gil: sample.key.gil,
            blocked: sample.key.blocked,
        };
        match found.last_mut() {
            Some(last) if is_same(last, &slice) => last.us = us(until - start) - last.at,
            _ => found.push(slice),
        }
    }
    found
}

fn is_same(a: &HostSlice, b: &HostSlice) -> bool {
    (a.stack, a.phase, a.gil, a.blocked) == (b.stack, b.phase, b.gil, b.blocked)
}

fn is_shown(record: &Record) -> bool {
    matches!(
        record.activity,
        Activity::Kernel | Activity::Copy | Activity::Memset | Activity::Graph
    )
}

fn gpu_slice(trace: &Trace, record: &Record, start: u64, end: u64, names: &mut Table<String>) -> GpuSlice {
    let (from, until) = (
        record.start.max(start),
        record.end.min(end).max(record.start.max(start)),
    );
    let (name, kind, bytes) = match record.activity {
        Activity::Kernel => {
            let name = trace.name(record).unwrap_or("unknown");
            let short = flatout_core::text::shortened(name, 160);
            (short, Some(kernels::kind(name)), None)
        }
        Activity::Copy => (copy_name(record), None, Some(record.value)),
        Activity::Memset => ("memset".to_owned(), None, Some(record.value)),
        _ => ("CUDA graph".to_owned(), None, None),
    };
    GpuSlice {
        at: us(from - start),
        us: us(until - from),
        stream: record.stream,
        name: names.of(name),
        kind,
        bytes,
    }
}

/// `copy HtoD, pageable`.
fn copy_name(record: &Record) -> String {
    let (direction, host) = match record.detail {
        1 => ("HtoD", record.source),
        2 => ("DtoH", record.destination),
        8 => ("DtoD", 0),
        10 => ("PtoP", 0),
        _ => ("", 0),
    };
    let memory = match host {
        PAGEABLE => ", pageable",
        PINNED => ", pinned",
        _ => "",
    };
    format!("copy {direction}{memory}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacks::Key;
    use flatout_record::Phase;

    /// Steps of 40 ms, sampled every 2 ms: 10 ms of data, 30 ms of compute.
    fn samples(steps: u64) -> Vec<TimedStack> {
        (0..steps * 20)
            .map(|at| {
                let data = at % 20 < 5;
                TimedStack {
                    at_ns: 1_000_000_000 + at * 2_000_000,
                    ms: 2.0,
                    steps: at / 20,
                    key: Key {
                        frames: vec![if data { "next (a.py:1)" } else { "step (a.py:2)" }.into()],
                        phase: Some(if data { Phase::Data } else { Phase::Compute }),
                        gil: true,
                        blocked: None,
                    },
                }
            })
            .collect()
    }

    #[test]
    fn one_whole_step_without_gaps() {
        let found = build(&samples(6), &[], None, |ns| ns as f64 / 1e9).unwrap();
        assert_eq!((found.steps, found.us), (1, 40_000.0));
        assert_eq!(found.stacks.len(), 2);
        let sum: f64 = found.host.iter().map(|slice| slice.us).sum();
        assert!((sum - found.us).abs() < 0.5, "{sum}");
        assert_eq!(found.host[0].phase, Some(Phase::Data));
        assert!((found.host[0].us - 10_000.0).abs() < 0.5);
    }

    #[test]
    fn short_steps_come_several_at_once_and_a_long_one_in_part() {
        let mut short = samples(40);
        for (at, sample) in short.iter_mut().enumerate() {
            sample.steps = at as u64 / 2;
        }
        let found = build(&short, &[], None, |ns| ns as f64 / 1e9).unwrap();
        assert_eq!(found.steps, 6);
        let mut long = samples(4);
        long.iter_mut().for_each(|sample| sample.steps = 0);
        let found = build(&long, &[], None, |ns| ns as f64 / 1e9).unwrap();
        assert_eq!(found.steps, 0);
        assert!(build(&long[..3], &[], None, |_| 0.0).is_none());
    }

    #[test]
    fn a_step_that_only_waits_is_one_slice() {
        let mut waiting = samples(6);
        for sample in &mut waiting {
            sample.key.frames = vec!["next (a.py:1)".into()];
            sample.key.phase = Some(Phase::Data);
        }
        let found = build(&waiting, &waiting, None, |ns| ns as f64 / 1e9).unwrap();
        assert_eq!((found.steps, found.host.len(), found.workers.len()), (1, 1, 1));
    }

    #[test]
    fn the_events_of_the_gpu_are_bounded() {
        let kernel = |at: u64| Record {
            start: 1_000_000_000 + at * 10_000,
            end: 1_000_000_000 + at * 10_000 + 5_000,
            stream: 7,
            ..Record::new(Activity::Kernel)
        };
        let copy = Record {
            start: 1_041_000_000,
            end: 1_042_000_000,
            detail: 1,
            source: PAGEABLE,
            value: 4096,
            ..Record::new(Activity::Copy)
        };
        let trace = |count: u64| {
            let records: Vec<Record> = (0..count).map(kernel).chain([copy]).collect();
            crate::gpu_window::tests::trace(records)
        };
        let few = build(&samples(6), &[], Some(&trace(10_000)), |_| 0.0).unwrap();
        assert_eq!((few.gpu.len(), few.cut), (2000, true));
        assert!(few.us < 40_000.0 && few.gpu.iter().all(|slice| slice.at + slice.us <= few.us + 0.2));
        let copied = build(&samples(3), &[], Some(&trace(1)), |_| 0.0).unwrap();
        assert_eq!(copied.names, ["copy HtoD, pageable"]);
        assert_eq!(copied.gpu[0].bytes, Some(4096));
    }
}
