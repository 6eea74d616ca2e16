//! What is kept of the events: sums by name, and small spans, a bounded number of them.

use super::event::Event;
use super::gaps::{self, DeviceSpan, HostMark, Waits};
use super::kernels;
use super::operators::{self, HostSpan};
use flatout_record::{Copy, DeviceProfile, NamedTime, Profile};
use std::collections::{BTreeMap, HashMap};

/// Spans of one kind that are kept.
pub const MOST_SPANS: usize = 1 << 20;
/// Different names; the longest that is kept of one.
const MOST_NAMES: usize = 4096;
const LONGEST_NAME: usize = 160;
/// Names shown.
const TOP: usize = 8;

/// Names with a number each; beyond the most the last one stands for all others.
#[derive(Default)]
pub struct Names {
    numbers: HashMap<String, u32>,
    names: Vec<String>,
}

impl Names {
    fn number(&mut self, name: &str) -> u32 {
        let name = match name.char_indices().nth(LONGEST_NAME) {
            Some((end, _)) => &name[..end],
            None => name,
        };
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        if self.names.len() >= MOST_NAMES {
            return self.names.len() as u32 - 1;
        }
        let number = self.names.len() as u32;
        self.numbers.insert(name.to_owned(), number);
        self.names.push(name.to_owned());
        number
    }

    pub fn get(&self, index: usize) -> &str {
        self.names.get(index).map_or("", String::as_str)
    }

    pub fn len(&self) -> usize {
        self.names.len()
    }
}

#[derive(Default)]
pub struct Tally {
    events: u64,
    steps: u64,
    /// From the first marked step to the last, else of everything.
    marked: Option<(f64, f64)>,
    seen: Option<(f64, f64)>,
    device_end_us: f64,
    device: Vec<DeviceSpan>,
    launches: Vec<(u32, f64)>,
    marks: Vec<HostMark>,
    operators: Vec<HostSpan>,
    operator_calls: u64,
    names: Names,
    kernels: HashMap<u32, (u64, f64)>,
    copies: BTreeMap<(String, String), Copy>,
    sums: DeviceProfile,
    partial: bool,
}

impl Tally {
    /// One event's text; what is none, or not a span, is passed over.
    pub fn add(&mut self, text: &[u8]) {
        let Ok(event) = serde_json::from_slice::<Event>(text) else {
            return;
        };
        let (Some(start_us), Some(duration_us)) =
            (event.ts.0, event.dur.0.filter(|duration| *duration >= 0.0))
        else {
            return;
        };
        if event.ph != "X" {
            return;
        }
        self.events += 1;
        let end_us = start_us + duration_us;
        match &*event.cat {
            "kernel" => self.kernel(&event, start_us, duration_us),
            "gpu_memcpy" => self.copy(&event, start_us, duration_us),
            "gpu_memset" => self.device_span(&event, start_us, duration_us),
            "cuda_runtime" | "cuda_driver" => self.runtime(&event, start_us, end_us),
            "cpu_op" => self.operator(&event, start_us, duration_us),
            "user_annotation" => self.annotation(&event, start_us, end_us),
            _ => return,
        }
        widen(&mut self.seen, start_us, end_us);
    }

    fn kernel(&mut self, event: &Event, start_us: f64, duration_us: f64) {
        self.sums.kernels += 1;
        self.sums.kernel_ms += duration_us / 1e3;
        if kernels::is_matrix(&event.name) {
            self.sums.matrix_ms += duration_us / 1e3;
            if kernels::uses_tensor_cores(&event.name) {
                self.sums.tensor_core_ms += duration_us / 1e3;
            }
        }
        let sum = self.kernels.entry(self.names.number(&event.name)).or_default();
        *sum = (sum.0 + 1, sum.1 + duration_us);
        self.device_span(event, start_us, duration_us);
    }

    fn copy(&mut self, event: &Event, start_us: f64, duration_us: f64) {
        let (direction, memory) = kernels::copy(&event.name);
        let key = (direction.clone(), memory.clone());
        if self.copies.contains_key(&key) || self.copies.len() < 64 {
            let copy = self.copies.entry(key).or_insert_with(|| Copy {
                direction,
                memory,
                ..Copy::default()
            });
            copy.count += 1;
            copy.bytes += event.args.bytes.0.unwrap_or(0.0).max(0.0) as u64;
            copy.ms += duration_us / 1e3;
        }
        self.device_span(event, start_us, duration_us);
    }

    fn device_span(&mut self, event: &Event, start_us: f64, duration_us: f64) {
        self.device_end_us = self.device_end_us.max(start_us + duration_us);
        let span = DeviceSpan {
            start_us,
            duration_us: duration_us as f32,
            correlation: event.args.correlation.0.unwrap_or(0.0) as u32,
        };
        self.partial |= !keep(&mut self.device, span);
    }

    fn runtime(&mut self, event: &Event, start_us: f64, end_us: f64) {
        if event.name.contains("Synchronize") {
            let waits_for = Waits::Device;
            self.partial |= !keep(
                &mut self.marks,
                HostMark {
                    start_us,
                    end_us,
                    waits_for,
                },
            );
        } else if let Some(correlation) = event.args.correlation.0 {
            self.partial |= !keep(&mut self.launches, (correlation as u32, start_us));
        }
    }

    fn operator(&mut self, event: &Event, start_us: f64, duration_us: f64) {
        self.operator_calls += 1;
        let span = HostSpan {
            start_us,
            duration_us: duration_us as f32,
            thread: event.tid.0.unwrap_or(0.0) as u32,
            name: self.names.number(&event.name),
        };
        self.partial |= !keep(&mut self.operators, span);
    }

    fn annotation(&mut self, event: &Event, start_us: f64, end_us: f64) {
        if event.name.starts_with("ProfilerStep") {
            self.steps += 1;
            widen(&mut self.marked, start_us, end_us);
        } else if event.name.starts_with("enumerate(DataLoader)") {
            let waits_for = Waits::Batch;
            self.partial |= !keep(
                &mut self.marks,
                HostMark {
                    start_us,
                    end_us,
                    waits_for,
                },
            );
        }
    }

    /// What the kept spans take.
    #[cfg(test)]
    pub fn held_bytes(&self) -> usize {
        self.device.capacity() * size_of::<DeviceSpan>()
            + self.launches.capacity() * size_of::<(u32, f64)>()
            + self.marks.capacity() * size_of::<HostMark>()
            + self.operators.capacity() * size_of::<HostSpan>()
    }

    pub fn finish(mut self) -> Profile {
        let (begin_us, end_us) = self.marked.or(self.seen).unwrap_or_default();
        let end_us = end_us.max(self.device_end_us);
        self.launches
            .sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let device = (!self.device.is_empty()).then(|| {
            // What was launched before the first marked step is still of the step before.
            let spans = self
                .device
                .into_iter()
                .filter(|span| span.start_us >= begin_us)
                .collect();
            let (busy_ms, idle) = gaps::explain(spans, &self.launches, self.marks, begin_us);
            DeviceProfile {
                busy_ms,
                idle,
                copies: self.copies.into_values().collect(),
                top: top(&self.kernels, &self.names),
                ..self.sums
            }
        });
        Profile {
            steps: self.steps,
            span_ms: (end_us - begin_us).max(0.0) / 1e3,
            events: self.events,
            cut_short: false,
            partial: self.partial,
            device,
            operators: operators::by_own_time(self.operators, &self.names, TOP),
            operator_calls: self.operator_calls,
        }
    }
}

fn top(kernels: &HashMap<u32, (u64, f64)>, names: &Names) -> Vec<NamedTime> {
    let named = kernels.iter().map(|(number, (count, us))| NamedTime {
        name: names.get(*number as usize).to_owned(),
        count: *count,
        ms: us / 1e3,
    });
    let mut named: Vec<NamedTime> = named.collect();
    named.sort_by(|a, b| b.ms.total_cmp(&a.ms).then_with(|| a.name.cmp(&b.name)));
    named.truncate(TOP);
    named
}

fn widen(range: &mut Option<(f64, f64)>, start: f64, end: f64) {
    let (low, high) = range.unwrap_or((start, end));
    *range = Some((low.min(start), high.max(end)));
}

/// Whether there was room.
fn keep<T>(spans: &mut Vec<T>, span: T) -> bool {
    let room = spans.len() < MOST_SPANS;
    if room {
        spans.push(span);
    }
    room
}
