//! `gpustat --json`, once or again and again into one file: JSON objects one behind the other. Blocks of whole objects are read by
//! several threads and put together in their order.

use super::in_order::in_order;
use super::lines::LineReader;
use super::{Report, time};
use flatout_core::message;
use flatout_core::secrets::redact;
use flatout_record::{GpuInfo, GpuProcess, GpuSample, Sample};
use serde::Deserialize;
use std::borrow::Cow;

/// An object begins at the beginning of a line; those inside it are indented.
const BEGINNING: &[u8] = b"\n{";
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
    /// The beginning of an object whose end was not yet read.
    begun: Vec<u8>,
}

impl GpustatReader {
    pub fn new(lines: LineReader, mut first: Vec<u8>) -> Self {
        first.push(b'\n');
        Self { lines, begun: first }
    }

    /// Calls `see` with every sample in its turn.
    pub fn each(self, mut see: impl FnMut(&Sample)) -> Report {
        let Self { mut lines, mut begun } = self;
        let mut assembler = Assembler {
            lines_before: lines.number() - 1,
            ..Assembler::default()
        };
        let mut broken_off = None;
        let mut read = Vec::new();
        let mut fill = |block: &mut Block| {
            block.text.clear();
            block.text.append(&mut begun);
            loop {
                let more = lines.next_lines(&mut read).unwrap_or_else(|error| {
                    broken_off = Some(error.to_string());
                    false
                });
                if !more {
                    return !block.text.is_empty();
                }
                block.text.extend_from_slice(&read);
                if let Some(at) = memchr::memmem::rfind(&block.text, BEGINNING) {
                    begun.extend_from_slice(&block.text[at + 1..]);
                    block.text.truncate(at + 1);
                    return true;
                }
                if block.text.len() > LONGEST_OBJECT {
                    return true;
                }
            }
        };
        let worker = || {
            let mut parser = Parser::default();
            move |block: &mut Block| parser.parse(block)
        };
        in_order(&mut fill, worker, |block| assembler.take(block, &mut see));
        let mut report = assembler.report;
        report.broken_off(assembler.lines_before, broken_off);
        report
    }
}

/// Whole objects read at once, and what they hold.
#[derive(Default)]
struct Block {
    text: Vec<u8>,
    ticks: Vec<Tick>,
    /// What GPUs are, where this is told for the first time by whoever read the block.
    about: Vec<(u32, GpuInfo)>,
    driver: Option<String>,
    lines: u64,
    clamped: u64,
    bad: u64,
    /// The first of them: the line in the block where it ends, and why.
    first_bad: Option<(u64, String)>,
}

struct Tick {
    time_ms: Option<f64>,
    gpus: Vec<(u32, GpuSample)>,
}

/// Reads blocks by themselves.
#[derive(Default)]
struct Parser {
    /// The GPUs that were told of.
    known: Vec<u32>,
    driver_known: bool,
}

impl Parser {
    fn parse(&mut self, block: &mut Block) {
        let text = std::mem::take(&mut block.text);
        block.ticks.clear();
        block.about.clear();
        (block.driver, block.clamped, block.bad, block.first_bad) = (None, 0, 0, None);
        block.lines = memchr::memchr_iter(b'\n', &text).count() as u64;
        let mut from = 0;
        // An object that was cut off ends where the next begins.
        while from < text.len() {
            let end = memchr::memmem::find(&text[from..], BEGINNING).map_or(text.len(), |at| from + at + 1);
            let mut result = self.objects(&text[from..end], block);
            if result.is_err() && std::str::from_utf8(&text[from..end]).is_err() {
                // A name in another encoding does not matter.
                result = self.objects(String::from_utf8_lossy(&text[from..end]).as_bytes(), block);
            }
            if let Err(error) = result {
                block.bad += 1;
                let line = memchr::memchr_iter(b'\n', &text[..end]).count() as u64;
                block.first_bad.get_or_insert_with(|| (line, error.to_string()));
            }
            from = end;
        }
        block.text = text;
    }

    /// The objects of a text that holds one, or several on one line.
    fn objects(&mut self, text: &[u8], block: &mut Block) -> serde_json::Result<()> {
        for document in serde_json::Deserializer::from_slice(text).into_iter() {
            self.tick(document?, block);
        }
        Ok(())
    }

    fn tick(&mut self, document: Document, block: &mut Block) {
        if let Some(driver) = document.driver_version
            && !self.driver_known
        {
            self.driver_known = true;
            block.driver = Some(driver.into_owned());
        }
        let time_ms = document
            .query_time
            .as_deref()
            .and_then(|text| time::parse(text.as_bytes()));
        let mut gpus = Vec::with_capacity(document.gpus.len());
        for gpu in document.gpus {
            if !self.known.contains(&gpu.index) {
                self.known.push(gpu.index);
                block.about.push((gpu.index, about(&gpu)));
            }
            gpus.push((gpu.index, values(gpu, &mut block.clamped)));
        }
        block.ticks.push(Tick { time_ms, gpus });
    }
}

/// Puts the ticks together in their order.
#[derive(Default)]
struct Assembler {
    report: Report,
    sample: Sample,
    first_ms: Option<f64>,
    last_s: f64,
    lines_before: u64,
}

impl Assembler {
    fn take(&mut self, block: &mut Block, see: &mut impl FnMut(&Sample)) {
        for (index, info) in block.about.drain(..) {
            self.report.gpus.entry(index).or_insert(info);
        }
        if let Some(driver) = block.driver.take() {
            self.report.versions.entry("driver".into()).or_insert(driver);
        }
        for tick in block.ticks.drain(..) {
            self.sample.t = self.tell_time(tick.time_ms);
            self.report.rows += tick.gpus.len() as u64;
            self.sample.gpus.clear();
            self.sample.gpus.extend(tick.gpus);
            self.report.samples += 1;
            see(&self.sample);
        }
        self.report.clamped += block.clamped;
        if let Some((line, reason)) = block.first_bad.take() {
            let line = self.lines_before + line;
            self.report.bad(
                line,
                message!(en: "the object ending on line {line} is not gpustat output: {reason}", zh: "到第 {line} 行为止的对象不是 gpustat 的输出：{reason}"),
            );
            self.report.bad_rows += block.bad - 1;
        }
        self.lines_before += block.lines;
    }

    fn tell_time(&mut self, time_ms: Option<f64>) -> f64 {
        if let Some(time_ms) = time_ms {
            let first_ms = *self.first_ms.get_or_insert(time_ms);
            self.report.started_unix_ms.get_or_insert(first_ms as u64);
            let seconds = (time_ms - first_ms) / 1000.0;
            self.report.backward_steps += u64::from(seconds < self.last_s);
            self.last_s = seconds.max(self.last_s);
        } else if self.report.samples > 0 {
            self.last_s += 1.0;
        }
        self.last_s
    }
}

fn about(gpu: &Gpu) -> GpuInfo {
    GpuInfo {
        name: gpu.name.as_deref().map(str::to_owned),
        uuid: gpu.uuid.as_deref().map(str::to_owned),
        mem_total_bytes: gpu.memory_total.map(mebibytes),
        ..GpuInfo::default()
    }
}

fn values(gpu: Gpu, clamped: &mut u64) -> GpuSample {
    let util = gpu.utilisation.map(|percent| {
        *clamped += u64::from(!(0.0..=100.0).contains(&percent));
        percent.clamp(0.0, 100.0) / 100.0
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
        processes: gpu.processes.map(|processes| {
            let process = |process: Process| GpuProcess {
                pid: process.pid,
                mem_bytes: process.gpu_memory_usage.map(mebibytes),
                sm_util: None,
                command: process.command.map(|command| redact(&[command]).concat()),
            };
            processes.into_iter().map(process).collect()
        }),
        ..GpuSample::default()
    }
}

fn mebibytes(value: f64) -> u64 {
    (value.max(0.0) * 1024.0 * 1024.0) as u64
}
