//! Rows of a table as samples: the rows of all GPUs at one moment are one sample.

use super::columns::{self, Column, Header};
use super::lines::LineReader;
use super::row::{Row, RowState};
use super::{Format, Report, dmon, number};
use crate::record::GpuInfo;
use crate::sample::Sample;
use flatout_core::message;

/// Without an index, rows closer together than this are other GPUs of the same moment.
const SAME_MOMENT_MS: f64 = 20.0;

pub struct TableReader {
    lines: LineReader,
    format: Format,
    header: Header,
    /// dmon repeats it every few rows.
    header_line: Vec<u8>,
    report: Report,
    row: Row,
    row_state: RowState,
    /// `row` holds the first row of the next sample.
    pending: bool,
    /// A first line that is a row already.
    first: Option<Vec<u8>>,
    ended: bool,
    /// The indices in the sample that is being put together.
    taken: Vec<u32>,
    identities: Vec<Vec<u8>>,
    interval_s: f64,
    clock: Clock,
}

/// Seconds since the first row, never going back.
#[derive(Default)]
struct Clock {
    first_ms: Option<f64>,
    last_s: f64,
    last_step_s: f64,
    /// Added because the log's clock was set back.
    offset_s: f64,
}

impl TableReader {
    pub fn new(lines: LineReader, header: Header, format: Format, interval_s: f64, first: Vec<u8>) -> Self {
        let report = Report {
            ignored_columns: header.ignored.clone(),
            ..Report::default()
        };
        Self {
            lines,
            format,
            first: (!header.is_line).then_some(first),
            header,
            header_line: Vec::new(),
            report,
            row: Row::default(),
            row_state: RowState::default(),
            pending: false,
            ended: false,
            taken: Vec::new(),
            identities: Vec::new(),
            interval_s: if interval_s > 0.0 { interval_s } else { 1.0 },
            clock: Clock::default(),
        }
    }

    pub fn report(&self) -> &Report {
        &self.report
    }

    pub fn read_into(&mut self, sample: &mut Sample) -> bool {
        self.taken.clear();
        let mut moment_ms = None;
        while self.pending || self.read_row() {
            self.pending = true;
            if self.taken.is_empty() {
                moment_ms = self.row.time_ms;
                sample.t = self.tell_time();
                if self.format == Format::Flatout {
                    self.row.tell_host(&self.header.columns, &mut sample.host);
                }
            } else if !self.belongs(moment_ms) {
                break;
            }
            self.pending = false;
            let next = u32::try_from(self.taken.len()).unwrap_or(u32::MAX);
            let without_gpu = self.format == Format::Flatout && self.row.index.is_none();
            if without_gpu {
                // A tick on a machine without a GPU.
                self.taken.push(u32::MAX);
                break;
            }
            let index = self.row.index.unwrap_or(next);
            self.taken.push(index);
            self.row
                .tell_gpu(&self.header.columns, sample.gpus.entry(index).or_default());
        }
        if self.taken.is_empty() {
            return false;
        }
        if sample.gpus.len() != self.taken.len() {
            sample.gpus.retain(|index, _| self.taken.contains(index));
        }
        self.report.samples += 1;
        true
    }

    /// Whether the row is of the moment of the sample that is being put together.
    fn belongs(&self, moment_ms: Option<f64>) -> bool {
        match self.row.index {
            Some(index) => !self.taken.contains(&index),
            None => match (moment_ms, self.row.time_ms) {
                (Some(moment), Some(time)) => (time - moment).abs() < SAME_MOMENT_MS,
                _ => false,
            },
        }
    }

    fn tell_time(&mut self) -> f64 {
        if self.report.started_unix_ms.is_none() {
            let relative = self.format == Format::Flatout;
            let start = if relative {
                self.row.started_unix_ms
            } else {
                self.row.time_ms
            };
            self.report.started_unix_ms = start.filter(|ms| *ms > 0.0).map(|ms| ms as u64);
        }
        let first = self.report.samples == 0;
        let (seconds, back) = self.clock.tell(self.row.time_ms, first, self.interval_s);
        self.report.backward_steps += u64::from(back);
        seconds
    }

    /// Reads the next row that can be read into `row`; false at the end of the log.
    fn read_row(&mut self) -> bool {
        while !self.ended {
            let first = self.first.take();
            let line = match &first {
                Some(line) => line.as_slice(),
                None => match self.lines.next() {
                    Ok(Some(line)) => line,
                    Ok(None) => {
                        self.ended = true;
                        break;
                    }
                    Err(error) => {
                        let number = self.lines.number();
                        self.ended = true;
                        let text = error.to_string();
                        self.report.bad(number, message!(en: "the file cannot be read on: {text}", zh: "文件无法继续读取：{text}"));
                        break;
                    }
                },
            };
            if line.is_empty() || line.trim_ascii().is_empty() {
                continue;
            }
            let begins_header = line[0] == b'#' || line[0].is_ascii_alphabetic();
            if begins_header && line == self.header_line {
                continue;
            }
            if begins_header && let Some(header) = again(self.format, line) {
                // A log of several runs, one behind the other.
                for name in &header.ignored {
                    if !self.report.ignored_columns.contains(name) {
                        self.report.ignored_columns.push(name.clone());
                    }
                }
                self.header = header;
                self.header_line = line.to_vec();
                self.row = Row::default();
                continue;
            }
            if line[0] == b'#' {
                continue;
            }
            self.row.clear(self.header.columns.len());
            let fields = parse(line, &self.header, &mut self.row, &mut self.row_state);
            let expected = self.header.columns.len();
            if fields != expected {
                let number = self.lines.number();
                self.report.bad(
                    number,
                    message!(en: "line {number} has {fields} fields, the header has {expected}", zh: "第 {number} 行有 {fields} 个字段，表头有 {expected} 个"),
                );
                continue;
            }
            self.row.index = self
                .row
                .index
                .or_else(|| identify(line, &self.header, &mut self.identities));
            describe(line, &self.header, self.row.index, &mut self.report);
            self.report.rows += 1;
            self.report.clamped += self.row.clamped;
            return true;
        }
        false
    }
}

impl Clock {
    /// Seconds since the first row, and whether the log's clock went back.
    fn tell(&mut self, time_ms: Option<f64>, first: bool, interval_s: f64) -> (f64, bool) {
        let Some(time_ms) = time_ms else {
            self.last_s += if first { 0.0 } else { interval_s };
            return (self.last_s, false);
        };
        let first_ms = *self.first_ms.get_or_insert(time_ms);
        let mut seconds = (time_ms - first_ms) / 1000.0 + self.offset_s;
        let back = seconds < self.last_s;
        if back {
            let step = if self.last_step_s > 0.0 {
                self.last_step_s
            } else {
                interval_s
            };
            self.offset_s += self.last_s + step - seconds;
            seconds = self.last_s + step;
        }
        self.last_step_s = seconds - self.last_s;
        self.last_s = seconds;
        ((seconds * 1e6).round() / 1e6, back)
    }
}

impl Report {
    pub(super) fn bad(&mut self, line: u64, what: flatout_core::Message) {
        self.bad_rows += 1;
        self.first_bad.get_or_insert((line, what));
    }
}

/// The header once more, in the middle of a log.
fn again(format: Format, line: &[u8]) -> Option<Header> {
    match format {
        Format::Dmon => dmon::header(line),
        Format::Flatout => columns::own(line),
        Format::NvidiaSmi | Format::Gpustat => columns::query(line),
    }
}

/// Takes the fields of a line; says how many there are.
fn parse(line: &[u8], header: &Header, row: &mut Row, state: &mut RowState) -> usize {
    if header.blanks {
        return parse_blanks(line, header, row, state);
    }
    let mut from = 0;
    for count in 0.. {
        let column = header.columns.get(count).unwrap_or(&Column::Ignored);
        let number = column.is_number().then(|| number::field(line, from)).flatten();
        let end = if let Some((value, end)) = number {
            row.take_number(count, column, value);
            end
        } else {
            let end = memchr::memchr(b',', &line[from..]).map_or(line.len(), |at| from + at);
            row.take(count, column, &line[from..end], state);
            end
        };
        from = end + 1;
        if end == line.len() {
            return count + 1;
        }
    }
    0
}

fn parse_blanks(line: &[u8], header: &Header, row: &mut Row, state: &mut RowState) -> usize {
    let mut count = 0;
    for field in fields(line, true) {
        if let Some(column) = header.columns.get(count) {
            row.take(count, column, field, state);
        }
        count += 1;
    }
    count
}

/// The fields of a line.
fn fields(line: &[u8], blanks: bool) -> Fields<'_> {
    Fields {
        rest: Some(if blanks { line.trim_ascii() } else { line }),
        blanks,
    }
}

struct Fields<'a> {
    rest: Option<&'a [u8]>,
    blanks: bool,
}

impl<'a> Iterator for Fields<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        let end = if self.blanks {
            rest.iter().position(u8::is_ascii_whitespace)
        } else {
            // Fields are a few bytes long: looking byte by byte is quicker than setting up a wide search.
            rest.iter().position(|byte| *byte == b',')
        };
        let (field, left) = match end {
            Some(end) if self.blanks => (&rest[..end], Some(rest[end..].trim_ascii_start())),
            Some(end) => (&rest[..end], Some(&rest[end + 1..])),
            None => (rest, None),
        };
        self.rest = left;
        Some(field)
    }
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
