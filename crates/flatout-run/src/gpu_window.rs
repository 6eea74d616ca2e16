//! A trace of the GPU joined with the host's samples: what the GPU did at every instant of a window, and what the host did
//! whenever the GPU was idle.

mod intervals;
pub(crate) mod kernels;
mod launches;

use crate::stacks::TimedStack;
use flatout_record::{Copy, GpuState, GpuWindow, KernelKind, KindTime, NamedTime, StackCount};
use flatout_tracer::format::{Activity, DEVICE, PAGEABLE, PINNED, Record, Trace};
use intervals::Intervals;
use std::collections::{BTreeMap, HashMap};

/// Kernels named in a window.
const MOST_KERNELS: usize = 12;
/// A kernel shorter than this is over before the next one can be launched.
const TINY_NS: u64 = 5_000;

/// Joins a trace with the samples taken during it. `t` is its end in the record's time.
pub fn join(trace: &Trace, samples: &[TimedStack], steps: u64, t: f64) -> GpuWindow {
    let (start, stop) = (trace.header.start, trace.header.stop.max(trace.header.start));
    let states = States::of(trace);
    let durations = states.durations(start, stop);
    let mut window = GpuWindow {
        t,
        wall_ms: ms(stop - start),
        steps,
        computing_ms: ms(durations.computing),
        communicating_ms: ms(durations.communicating),
        copying_ms: ms(durations.copying),
        idle_ms: ms(durations.idle),
        dropped: trace.header.dropped + trace.header.refused,
        ..GpuWindow::default()
    };
    describe_kernels(trace, &mut window);
    window.copies = copies(trace);
    window.syncs = syncs(trace);
    window.sync_stacks = launches::waits_by_stack(trace, samples);
    window.stacks = stacks(samples, &states, start, stop);
    window.launches = launches::by_stack(trace, samples);
    window
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// When the GPU computed, communicated and copied.
struct States {
    computing: Intervals,
    communicating: Intervals,
    copying: Intervals,
}

struct Durations {
    computing: u64,
    communicating: u64,
    copying: u64,
    idle: u64,
}

impl States {
    fn of(trace: &Trace) -> Self {
        let spans = |keep: &dyn Fn(&Record) -> bool| {
            let kept = trace.records.iter().filter(|record| keep(record));
            Intervals::new(kept.map(|record| (record.start, record.end)))
        };
        let is_communication = |record: &Record| {
            record.activity == Activity::Kernel
                && trace
                    .name(record)
                    .is_some_and(|name| kernels::kind(name) == KernelKind::Communication)
        };
        Self {
            communicating: spans(&is_communication),
            computing: spans(&|record| match record.activity {
                Activity::Kernel => !is_communication(record),
                Activity::Memset | Activity::Graph => true,
                _ => false,
            }),
            copying: spans(&|record| record.activity == Activity::Copy),
        }
    }

    /// The first that applies: a copy beside a kernel costs nothing.
    fn at(&self, ns: u64) -> GpuState {
        if self.computing.contains(ns) {
            GpuState::Computing
        } else if self.communicating.contains(ns) {
            GpuState::Communicating
        } else if self.copying.contains(ns) {
            GpuState::Copying
        } else {
            GpuState::Idle
        }
    }

    fn durations(&self, start: u64, stop: u64) -> Durations {
        let computing = self.computing.length_within(start, stop);
        let two = self.computing.union(&self.communicating);
        let three = two.union(&self.copying);
        let (two, three) = (two.length_within(start, stop), three.length_within(start, stop));
        Durations {
            computing,
            communicating: two - computing,
            copying: three - two,
            idle: (stop - start).saturating_sub(three),
        }
    }
}

fn describe_kernels(trace: &Trace, window: &mut GpuWindow) {
    let mut kinds: BTreeMap<KernelKind, KindTime> = BTreeMap::new();
    let mut names: HashMap<&str, (u64, u64)> = HashMap::new();
    for record in &trace.records {
        if record.activity != Activity::Kernel {
            continue;
        }
        let name = trace.name(record).unwrap_or("unknown");
        let ns = record.end.saturating_sub(record.start);
        let kind = kernels::kind(name);
        add_kernel(kinds.entry(kind).or_insert(KindTime::none(kind)), ns);
        let named = names.entry(name).or_default();
        named.0 += 1;
        named.1 += ns;
        window.kernels += 1;
    }
    window.kinds = kinds.into_values().collect();
    window.kinds.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    let mut top: Vec<NamedTime> = names
        .into_iter()
        .map(|(name, (count, ns))| NamedTime {
            name: flatout_core::text::shortened(name, 160),
            count,
            ms: ms(ns),
        })
        .collect();
    top.sort_by(|a, b| b.ms.total_cmp(&a.ms).then_with(|| a.name.cmp(&b.name)));
    top.truncate(MOST_KERNELS);
    window.top = top;
}

fn add_kernel(sum: &mut KindTime, ns: u64) {
    sum.ms += ms(ns);
    sum.count += 1;
    sum.tiny += u64::from(ns < TINY_NS);
}

/// A copy's direction, and the kind of the host's memory.
fn direction(record: &Record) -> (&'static str, &'static str) {
    let (direction, host) = match record.detail {
        1 => ("HtoD", record.source),
        2 => ("DtoH", record.destination),
        8 => ("DtoD", DEVICE),
        10 => ("PtoP", DEVICE),
        _ => ("other", 0),
    };
    let memory = match host {
        PAGEABLE => "pageable",
        PINNED => "pinned",
        DEVICE => "device",
        _ => "unknown",
    };
    (direction, memory)
}

fn one_copy(record: &Record) -> Copy {
    let (direction, memory) = direction(record);
    Copy {
        direction: direction.into(),
        memory: memory.into(),
        count: 1,
        bytes: record.value,
        ms: ms(record.end.saturating_sub(record.start)),
    }
}

fn copies(trace: &Trace) -> Vec<Copy> {
    let mut found: BTreeMap<(&str, &str), Copy> = BTreeMap::new();
    for record in trace
        .records
        .iter()
        .filter(|record| record.activity == Activity::Copy)
    {
        let one = one_copy(record);
        let sum = found.entry(direction(record)).or_insert_with(|| Copy {
            count: 0,
            bytes: 0,
            ms: 0.0,
            ..one.clone()
        });
        sum.count += one.count;
        sum.bytes += one.bytes;
        sum.ms += one.ms;
    }
    let mut found: Vec<Copy> = found.into_values().collect();
    found.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    found
}

fn syncs(trace: &Trace) -> Vec<NamedTime> {
    let mut found: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for record in &trace.records {
        let kind = match (record.activity, record.detail) {
            (Activity::Synchronization, 1) => "event",
            (Activity::Synchronization, 3) => "stream",
            (Activity::Synchronization, 4) => "context",
            _ => continue,
        };
        let sum = found.entry(kind).or_default();
        sum.0 += 1;
        sum.1 += record.end.saturating_sub(record.start);
    }
    let named = |(name, (count, ns)): (&str, (u64, u64))| NamedTime {
        name: name.into(),
        count,
        ms: ms(ns),
    };
    found.into_iter().map(named).collect()
}

/// The samples inside the window, counted by stack and by what the GPU did.
fn stacks(samples: &[TimedStack], states: &States, start: u64, stop: u64) -> Vec<StackCount> {
    let mut found: Vec<StackCount> = Vec::new();
    let mut index: HashMap<(&TimedStackKey, GpuState), usize> = HashMap::new();
    for sample in samples
        .iter()
        .filter(|sample| (start..=stop).contains(&sample.at_ns))
    {
        let state = states.at(sample.at_ns);
        let at = *index.entry((&sample.key, state)).or_insert_with(|| {
            found.push(StackCount {
                gpu: Some(state),
                ..sample.key.stack()
            });
            found.len() - 1
        });
        found[at].count += 1;
        found[at].ms += sample.ms;
    }
    crate::stacks::condensed(found)
}

type TimedStackKey = crate::stacks::Key;

#[cfg(test)]
pub(crate) mod tests;
