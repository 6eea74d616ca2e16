//! One block of records into the arrays: index, check the shape, then column by column, so that each loop does one thing.

use super::blocks::BlockInfo;
use super::number::{is_missing, parse_f32, parse_i64};
use super::scan;
use crate::table::arrays::RawArray;
use crate::table::{ColumnType, MISSING, Problem, Slot};
use crate::text_list::Dictionary;
use crate::time::parse_any_us;
use std::borrow::Cow;
use std::ops::Range;

/// What parsing needs to know of the file.
pub struct Shape<'a> {
    pub names: &'a [String],
    pub slots: &'a [Option<Slot>],
    /// Places of the arrays that no column fills.
    pub unassigned: &'a [Slot],
    pub delimiter: u8,
    /// Keep infinite values instead of calling the row bad.
    pub infinite_is_missing: bool,
}

/// Memory a thread uses again for every block.
#[derive(Default)]
pub struct Scratch {
    ends: Vec<u32>,
    starts: Vec<u32>,
    /// One a column; of use for categories only.
    pub dictionaries: Vec<Dictionary>,
    /// Records that could not be read: line within the block (from 0) and why.
    pub bad: Vec<(u64, Problem)>,
    /// Rows handed out to this block and not filled, ascending.
    pub gaps: Vec<Range<usize>>,
    bad_records: Vec<usize>,
}

/// Parses a block whose rows begin at `first_row`; `info.records` rows are its own.
pub fn parse_block(
    block: &[u8],
    info: BlockInfo,
    first_row: usize,
    shape: &Shape<'_>,
    arrays: &[RawArray],
    scratch: &mut Scratch,
) {
    scratch.bad.clear();
    scratch.gaps.clear();
    scratch.bad_records.clear();
    scratch
        .dictionaries
        .resize_with(shape.names.len(), Dictionary::default);
    scan::index(block, shape.delimiter, info.quoted, &mut scratch.ends);
    let columns = shape.names.len();
    if !index_is_regular(block, &scratch.ends, columns, info.records) {
        make_regular(block, columns, scratch);
    } else {
        scratch.starts.clear();
        scratch.starts.push(0);
        let last_ends = scratch
            .ends
            .chunks_exact(columns)
            .map(|record| record[columns - 1] + 1);
        scratch.starts.extend(last_ends);
        scratch.starts.pop();
    }
    for (column, slot) in shape.slots.iter().enumerate() {
        if let Some(slot) = slot {
            let target = arrays[slot.array];
            parse_column(
                block,
                info.quoted,
                column,
                *slot,
                target,
                first_row,
                shape,
                scratch,
            );
        }
    }
    for slot in shape.unassigned {
        // SAFETY: these rows are this block's own.
        unsafe { arrays[slot.array].fill_missing(slot, first_row..first_row + info.records) };
    }
    finish(first_row, info.records, scratch);
}

/// Whether every record has exactly `columns` fields.
fn index_is_regular(block: &[u8], ends: &[u32], columns: usize, records: usize) -> bool {
    ends.len() == records * columns
        && ends
            .chunks_exact(columns)
            .all(|record| block[record[columns - 1] as usize] == b'\n')
}

/// Keeps the ends of records with the right number of fields, notes the others.
fn make_regular(block: &[u8], columns: usize, scratch: &mut Scratch) {
    let ends = std::mem::take(&mut scratch.ends);
    let mut regular = Vec::with_capacity(ends.len());
    scratch.starts.clear();
    let (mut start, mut first, mut line) = (0u32, 0usize, 0u64);
    for (position, &end) in ends.iter().enumerate() {
        if block[end as usize] != b'\n' {
            continue;
        }
        let fields = position + 1 - first;
        let record = &block[start as usize..end as usize];
        if fields == columns {
            scratch.starts.push(start);
            regular.extend_from_slice(&ends[first..=position]);
        } else if !record.iter().all(u8::is_ascii_whitespace) {
            let problem = Problem::Fields {
                found: fields,
                expected: columns,
            };
            scratch.bad.push((line, problem));
        }
        line += 1 + memchr::memchr_iter(b'\n', record).count() as u64;
        start = end + 1;
        first = position + 1;
    }
    scratch.ends = regular;
}

/// Rows that bad values left empty, and those at the end that no record filled.
fn finish(first_row: usize, rows: usize, scratch: &mut Scratch) {
    scratch.bad_records.sort_unstable();
    scratch.bad_records.dedup();
    let rest = scratch.starts.len()..rows;
    let gaps = scratch
        .bad_records
        .iter()
        .map(|&record| record..record + 1)
        .chain((!rest.is_empty()).then_some(rest));
    scratch
        .gaps
        .extend(gaps.map(|gap| gap.start + first_row..gap.end + first_row));
    scratch.bad.sort_by_key(|(line, _)| *line);
}

#[allow(
    clippy::too_many_arguments,
    reason = "one call, and a struct would only rename them"
)]
fn parse_column(
    block: &[u8],
    quoted: bool,
    column: usize,
    slot: Slot,
    target: RawArray,
    first_row: usize,
    shape: &Shape<'_>,
    scratch: &mut Scratch,
) {
    let mut dictionary = std::mem::take(&mut scratch.dictionaries[column]);
    dictionary.clear();
    let mut bad = Vec::new();
    let fields = Fields {
        block,
        starts: &scratch.starts,
        ends: &scratch.ends,
        columns: shape.names.len(),
        column,
    };
    // SAFETY (of the four writes): the rows `first_row..first_row + info.records` belong to this block alone and lie within the reserved
    // capacity; there are at most that many records, and the offset is below the array's width.
    let place = |record: usize| (first_row + record) * target.width + slot.offset;
    match slot.kind {
        ColumnType::Real => fields.each(|record, text| {
            let value = match parse_f32(text) {
                Some(value) if value.is_finite() => value,
                _ => slow_real(text, quoted, shape.infinite_is_missing, slot.required).unwrap_or_else(|| {
                    bad.push(record);
                    f32::NAN
                }),
            };
            // SAFETY: see above.
            unsafe { target.pointer.cast::<f32>().add(place(record)).write(value) };
        }),
        ColumnType::Integer => fields.each(|record, text| {
            let value = parse_i64(text)
                .or_else(|| slow_integer(text, quoted, slot.required))
                .unwrap_or_else(|| {
                    bad.push(record);
                    MISSING
                });
            // SAFETY: see above.
            unsafe { target.pointer.cast::<i64>().add(place(record)).write(value) };
        }),
        ColumnType::Time => fields.each(|record, text| {
            let value = parse_any_us(text)
                .or_else(|| slow_time(text, quoted, slot.required))
                .unwrap_or_else(|| {
                    bad.push(record);
                    MISSING
                });
            // SAFETY: see above.
            unsafe { target.pointer.cast::<i64>().add(place(record)).write(value) };
        }),
        ColumnType::Category => {
            let (mut last, mut last_code): (&[u8], i32) = (&[], 0);
            fields.each(|record, text| {
                if text != last {
                    let clean = clean(text, quoted);
                    last_code = if is_missing(&clean) {
                        0
                    } else {
                        dictionary.code(&clean)
                    };
                    last = text;
                }
                if last_code == 0 && slot.required {
                    bad.push(record);
                }
                // SAFETY: see above.
                unsafe { target.pointer.cast::<i32>().add(place(record)).write(last_code) };
            });
        }
    }
    for &record in &bad {
        let text = clean(fields.get(record), quoted);
        let line = memchr::memchr_iter(b'\n', &block[..scratch.starts[record] as usize]).count() as u64;
        let problem = Problem::Value {
            column: shape.names[column].clone(),
            value: String::from_utf8_lossy(&text).chars().take(80).collect(),
            wanted: slot.kind.name(),
        };
        scratch.bad.push((line, problem));
    }
    scratch.bad_records.extend(bad);
    scratch.dictionaries[column] = dictionary;
}

/// One column's fields in a regular index.
struct Fields<'a> {
    block: &'a [u8],
    starts: &'a [u32],
    ends: &'a [u32],
    columns: usize,
    column: usize,
}

impl<'a> Fields<'a> {
    #[inline(always)]
    fn each(&self, mut visit: impl FnMut(usize, &'a [u8])) {
        let last = self.column + 1 == self.columns;
        let records = self.ends.chunks_exact(self.columns).zip(self.starts);
        for (index, (record, &start)) in records.enumerate() {
            let start = if self.column == 0 {
                start
            } else {
                record[self.column - 1] + 1
            };
            let mut text = &self.block[start as usize..record[self.column] as usize];
            if last && let [head @ .., b'\r'] = text {
                text = head;
            }
            visit(index, text);
        }
    }

    fn get(&self, record: usize) -> &'a [u8] {
        let mut found: &[u8] = &[];
        let ends = &self.ends[record * self.columns..];
        let start = if self.column == 0 {
            self.starts[record]
        } else {
            ends[self.column - 1] + 1
        };
        if let Some(text) = self.block.get(start as usize..ends[self.column] as usize) {
            found = text;
        }
        found.strip_suffix(b"\r").unwrap_or(found)
    }
}

/// A field without surrounding spaces and quotes.
pub fn clean(text: &[u8], quoted: bool) -> Cow<'_, [u8]> {
    let text = text.trim_ascii();
    if quoted && let [b'"', inner @ .., b'"'] = text {
        if memchr::memchr(b'"', inner).is_none() {
            return Cow::Borrowed(inner);
        }
        let mut plain = Vec::with_capacity(inner.len());
        let mut bytes = inner.iter().copied().peekable();
        while let Some(byte) = bytes.next() {
            plain.push(byte);
            if byte == b'"' && bytes.peek() == Some(&b'"') {
                bytes.next();
            }
        }
        return Cow::Owned(plain);
    }
    Cow::Borrowed(text)
}

#[cold]
fn slow_real(text: &[u8], quoted: bool, infinite_is_missing: bool, required: bool) -> Option<f32> {
    let text = clean(text, quoted);
    if is_missing(&text) {
        return (!required).then_some(f32::NAN);
    }
    if let Some(value) = parse_f32(&text) {
        let missing = infinite_is_missing && !required;
        return if value.is_finite() {
            Some(value)
        } else {
            missing.then_some(f32::NAN)
        };
    }
    let lower = text.to_ascii_lowercase();
    match lower
        .strip_prefix(b"-")
        .or(lower.strip_prefix(b"+"))
        .unwrap_or(&lower)
    {
        b"inf" | b"infinity" if infinite_is_missing => (!required).then_some(f32::NAN),
        b"true" => Some(1.0),
        b"false" => Some(0.0),
        _ => None,
    }
}

#[cold]
fn slow_integer(text: &[u8], quoted: bool, required: bool) -> Option<i64> {
    let text = clean(text, quoted);
    if is_missing(&text) {
        return (!required).then_some(MISSING);
    }
    // pandas writes whole numbers of a column with gaps as `3.0`.
    let whole = match memchr::memchr(b'.', &text) {
        Some(point) if text[point + 1..].iter().all(|&digit| digit == b'0') => &text[..point],
        _ => &text,
    };
    match whole {
        b"true" | b"True" | b"TRUE" => Some(1),
        b"false" | b"False" | b"FALSE" => Some(0),
        _ => parse_i64(whole),
    }
}

#[cold]
fn slow_time(text: &[u8], quoted: bool, required: bool) -> Option<i64> {
    let text = clean(text, quoted);
    if is_missing(&text) {
        return (!required).then_some(MISSING);
    }
    parse_any_us(&text)
}
