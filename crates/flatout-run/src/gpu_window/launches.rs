//! Which line of the host launched a kernel or a copy.
//!
//! A kernel runs long after its launch, so the line that the host is in while the GPU computes says nothing. A window that records
//! CUDA's API calls knows when each launch happened; the sample of the training thread nearest to that instant is where it came from.
//! Samples are 2 ms apart: a single launch may be credited to a neighboring line, the sums over many steps are right. Backward is
//! launched by a thread of its own while the training thread waits in `backward()`, and counts there.

use super::{add_kernel, kernels, one_copy};
use crate::stacks::TimedStack;
use flatout_record::{KindTime, LaunchStack, SyncStack};
use flatout_tracer::format::{Activity, Record, Trace};
use std::collections::HashMap;

/// A sample that is farther away than this is about something else.
const NEAR_NS: u64 = 10_000_000;
/// Stacks that are kept. Others keep what they share with them, so that sums stay true.
const MOST_STACKS: usize = 60;

/// How CUPTI numbers a wait for a stream.
const STREAM: u8 = 3;

/// What each stack launched, the largest first; empty where the window recorded no launches.
pub fn by_stack(trace: &Trace, samples: &[TimedStack]) -> Vec<LaunchStack> {
    let launched = launch_times(trace);
    if launched.is_empty() || samples.is_empty() {
        return Vec::new();
    }
    let mut found: HashMap<&[String], LaunchStack> = HashMap::new();
    for record in &trace.records {
        if !matches!(record.activity, Activity::Kernel | Activity::Copy) {
            continue;
        }
        let at = launched.get(&record.correlation);
        let frames = at
            .and_then(|at| nearest(samples, *at))
            .map_or(&[][..], |sample| &sample.key.frames);
        let stack = found.entry(frames).or_default();
        stack.merge(&one(trace, record));
    }
    let named = |(frames, stack): (&[String], LaunchStack)| LaunchStack {
        frames: frames.to_vec(),
        ..stack
    };
    condensed(found.into_iter().map(named).collect())
}

/// Where the host waits for a stream, the most frequent first; empty where the window recorded no synchronizations.
pub fn waits_by_stack(trace: &Trace, samples: &[TimedStack]) -> Vec<SyncStack> {
    let mut found: HashMap<&[String], SyncStack> = HashMap::new();
    let waits = trace
        .records
        .iter()
        .filter(|record| (record.activity, record.detail) == (Activity::Synchronization, STREAM));
    for record in waits {
        let Some(sample) = nearest(samples, record.start) else {
            continue;
        };
        let stack = found.entry(&sample.key.frames).or_default();
        stack.count += 1;
        stack.ms += super::ms(record.end.saturating_sub(record.start));
    }
    let named = |(frames, stack): (&[String], SyncStack)| SyncStack {
        frames: frames.to_vec(),
        ..stack
    };
    let mut found: Vec<SyncStack> = found.into_iter().map(named).collect();
    found.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.frames.cmp(&b.frames)));
    found.truncate(MOST_STACKS);
    found
}

fn one(trace: &Trace, record: &Record) -> LaunchStack {
    let mut stack = LaunchStack::default();
    if record.activity == Activity::Copy {
        stack.copies.push(one_copy(record));
    } else {
        let name = trace.name(record).unwrap_or("unknown");
        let mut kind = KindTime::none(kernels::kind(name));
        add_kernel(&mut kind, record.end.saturating_sub(record.start));
        stack.kinds.push(kind);
    }
    stack
}

/// When each correlation was launched: the outermost call, which begins first.
fn launch_times(trace: &Trace) -> HashMap<u32, u64> {
    let mut times = HashMap::new();
    for record in &trace.records {
        if matches!(record.activity, Activity::Runtime | Activity::Driver) {
            let at = times.entry(record.correlation).or_insert(record.start);
            *at = record.start.min(*at);
        }
    }
    times
}

/// Samples are in order of time.
fn nearest(samples: &[TimedStack], at: u64) -> Option<&TimedStack> {
    let next = samples.partition_point(|sample| sample.at_ns < at);
    let around = [next.checked_sub(1), Some(next)];
    let distance = |sample: &&TimedStack| sample.at_ns.abs_diff(at);
    around
        .into_iter()
        .flatten()
        .filter_map(|index| samples.get(index))
        .filter(|sample| distance(sample) <= NEAR_NS)
        .min_by_key(distance)
}

/// Keeps the stacks with most time; rare ones lose their innermost frames until few enough are left.
fn condensed(mut stacks: Vec<LaunchStack>) -> Vec<LaunchStack> {
    sort(&mut stacks);
    while stacks.len() > MOST_STACKS {
        let rare = stacks.split_off(MOST_STACKS / 2);
        let deepest = rare.iter().map(|stack| stack.frames.len()).max().unwrap_or(0);
        for mut stack in rare {
            if stack.frames.len() == deepest {
                stack.frames.pop();
            }
            match stacks.iter_mut().find(|kept| kept.frames == stack.frames) {
                Some(kept) => kept.merge(&stack),
                None => stacks.push(stack),
            }
        }
        sort(&mut stacks);
        if deepest == 0 {
            break;
        }
    }
    stacks
}

fn sort(stacks: &mut [LaunchStack]) {
    stacks.sort_by(|a, b| b.ms().total_cmp(&a.ms()).then_with(|| a.frames.cmp(&b.frames)));
}
