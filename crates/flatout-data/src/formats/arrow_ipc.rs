//! Arrow IPC files and streams (Feather version 2) as the text of a CSV table, made while they are read: one record batch at a time is in
//! memory. Numbers, truth values, text, dictionaries of these, dates and timestamps are read; nested columns are not.
//!
//! A file is `ARROW1`, then messages, then a footer that is not needed here; a stream is the messages alone. A message is `FFFFFFFF`, the
//! length of its description, the description (a flatbuffer), and a body of buffers. The numbers of fields below are those of
//! `format/Message.fbs` and `format/Schema.fbs` of the Arrow project.

mod columns;
mod flatbuffer;

use super::npy::MOST_COLUMNS;
use columns::{Budget, Column, Dictionary, Field};
use flatbuffer::Table;
use std::collections::HashMap;
use std::io::{self, BufReader, Read};

/// How a file begins, and how a stream begins.
pub const FILE: &[u8] = b"ARROW1";
pub const STREAM: &[u8] = b"\xFF\xFF\xFF\xFF";

/// A description longer than this is damage.
const MOST_DESCRIPTION_BYTES: usize = 1 << 28;
/// Text that is made at once.
const TEXT_BYTES: usize = 1 << 20;
/// A line longer than this is not read: a few values of a dictionary can be repeated in every column.
const MOST_LINE_BYTES: usize = 64 << 20;

const SCHEMA: u8 = 1;
const DICTIONARY: u8 = 2;
const RECORDS: u8 = 3;

pub struct AsCsv {
    input: BufReader<Box<dyn Read + Send>>,
    fields: Vec<Field>,
    /// By their id.
    dictionaries: HashMap<i64, Dictionary>,
    budget: Budget,
    batch: Vec<Column>,
    rows: usize,
    next_row: usize,
    text: Vec<u8>,
    given: usize,
    finished: bool,
}

fn damaged(reason: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the Arrow file is damaged: {reason}"),
    )
}

fn wrong(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

impl AsCsv {
    /// `input` from its first byte on.
    pub fn new(input: Box<dyn Read + Send>) -> io::Result<Self> {
        let mut input = BufReader::new(input);
        let mut first = [0; 4];
        input.read_exact(&mut first)?;
        let mut mark = first;
        if first == FILE[..4] {
            let mut rest = [0; 8];
            input.read_exact(&mut rest)?;
            mark.copy_from_slice(&rest[4..]);
        }
        let mut csv = Self {
            input,
            fields: Vec::new(),
            dictionaries: HashMap::new(),
            budget: Budget::of_this_machine(),
            batch: Vec::new(),
            rows: 0,
            next_row: 0,
            text: Vec::new(),
            given: 0,
            finished: false,
        };
        let Some(message) = csv.message(Some(mark))? else {
            return Err(damaged("it has no schema"));
        };
        if message.kind != SCHEMA {
            return Err(damaged("it does not begin with a schema"));
        }
        let schema = message.header().ok_or_else(|| damaged("its schema"))?;
        if schema.i16(0).unwrap_or(0) != 0 {
            return Err(wrong("big-endian Arrow files are not read".to_owned()));
        }
        let fields = schema.tables(1).ok_or_else(|| damaged("its schema"))?;
        let count = fields.len();
        if count > MOST_COLUMNS {
            return Err(wrong(format!(
                "it has {count} columns; expected at most {MOST_COLUMNS}"
            )));
        }
        // All of them may name the same long text.
        let mut header_bytes = 0;
        for field in &fields {
            let field = Field::of(field).map_err(wrong)?;
            header_bytes += field.name.len();
            if header_bytes > MOST_LINE_BYTES {
                return Err(wrong("the names of its columns are too long".to_owned()));
            }
            csv.fields.push(field);
        }
        if !csv.fields.iter().any(Field::has_data) {
            return Err(wrong("none of its columns has values".to_owned()));
        }
        let names: Vec<String> = csv.fields.iter().map(|field| quoted(&field.name)).collect();
        csv.text = (names.join(",") + "\n").into_bytes();
        Ok(csv)
    }

    /// The next message; `None` at the end. `mark`: its first four bytes, where they were read already.
    fn message(&mut self, mark: Option<[u8; 4]>) -> io::Result<Option<Message>> {
        let mut four = [0; 4];
        match mark {
            Some(mark) => four = mark,
            None if !fill_or_end(&mut self.input, &mut four)? => return Ok(None),
            None => {}
        }
        // Before version 0.15 there was no mark, only the length.
        if four == *STREAM && !fill_or_end(&mut self.input, &mut four)? {
            return Ok(None);
        }
        let length = i32::from_le_bytes(four);
        if length == 0 {
            return Ok(None);
        }
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > MOST_DESCRIPTION_BYTES {
            return Err(damaged("the length of a message"));
        }
        let description = read_exactly(&mut self.input, length)?;
        let root = Table::root(&description).ok_or_else(|| damaged("a message"))?;
        let kind = root.u8(1).unwrap_or(0);
        let body = usize::try_from(root.i64(3).unwrap_or(0)).map_err(|_| damaged("the length of a body"))?;
        if !self.budget.reads(body as u64) {
            return Err(damaged("a body that is larger than the memory"));
        }
        let body = read_exactly(&mut self.input, body)?;
        Ok(Some(Message {
            description,
            kind,
            body,
        }))
    }

    /// Reads up to the next record batch; false at the end.
    fn next_batch(&mut self) -> io::Result<bool> {
        while let Some(message) = self.message(None)? {
            let header = message.header().ok_or_else(|| damaged("a message"))?;
            match message.kind {
                DICTIONARY => {
                    let id = header.i64(0).unwrap_or(0);
                    let data = header.table(1).ok_or_else(|| damaged("a dictionary"))?;
                    let owner = self.fields.iter().find(|field| field.dictionary == Some(id));
                    let values = owner.map(Field::values).into_iter().collect::<Vec<_>>();
                    let mut read =
                        columns::read(&values, &data, &message.body, &mut self.budget).map_err(wrong)?;
                    let Some(column) = read.columns.pop() else {
                        continue;
                    };
                    let known = self.dictionaries.entry(id).or_default();
                    if !header.bool(2) {
                        self.budget.held -= known.bytes();
                        *known = Dictionary::default();
                    }
                    self.budget.held += column.bytes();
                    known.append(column);
                }
                RECORDS => {
                    let read = columns::read(&self.fields, &header, &message.body, &mut self.budget)
                        .map_err(wrong)?;
                    (self.batch, self.rows, self.next_row) = (read.columns, read.rows, 0);
                    return Ok(true);
                }
                _ => {}
            }
        }
        Ok(false)
    }

    /// Makes the text of the next rows; false at the end.
    fn next_rows(&mut self) -> io::Result<bool> {
        while self.next_row == self.rows {
            if self.finished || !self.next_batch()? {
                self.finished = true;
                return Ok(false);
            }
        }
        self.text.clear();
        self.given = 0;
        while self.next_row < self.rows && self.text.len() < TEXT_BYTES {
            let start = self.text.len();
            for (place, (field, column)) in self.fields.iter().zip(&self.batch).enumerate() {
                if place > 0 {
                    self.text.push(b',');
                }
                let dictionary = field.dictionary.and_then(|id| self.dictionaries.get(&id));
                column.write(self.next_row, dictionary, &mut self.text);
                if self.text.len() - start > MOST_LINE_BYTES {
                    return Err(wrong(format!(
                        "a row has more than {MOST_LINE_BYTES} bytes of text"
                    )));
                }
            }
            self.text.push(b'\n');
            self.next_row += 1;
        }
        Ok(true)
    }
}

impl Read for AsCsv {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given == self.text.len() && !self.next_rows()? {
            return Ok(0);
        }
        let count = buffer.len().min(self.text.len() - self.given);
        buffer[..count].copy_from_slice(&self.text[self.given..self.given + count]);
        self.given += count;
        Ok(count)
    }
}

struct Message {
    description: Vec<u8>,
    kind: u8,
    body: Vec<u8>,
}

impl Message {
    fn header(&self) -> Option<Table<'_>> {
        Table::root(&self.description)?.table(2)
    }
}

/// Reads exactly so many bytes, and takes memory only for bytes that are there.
fn read_exactly(input: &mut dyn Read, count: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(count as u64).read_to_end(&mut bytes)?;
    if bytes.len() < count {
        return Err(damaged("it is cut short"));
    }
    Ok(bytes)
}

/// False where the input ends.
fn fill_or_end(input: &mut dyn Read, buffer: &mut [u8; 4]) -> io::Result<bool> {
    match input.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}
