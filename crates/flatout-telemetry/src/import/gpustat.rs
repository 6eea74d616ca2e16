//! `gpustat --json`, once or again and again into one file: JSON objects one behind the other.

use super::Report;
use super::lines::LineReader;
use super::time;
use crate::record::GpuInfo;
use crate::sample::{GpuProcess, GpuSample, Sample};
use flatout_core::message;
use serde::Deserialize;
use std::borrow::Cow;

/// An object larger than this is not gpustat's.
const LONGEST_OBJECT: usize = 16 << 20;

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(default, borrow)]
    query_time: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    driver_version: Option<Cow<'a, str>>,
    #[serde(borrow)]
    gpus: Vec<Gpu<'a>>,
}

#[derive(Deserialize)]
struct Gpu<'a> {
    index: u32,
    #[serde(default, borrow)]
    uuid: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(default, rename = "temperature.gpu")]
    temperature: Option<f64>,
    #[serde(default, rename = "utilization.gpu")]
    utilisation: Option<f64>,
    #[serde(default, rename = "power.draw")]
    power: Option<f64>,
    #[serde(default, rename = "enforced.power.limit")]
    power_limit: Option<f64>,
    #[serde(default, rename = "memory.used")]
    memory_used: Option<f64>,
    #[serde(default, rename = "memory.total")]
    memory_total: Option<f64>,
    #[serde(default)]
    processes: Option<Vec<Process>>,
}

#[derive(Deserialize)]
struct Process {
    pid: u32,
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    gpu_memory_usage: Option<f64>,
}

pub struct GpustatReader {
    lines: LineReader,
    object: Vec<u8>,
    /// An object that was read, for the next.
    spare: Vec<u8>,
    report: Report,
    first_ms: Option<f64>,
    last_s: f64,
}

impl GpustatReader {
    pub fn new(lines: LineReader, first: Vec<u8>) -> Self {
        Self {
            lines,
            object: first,
            spare: Vec::new(),
            report: Report::default(),
            first_ms: None,
            last_s: 0.0,
        }
    }

    pub fn report(&self) -> &Report {
        &self.report
    }

    pub fn read_into(&mut self, sample: &mut Sample) -> bool {
        while let Some(object) = self.next_object() {
            let Some(object) = object else {
                self.bad("it is too long");
                continue;
            };
            match serde_json::from_slice(&object) {
                Ok(document) => {
                    self.fill(document, sample);
                    self.report.samples += 1;
                    self.spare = object;
                    return true;
                }
                Err(error) => self.bad(&error.to_string()),
            }
        }
        false
    }

    fn bad(&mut self, reason: &str) {
        let line = self.lines.number();
        self.report.bad(
            line,
            message!(en: "the object that ends in line {line} is not gpustat's: {reason}", zh: "到第 {line} 行为止的对象不是 gpustat 的输出：{reason}"),
        );
    }

    /// Collects lines up to the end of an object. An object that was cut off ends where the next begins. `Some(None)` for one that is
    /// too long.
    fn next_object(&mut self) -> Option<Option<Vec<u8>>> {
        let mut next = std::mem::take(&mut self.spare);
        next.clear();
        let mut braces = Braces::default();
        loop {
            if braces.closed(&self.object) {
                break;
            }
            match self.lines.next() {
                Ok(Some(line)) if line.first() == Some(&b'{') && !self.object.trim_ascii().is_empty() => {
                    next.extend_from_slice(line);
                    break;
                }
                Ok(Some(line)) => {
                    // Much of it is indentation; no string goes on over a line's end.
                    self.object.extend_from_slice(line.trim_ascii_start());
                    self.object.push(b'\n');
                    if self.object.len() > LONGEST_OBJECT {
                        self.object.clear();
                        return Some(None);
                    }
                }
                Ok(None) | Err(_) if self.object.trim_ascii().is_empty() => return None,
                Ok(None) | Err(_) => break,
            }
        }
        Some(Some(std::mem::replace(&mut self.object, next)))
    }

    fn fill(&mut self, document: Document, sample: &mut Sample) {
        let time_ms = document
            .query_time
            .as_deref()
            .and_then(|text| time::parse(text.as_bytes()));
        if let Some(time_ms) = time_ms {
            let first_ms = *self.first_ms.get_or_insert(time_ms);
            self.report.started_unix_ms.get_or_insert(first_ms as u64);
            let seconds = (time_ms - first_ms) / 1000.0;
            self.report.backward_steps += u64::from(seconds < self.last_s);
            self.last_s = seconds.max(self.last_s);
        } else if self.report.samples > 0 {
            self.last_s += 1.0;
        }
        if let Some(driver) = document.driver_version {
            self.report
                .versions
                .entry("driver".into())
                .or_insert_with(|| driver.into_owned());
        }
        sample.t = self.last_s;
        // What a sample holds on the heap is used again.
        sample
            .gpus
            .retain(|index, _| document.gpus.iter().any(|gpu| gpu.index == *index));
        for gpu in document.gpus {
            self.report.rows += 1;
            self.report.gpus.entry(gpu.index).or_insert_with(|| GpuInfo {
                name: gpu.name.as_deref().map(str::to_owned),
                uuid: gpu.uuid.as_deref().map(str::to_owned),
                mem_total_bytes: gpu.memory_total.map(mebibytes),
                ..GpuInfo::default()
            });
            let values = self.values(&gpu);
            sample.gpus.insert(gpu.index, values);
        }
    }

    fn values(&mut self, gpu: &Gpu) -> GpuSample {
        let util = gpu.utilisation.map(|percent| {
            let share = percent / 100.0;
            self.report.clamped += u64::from(!(0.0..=1.0).contains(&share));
            share.clamp(0.0, 1.0)
        });
        GpuSample {
            util,
            mem_used_bytes: gpu.memory_used.map(mebibytes),
            mem_free_bytes: gpu
                .memory_total
                .zip(gpu.memory_used)
                .map(|(total, used)| mebibytes(total - used)),
            power_w: gpu.power,
            power_limit_w: gpu.power_limit,
            temp_c: gpu.temperature,
            processes: gpu.processes.as_ref().map(|processes| {
                let process = |process: &Process| GpuProcess {
                    pid: process.pid,
                    mem_bytes: process.gpu_memory_usage.map(mebibytes),
                    sm_util: None,
                    command: process.command.clone(),
                };
                processes.iter().map(process).collect()
            }),
            ..GpuSample::default()
        }
    }
}

fn mebibytes(value: f64) -> u64 {
    (value.max(0.0) * 1024.0 * 1024.0) as u64
}

/// How deep in braces the text seen so far ends, those inside strings not counted.
#[derive(Default)]
struct Braces {
    seen: usize,
    depth: i64,
    in_string: bool,
    escaped: bool,
    any_closed: bool,
}

impl Braces {
    /// Whether the object is complete. Looks only at what came since the last time.
    fn closed(&mut self, text: &[u8]) -> bool {
        let new = text.get(self.seen..).unwrap_or_default();
        self.seen = text.len();
        // Most lines have quotes only, and whether a string is open is whether their number is odd.
        if !self.escaped && memchr::memchr3(b'{', b'}', b'\\', new).is_none() {
            let quotes = new.iter().filter(|byte| **byte == b'"').count();
            self.in_string ^= quotes % 2 == 1;
        } else {
            self.each(new);
        }
        self.depth <= 0 && self.any_closed
    }

    fn each(&mut self, text: &[u8]) {
        for byte in text {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                b'{' if !self.in_string => self.depth += 1,
                b'}' if !self.in_string => {
                    self.depth -= 1;
                    self.any_closed = true;
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lines_without_braces_are_counted_as_byte_by_byte(lines in prop::collection::vec("[{}\"\\\\a ]{0,6}", 0..12)) {
            let (mut quick, mut slow) = (Braces::default(), Braces::default());
            let mut text = String::new();
            for line in lines {
                text += &line;
                let closed = quick.closed(text.as_bytes());
                slow.each(line.as_bytes());
                prop_assert_eq!(closed, slow.depth <= 0 && slow.any_closed, "{}", text);
                prop_assert_eq!((quick.depth, quick.in_string, quick.escaped), (slow.depth, slow.in_string, slow.escaped));
            }
        }
    }
}
