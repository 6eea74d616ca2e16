//! Rows in their order as samples: the rows of all GPUs at one moment are one sample. Keeps what depends on the rows before: the
//! header in force, the clock, which GPU a row is of.

use super::super::columns::{Column, Header};
use super::super::row::Row;
use super::super::{Format, Report};
use super::clock::Clock;
use super::parse::{Block, Parser};
use flatout_core::message;
use flatout_record::{GpuInfo, Sample};
use std::sync::{Arc, Mutex, PoisonError};

/// Without an index, rows closer together than this are other GPUs of the same moment.
const SAME_MOMENT_MS: f64 = 20.0;

pub struct Assembler<'a> {
    format: Format,
    interval_s: f64,
    pub report: Report,
    /// The header in force; whoever reads a block takes it from here.
    shared: &'a Mutex<Arc<Header>>,
    header: Arc<Header>,
    /// For a block that was read under another header than the one that was in force.
    parser: Parser,
    sample: Sample,
    /// The indices in the sample that is being put together.
    taken: Vec<u32>,
    moment_ms: Option<f64>,
    identities: Vec<Vec<u8>>,
    clock: Clock,
    lines_before: u64,
}

impl<'a> Assembler<'a> {
    pub fn new(format: Format, interval_s: f64, shared: &'a Mutex<Arc<Header>>, lines_before: u64) -> Self {
        let header = current(shared);
        Self {
            format,
            interval_s: if interval_s > 0.0 { interval_s } else { 1.0 },
            report: Report {
                ignored_columns: header.ignored.clone(),
                ..Report::default()
            },
            shared,
            header,
            parser: Parser::new(format),
            sample: Sample::default(),
            taken: Vec::new(),
            moment_ms: None,
            identities: Vec::new(),
            clock: Clock::default(),
            lines_before,
        }
    }

    /// Takes the next block; calls `see` with every sample that it completes.
    pub fn take(&mut self, block: &mut Block, see: &mut impl FnMut(&Sample)) {
        if !same(&block.headers[0], &self.header) {
            let header = Arc::clone(&self.header);
            self.parser.parse(block, &header);
        }
        let mut header = 0;
        for row in &block.rows {
            if row.header != header {
                header = row.header;
                self.begin_anew(see);
            }
            self.row(block, row, see);
        }
        if header + 1 != block.headers.len() {
            self.begin_anew(see);
        }
        for header in &block.headers[1..] {
            self.report.ignore(&header.ignored);
        }
        if let Some(last) = block.headers.last()
            && !same(last, &self.header)
        {
            self.header = Arc::clone(last);
            *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(last);
        }
        self.report.rows += block.rows.len() as u64;
        self.report.clamped += block.clamped;
        if let Some(bad) = block.first_bad {
            let (number, fields, expected) = (self.lines_before + bad.line, bad.fields, bad.expected);
            self.report.bad(
                number,
                message!(en: "line {number} has {fields} fields, the header has {expected}", zh: "第 {number} 行有 {fields} 个字段，表头有 {expected} 个"),
            );
            self.report.bad_rows += block.bad_rows - 1;
        }
        self.lines_before += block.lines;
    }

    /// Lines that were taken so far.
    pub fn lines(&self) -> u64 {
        self.lines_before
    }

    /// The sample that the last rows made.
    pub fn finish(&mut self, see: &mut impl FnMut(&Sample)) {
        if self.taken.is_empty() {
            return;
        }
        if self.sample.gpus.len() != self.taken.len() {
            let taken = &self.taken;
            self.sample.gpus.retain(|index, _| taken.contains(index));
        }
        self.taken.clear();
        self.report.samples += 1;
        see(&self.sample);
    }

    /// Under another header: what the sample holds by the old one is not told any more.
    fn begin_anew(&mut self, see: &mut impl FnMut(&Sample)) {
        self.finish(see);
        self.sample = Sample::default();
    }

    fn row(&mut self, block: &Block, row: &Row, see: &mut impl FnMut(&Sample)) {
        let header = block.header(row);
        let known = row
            .index
            .or_else(|| identify(block.line(row), header, &mut self.identities));
        describe(block.line(row), header, known, &mut self.report);
        if !self.taken.is_empty() && !self.belongs(known, row) {
            self.finish(see);
        }
        if self.taken.is_empty() {
            self.moment_ms = row.time_ms;
            self.sample.t = self.tell_time(row);
            if self.format == Format::Flatout {
                row.tell_host(block, &mut self.sample.host);
            }
        }
        if self.format == Format::Flatout && known.is_none() {
            // A tick on a machine without a GPU.
            self.taken.push(u32::MAX);
            self.finish(see);
            return;
        }
        let next = u32::try_from(self.taken.len()).unwrap_or(u32::MAX);
        let index = known.unwrap_or(next);
        self.taken.push(index);
        row.tell_gpu(block, self.sample.gpus.entry(index).or_default());
    }

    /// Whether the row is of the moment of the sample that is being put together.
    fn belongs(&self, index: Option<u32>, row: &Row) -> bool {
        match index {
            Some(index) => !self.taken.contains(&index),
            None => match (self.moment_ms, row.time_ms) {
                (Some(moment), Some(time)) => (time - moment).abs() < SAME_MOMENT_MS,
                _ => false,
            },
        }
    }

    fn tell_time(&mut self, row: &Row) -> f64 {
        if self.report.started_unix_ms.is_none() {
            let relative = self.format == Format::Flatout;
            let start = if relative {
                row.started_unix_ms
            } else {
                row.time_ms
            };
            self.report.started_unix_ms = start.filter(|ms| *ms > 0.0).map(|ms| ms as u64);
        }
        let first = self.report.samples == 0;
        let (seconds, back) = self.clock.tell(row.time_ms, first, self.interval_s);
        self.report.backward_steps += u64::from(back);
        seconds
    }
}

/// The header in force as far as it is known.
pub fn current(shared: &Mutex<Arc<Header>>) -> Arc<Header> {
    Arc::clone(&shared.lock().unwrap_or_else(PoisonError::into_inner))
}

fn same(one: &Arc<Header>, other: &Arc<Header>) -> bool {
    Arc::ptr_eq(one, other) || one.line == other.line && one.columns.len() == other.columns.len()
}

/// A GPU without an index is known by its UUID or bus, in the order of appearance.
fn identify(line: &[u8], header: &Header, identities: &mut Vec<Vec<u8>>) -> Option<u32> {
    let at = header
        .columns
        .iter()
        .position(|column| matches!(column, Column::Identity))?;
    let name = fields(line, header.blanks).nth(at)?.trim_ascii();
    let known = identities.iter().position(|known| known == name);
    let index = known.unwrap_or_else(|| {
        identities.push(name.to_vec());
        identities.len() - 1
    });
    u32::try_from(index).ok()
}

/// Notes what a GPU is when it is first seen.
fn describe(line: &[u8], header: &Header, index: Option<u32>, report: &mut Report) {
    let index = index.unwrap_or(0);
    if report.gpus.contains_key(&index) {
        return;
    }
    let mut info = GpuInfo::default();
    for (field, column) in fields(line, header.blanks).zip(&header.columns) {
        let text = String::from_utf8_lossy(field.trim_ascii()).into_owned();
        if text.starts_with('[') || text == "N/A" || text.is_empty() {
            continue;
        }
        match column {
            Column::About(set) => set(&mut info, &text),
            Column::Identity if text.starts_with("GPU-") => info.uuid = Some(text),
            Column::Driver => {
                report.versions.insert("driver".into(), text);
            }
            _ => {}
        }
    }
    report.gpus.insert(index, info);
}

/// The fields of a line.
fn fields(line: &[u8], blanks: bool) -> impl Iterator<Item = &[u8]> {
    let separates = move |byte: &u8| {
        if blanks {
            byte.is_ascii_whitespace()
        } else {
            *byte == b','
        }
    };
    line.split(separates)
        .filter(move |field| !blanks || !field.is_empty())
}
