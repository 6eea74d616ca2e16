//! A block of a table's lines as rows. Every block is read by itself, by one of several threads: what depends on the rows before it
//! is left to [`super::assemble`].

use super::super::columns::{self, Column, Header};
use super::super::row::{Row, Scratch};
use super::super::{Format, dmon, number};
use std::sync::Arc;

/// Lines read at once, and what they hold.
#[derive(Default)]
pub struct Block {
    pub text: Vec<u8>,
    pub rows: Vec<Row>,
    /// The numbers of the rows, one for each column; not a number where there is none.
    pub numbers: Vec<f64>,
    /// Each list of throttle reasons once, with the text it was read from.
    pub throttles: Vec<(Vec<u8>, Vec<String>)>,
    /// The one in force at the beginning, then every new one.
    pub headers: Vec<Arc<Header>>,
    pub lines: u64,
    pub clamped: u64,
    pub bad_rows: u64,
    pub first_bad: Option<BadRow>,
}

/// A row with another number of fields than the header.
#[derive(Clone, Copy)]
pub struct BadRow {
    /// In the block, from 1.
    pub line: u64,
    pub fields: usize,
    pub expected: usize,
}

impl Block {
    pub fn line(&self, row: &Row) -> &[u8] {
        &self.text[row.start..row.end]
    }

    pub fn header(&self, row: &Row) -> &Header {
        &self.headers[row.header]
    }

    pub fn numbers(&self, row: &Row) -> &[f64] {
        let columns = self.header(row).columns.len();
        &self.numbers[row.numbers..row.numbers + columns]
    }

    fn reset(&mut self, header: &Arc<Header>) {
        self.rows.clear();
        self.numbers.clear();
        self.throttles.clear();
        self.headers.clear();
        self.headers.push(Arc::clone(header));
        (self.lines, self.clamped, self.bad_rows, self.first_bad) = (0, 0, 0, None);
    }
}

/// Reads blocks of one log.
pub struct Parser {
    format: Format,
    scratch: Scratch,
    /// A line that looked like a header and was none: dmon repeats its units with its names.
    no_header: Vec<u8>,
}

impl Parser {
    pub fn new(format: Format) -> Self {
        Self {
            format,
            scratch: Scratch::default(),
            no_header: Vec::new(),
        }
    }

    /// Reads the block's text, which begins under this header.
    pub fn parse(&mut self, block: &mut Block, header: &Arc<Header>) {
        block.reset(header);
        let text = std::mem::take(&mut block.text);
        let mut header = Arc::clone(header);
        let mut from = 0;
        while from < text.len() {
            let end = memchr::memchr(b'\n', &text[from..]).map_or(text.len(), |at| from + at);
            let line = text[from..end].strip_suffix(b"\r").unwrap_or(&text[from..end]);
            block.lines += 1;
            if !line.is_empty() {
                self.line(line, from, block, &mut header);
            }
            from = end + 1;
        }
        block.text = text;
    }

    fn line(&mut self, line: &[u8], start: usize, block: &mut Block, header: &mut Arc<Header>) {
        if line[0].is_ascii_whitespace() && line.trim_ascii().is_empty() {
            return;
        }
        if line[0] == b'#' || line[0].is_ascii_alphabetic() {
            if line == header.line {
                return;
            }
            if line != self.no_header {
                if let Some(new) = again(self.format, line) {
                    // A log of several runs, one behind the other.
                    *header = Arc::new(new);
                    block.headers.push(Arc::clone(header));
                    return;
                }
                self.no_header.clear();
                self.no_header.extend_from_slice(line);
            }
            if line[0] == b'#' {
                return;
            }
        }
        let expected = header.columns.len();
        let mut row = Row {
            start,
            end: start + line.len(),
            header: block.headers.len() - 1,
            numbers: block.numbers.len(),
            ..Row::default()
        };
        block.numbers.resize(row.numbers + expected, f64::NAN);
        let numbers = &mut block.numbers[row.numbers..];
        self.scratch.begin();
        let fields = if header.blanks {
            blanks(line, header, &mut row, numbers, &mut self.scratch)
        } else {
            commas(line, header, &mut row, numbers, &mut self.scratch)
        };
        if fields == expected {
            row.throttle = self.scratch.throttle(&mut block.throttles);
            block.clamped += self.scratch.clamped;
            block.rows.push(row);
            return;
        }
        block.numbers.truncate(row.numbers);
        block.bad_rows += 1;
        block.first_bad.get_or_insert(BadRow {
            line: block.lines,
            fields,
            expected,
        });
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
fn commas(line: &[u8], header: &Header, row: &mut Row, numbers: &mut [f64], scratch: &mut Scratch) -> usize {
    let mut from = 0;
    for count in 0.. {
        let column = header.columns.get(count).unwrap_or(&Column::Ignored);
        let number = column.is_number().then(|| number::field(line, from)).flatten();
        let end = if let Some((value, end)) = number {
            row.take_number(column, value, &mut numbers[count], scratch);
            end
        } else {
            let end = memchr::memchr(b',', &line[from..]).map_or(line.len(), |at| from + at);
            if let Some(number) = numbers.get_mut(count) {
                row.take(column, &line[from..end], number, scratch);
            }
            end
        };
        from = end + 1;
        if end == line.len() {
            return count + 1;
        }
    }
    0
}

fn blanks(line: &[u8], header: &Header, row: &mut Row, numbers: &mut [f64], scratch: &mut Scratch) -> usize {
    let mut from = 0;
    for count in 0.. {
        while line.get(from).is_some_and(u8::is_ascii_whitespace) {
            from += 1;
        }
        if from == line.len() {
            return count;
        }
        let column = header.columns.get(count).unwrap_or(&Column::Ignored);
        let number = column.is_number().then(|| number::word(line, from)).flatten();
        from = if let Some((value, end)) = number {
            row.take_number(column, value, &mut numbers[count], scratch);
            end
        } else {
            let length = line[from..].iter().position(u8::is_ascii_whitespace);
            let end = length.map_or(line.len(), |length| from + length);
            if let Some(number) = numbers.get_mut(count) {
                row.take(column, &line[from..end], number, scratch);
            }
            end
        };
    }
    0
}
