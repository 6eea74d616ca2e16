//! Columns of a record batch: their types, their buffers, and their values as text.

use super::flatbuffer::Table;
use super::quoted;
use crate::time::{MICROSECONDS_PER_DAY, MICROSECONDS_PER_SECOND, format_us};
use flatout_core::memory::UsableMemory;
use std::io::Read;

/// What a file may unpack to in any case, and how much more than its own size.
const ALWAYS_FINE_BYTES: u64 = 256 << 20;
const MOST_EXPANSION: u64 = 1000;

/// How the values of a column lie in its buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Null,
    Bool,
    /// Bytes of a number, and whether it has a sign.
    Int(usize, bool),
    Float(usize),
    /// Bytes of a number, and microseconds in its unit: a positive factor, or a divisor where it is negative.
    Time(usize, i64),
    /// Bytes of an offset.
    Text(usize),
    TextView,
}

/// A column as the schema describes it.
#[derive(Debug, Clone)]
pub struct Field {
    pub name: String,
    kind: Kind,
    /// Values are places in this dictionary; `kind` is then the type of the places.
    pub dictionary: Option<i64>,
    /// Of the dictionary.
    of_dictionary: Kind,
}

impl Field {
    pub fn of(field: &Table<'_>) -> Result<Self, String> {
        let name = field.text(0).unwrap_or_default();
        let kind = kind_of(field).ok_or_else(|| {
            let kind = type_name(field.u8(2).unwrap_or(0));
            format!("its column `{name}` is of type {kind}, which is not read: leave it out, or write one column for each of its parts")
        })?;
        let encoding = field.table(4);
        let place = encoding.and_then(|encoding| encoding.table(1));
        // Without a type the places are signed numbers of four bytes.
        let places = place.map_or(Some(Kind::Int(4, true)), |place| int(&place));
        Ok(Self {
            name,
            kind: match encoding {
                Some(_) => places.unwrap_or(Kind::Int(4, true)),
                None => kind,
            },
            dictionary: encoding.map(|encoding| encoding.i64(0).unwrap_or(0)),
            of_dictionary: kind,
        })
    }

    /// Whether its values are in the file. Without that any number of rows can be claimed.
    pub fn has_data(&self) -> bool {
        self.kind != Kind::Null
    }

    /// The dictionary's own values, as a column.
    pub fn values(&self) -> Self {
        Self {
            kind: self.of_dictionary,
            dictionary: None,
            ..self.clone()
        }
    }
}

fn int(table: &Table<'_>) -> Option<Kind> {
    let bytes = usize::try_from(table.i32(0)?).ok()? / 8;
    [1, 2, 4, 8]
        .contains(&bytes)
        .then_some(Kind::Int(bytes, table.bool(1)))
}

fn kind_of(field: &Table<'_>) -> Option<Kind> {
    let detail = field.table(3)?;
    Some(match field.u8(2)? {
        1 => Kind::Null,
        2 => int(&detail)?,
        3 => Kind::Float(match detail.i16(0).unwrap_or(0) {
            1 => 4,
            2 => 8,
            _ => return None,
        }),
        5 => Kind::Text(4),
        6 => Kind::Bool,
        8 => match detail.i16(0).unwrap_or(1) {
            0 => Kind::Time(4, MICROSECONDS_PER_DAY),
            _ => Kind::Time(8, 1000),
        },
        10 => Kind::Time(
            8,
            match detail.i16(0).unwrap_or(0) {
                0 => MICROSECONDS_PER_SECOND,
                1 => 1000,
                2 => 1,
                _ => -1000,
            },
        ),
        20 => Kind::Text(8),
        24 => Kind::TextView,
        _ => return None,
    })
}

fn type_name(number: u8) -> &'static str {
    match number {
        3 => "float16",
        4 | 19 | 23 => "binary",
        7 => "decimal",
        9 => "time of day",
        11 => "interval",
        12 | 16 | 21 => "list",
        13 => "struct",
        17 => "map",
        18 => "duration",
        _ => "an unknown kind",
    }
}

/// The values of one column of a record batch.
#[derive(Debug)]
pub struct Column {
    kind: Kind,
    rows: usize,
    /// A bit for every row that has a value; empty where all have one.
    valid: Vec<u8>,
    /// Numbers, offsets or views.
    values: Vec<u8>,
    /// Text; several pieces of it for views.
    pieces: Vec<Vec<u8>>,
}

/// The values of a dictionary, in the pieces that it grew by.
#[derive(Debug, Default)]
pub struct Dictionary {
    /// Each with its number of the first row.
    pieces: Vec<(usize, Column)>,
    rows: usize,
}

impl Dictionary {
    /// Bytes that it has in memory.
    pub fn bytes(&self) -> u64 {
        let pieces = self.pieces.iter();
        pieces.map(|(_, column)| column.bytes()).sum()
    }

    /// More values, after the others.
    pub fn append(&mut self, column: Column) {
        let start = self.rows;
        self.rows = self.rows.saturating_add(column.rows);
        self.pieces.push((start, column));
    }

    /// Writes a value as a cell of CSV; nothing for one that is not there.
    fn write(&self, row: usize, into: &mut Vec<u8>) {
        let after = self.pieces.partition_point(|(start, _)| *start <= row);
        if let Some((start, column)) = after.checked_sub(1).and_then(|last| self.pieces.get(last)) {
            column.write(row - start, None, into);
        }
    }
}

/// What a file may still unpack to. Zstandard makes gigabytes of a few bytes.
#[derive(Debug)]
pub struct Budget {
    /// What the machine has.
    memory: u64,
    /// What dictionaries keep in memory.
    pub held: u64,
    read: u64,
    unpacked: u64,
}

impl Budget {
    pub fn of_this_machine() -> Self {
        Self {
            memory: UsableMemory::here().map_or(u64::MAX, |memory| memory.free_bytes),
            held: 0,
            read: 0,
            unpacked: 0,
        }
    }

    /// Whether a body of this size fits into memory; it counts as read.
    pub fn reads(&mut self, bytes: u64) -> bool {
        self.read = self.read.saturating_add(bytes);
        self.held.saturating_add(bytes) <= self.memory
    }

    /// `of_batch`: what was unpacked of the same record batch before, all of which is in memory at once.
    fn unpacks(&mut self, bytes: u64, of_batch: &mut u64) -> Result<(), String> {
        self.unpacked = self.unpacked.saturating_add(bytes);
        *of_batch = of_batch.saturating_add(bytes);
        let most = ALWAYS_FINE_BYTES.max(self.read.saturating_mul(MOST_EXPANSION));
        if self.unpacked > most {
            return Err(format!(
                "its compressed buffers unpack to more than {MOST_EXPANSION} times their size"
            ));
        }
        if self.held.saturating_add(*of_batch) > self.memory {
            let memory = self.memory;
            return Err(format!(
                "a record batch needs {of_batch} bytes of memory and {memory} are free; write smaller record batches"
            ));
        }
        Ok(())
    }
}

/// What a record batch holds.
pub struct Batch {
    pub columns: Vec<Column>,
    pub rows: usize,
}

/// Reads the columns of a record batch. What its description says of a body that does not have it is an error.
pub fn read(
    fields: &[Field],
    records: &Table<'_>,
    body: &[u8],
    budget: &mut Budget,
) -> Result<Batch, String> {
    let damaged = || "the Arrow file is damaged: a record batch".to_owned();
    let rows = usize::try_from(records.i64(0).unwrap_or(0)).map_err(|_| damaged())?;
    let nodes = records.pairs(1).unwrap_or_default();
    let mut buffers = records.pairs(2).unwrap_or_default().into_iter();
    let codec = records.table(3).map(|compression| compression.u8(0).unwrap_or(0));
    let mut views = records.longs(4).unwrap_or_default().into_iter();
    let (mut taken, mut unpacked_bytes) = (0usize, 0u64);
    let mut next = |least: usize| -> Result<Vec<u8>, String> {
        let (offset, length) = buffers.next().ok_or_else(damaged)?;
        let start = usize::try_from(offset).map_err(|_| damaged())?;
        let end = usize::try_from(length)
            .ok()
            .and_then(|length| start.checked_add(length));
        let bytes = end.and_then(|end| body.get(start..end)).ok_or_else(damaged)?;
        // Buffers do not overlap, so together they are no longer than the body.
        taken = taken.saturating_add(bytes.len());
        if taken > body.len() {
            return Err(damaged());
        }
        let bytes = unpacked(bytes, codec, |bytes| budget.unpacks(bytes, &mut unpacked_bytes))?;
        if bytes.len() < least {
            return Err(damaged());
        }
        Ok(bytes)
    };
    let mut columns = Vec::with_capacity(fields.len());
    for (field, &(length, nulls)) in fields.iter().zip(&nodes) {
        if length != rows as i64 {
            return Err(damaged());
        }
        let mut column = Column {
            kind: field.kind,
            rows,
            valid: Vec::new(),
            values: Vec::new(),
            pieces: Vec::new(),
        };
        if field.kind != Kind::Null {
            let valid = next(0)?;
            if nulls > 0 {
                column.valid = valid;
                if column.valid.len() < rows.div_ceil(8) {
                    return Err(damaged());
                }
            }
        }
        let least =
            |bytes: usize, more: usize| rows.checked_add(more).and_then(|rows| rows.checked_mul(bytes));
        match field.kind {
            Kind::Null => {}
            Kind::Bool => column.values = next(rows.div_ceil(8))?,
            Kind::Int(bytes, _) | Kind::Float(bytes) | Kind::Time(bytes, _) => {
                column.values = next(least(bytes, 0).ok_or_else(damaged)?)?;
            }
            Kind::Text(bytes) => {
                // An empty batch may have no offsets at all.
                let more = usize::from(rows > 0);
                column.values = next(least(bytes, more).ok_or_else(damaged)?)?;
                column.pieces.push(next(0)?);
            }
            Kind::TextView => {
                column.values = next(least(16, 0).ok_or_else(damaged)?)?;
                for _ in 0..views.next().unwrap_or(0) {
                    column.pieces.push(next(0)?);
                }
            }
        }
        columns.push(column);
    }
    if columns.len() < fields.len() {
        return Err(damaged());
    }
    Ok(Batch { columns, rows })
}

/// The bytes of a buffer; compressed ones have their length in front of them.
fn unpacked(
    bytes: &[u8],
    codec: Option<u8>,
    mut unpacks: impl FnMut(u64) -> Result<(), String>,
) -> Result<Vec<u8>, String> {
    let Some(codec) = codec.filter(|_| !bytes.is_empty()) else {
        return Ok(bytes.to_vec());
    };
    let damaged = |_| "the Arrow file is damaged: a compressed buffer".to_owned();
    let (length, packed) = bytes.split_first_chunk::<8>().ok_or_else(|| damaged(()))?;
    let length = i64::from_le_bytes(*length);
    if length < 0 {
        return Ok(packed.to_vec());
    }
    unpacks(length.unsigned_abs())?;
    let mut whole = Vec::new();
    let read = match codec {
        0 => lz4_flex::frame::FrameDecoder::new(packed)
            .take(length as u64)
            .read_to_end(&mut whole),
        1 => zstd::stream::read::Decoder::new(packed)
            .and_then(|decoder| decoder.take(length as u64).read_to_end(&mut whole)),
        _ => return Err("its compression is neither LZ4 nor Zstandard".to_owned()),
    };
    read.map_err(|_| damaged(()))?;
    match whole.len() as i64 == length {
        true => Ok(whole),
        false => Err(damaged(())),
    }
}

impl Column {
    /// Bytes that it has in memory.
    pub fn bytes(&self) -> u64 {
        let pieces: usize = self.pieces.iter().map(Vec::len).sum();
        (self.valid.len() + self.values.len() + pieces) as u64
    }

    fn has(&self, row: usize) -> bool {
        match self.valid.get(row / 8) {
            Some(byte) => byte >> (row % 8) & 1 == 1,
            None => self.valid.is_empty(),
        }
    }

    fn whole(&self, row: usize, bytes: usize, signed: bool) -> Option<i128> {
        let place = row.checked_mul(bytes)?;
        let own = self.values.get(place..place + bytes)?;
        let mut wide = [if signed && own.last()? & 0x80 != 0 {
            0xFF
        } else {
            0
        }; 16];
        wide[..bytes].copy_from_slice(own);
        Some(i128::from_le_bytes(wide))
    }

    fn text(&self, row: usize) -> Option<&[u8]> {
        match self.kind {
            Kind::Text(bytes) => {
                let offset = |row: usize| usize::try_from(self.whole(row, bytes, true)?).ok();
                self.pieces.first()?.get(offset(row)?..offset(row + 1)?)
            }
            Kind::TextView => {
                let view = self.values.get(16 * row..16 * row + 16)?;
                let number = |at: usize| Some(u32::from_le_bytes(view[at..at + 4].try_into().ok()?) as usize);
                let length = number(0)?;
                if length <= 12 {
                    return view.get(4..4 + length);
                }
                let start = number(12)?;
                self.pieces
                    .get(number(8)?)?
                    .get(start..start.checked_add(length)?)
            }
            _ => None,
        }
    }

    /// Writes a value as a cell of CSV; nothing for a missing one.
    pub fn write(&self, row: usize, dictionary: Option<&Dictionary>, into: &mut Vec<u8>) {
        if row >= self.rows || !self.has(row) {
            return;
        }
        if let Some(dictionary) = dictionary {
            if let Kind::Int(bytes, signed) = self.kind
                && let Some(place) = self.whole(row, bytes, signed)
                && let Ok(place) = usize::try_from(place)
            {
                dictionary.write(place, into);
            }
            return;
        }
        match self.kind {
            Kind::Null => {}
            Kind::Bool => {
                let set = self
                    .values
                    .get(row / 8)
                    .is_some_and(|byte| byte >> (row % 8) & 1 == 1);
                into.push(b'0' + u8::from(set));
            }
            Kind::Int(bytes, signed) => {
                if let Some(value) = self.whole(row, bytes, signed) {
                    into.extend_from_slice(value.to_string().as_bytes());
                }
            }
            Kind::Float(bytes) => {
                let place = row * bytes;
                let text = match self.values.get(place..place + bytes) {
                    Some(&[a, b, c, d]) => float_text(f32::from_le_bytes([a, b, c, d])),
                    Some(&[a, b, c, d, e, f, g, h]) => {
                        float_text(f64::from_le_bytes([a, b, c, d, e, f, g, h]))
                    }
                    _ => return,
                };
                into.extend_from_slice(text.as_bytes());
            }
            Kind::Time(bytes, unit) => {
                let value = self.whole(row, bytes, true);
                let us = value.map(|value| match unit {
                    unit if unit < 0 => value.div_euclid(i128::from(-unit)),
                    unit => value * i128::from(unit),
                });
                if let Some(us) = us.and_then(|us| i64::try_from(us).ok()) {
                    into.extend_from_slice(time_text(us).as_bytes());
                }
            }
            Kind::Text(_) | Kind::TextView => {
                if let Some(text) = self.text(row) {
                    into.extend_from_slice(quoted(&String::from_utf8_lossy(text)).as_bytes());
                }
            }
        }
    }
}

/// The shortest text that reads back as the same number; nothing for NaN.
fn float_text(value: impl std::fmt::Debug + Into<f64> + Copy) -> String {
    if value.into().is_nan() {
        return String::new();
    }
    format!("{value:?}")
}

/// A date, or a date and time down to the microsecond.
fn time_text(us: i64) -> String {
    let fraction = us.rem_euclid(MICROSECONDS_PER_SECOND);
    if fraction == 0 {
        return format_us(us);
    }
    let second = us.rem_euclid(MICROSECONDS_PER_DAY) / MICROSECONDS_PER_SECOND;
    let date = format_us(
        us.div_euclid(MICROSECONDS_PER_DAY)
            .saturating_mul(MICROSECONDS_PER_DAY),
    );
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{date} {hour:02}:{minute:02}:{second:02}.{fraction:06}")
}
