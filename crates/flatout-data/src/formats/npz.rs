//! NumPy's `.npz` (a zip of arrays) as the text of a CSV table: `[rows]` is a column of the array's name, `[rows, width]` the columns
//! `name_0`, `name_1` …

use super::npy::{MOST_COLUMNS, NpyArray, NpyValues};
use flatout_core::memory::UsableMemory;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// How a zip file begins.
pub const ZIP: &[u8] = b"PK\x03\x04";

const ENTRY: &[u8] = b"PK\x01\x02";
const END: &[u8] = b"PK\x05\x06";
const END_64: &[u8] = b"PK\x06\x06";
/// The end's record and the longest comment behind it.
const MOST_END_BYTES: u64 = 22 + 65_535;
/// Text that is made at once.
const TEXT_BYTES: usize = 1 << 20;
/// The names of the columns; the reader of CSV refuses longer lines.
const MOST_HEADER_BYTES: usize = 64 << 20;

/// Where a file lies in the zip.
struct Entry {
    name: String,
    packed: bool,
    packed_bytes: u64,
    bytes: u64,
    offset: u64,
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let own = bytes.get(at..at.checked_add(N)?)?;
    Some(
        own.iter()
            .rev()
            .fold(0, |value, &byte| value << 8 | u64::from(byte)),
    )
}

fn damaged(reason: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the zip file is damaged: {reason}"),
    )
}

fn refused(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// The files of a zip.
fn entries(file: &mut File) -> io::Result<Vec<Entry>> {
    let size = file.metadata()?.len();
    let mut tail = Vec::new();
    file.seek(SeekFrom::Start(size.saturating_sub(MOST_END_BYTES)))?;
    file.take(MOST_END_BYTES).read_to_end(&mut tail)?;
    let no_end = || damaged("its directory is missing");
    let end = memchr::memmem::rfind(&tail, END).ok_or_else(no_end)?;
    let (mut length, mut start) = (
        number::<4>(&tail, end + 12).ok_or_else(no_end)?,
        number::<4>(&tail, end + 16).ok_or_else(no_end)?,
    );
    if start == u64::from(u32::MAX) || length == u64::from(u32::MAX) {
        let end = memchr::memmem::rfind(&tail, END_64).ok_or_else(no_end)?;
        length = number::<8>(&tail, end + 40).ok_or_else(no_end)?;
        start = number::<8>(&tail, end + 48).ok_or_else(no_end)?;
    }
    file.seek(SeekFrom::Start(start))?;
    let mut directory = Vec::new();
    file.take(length.min(size)).read_to_end(&mut directory)?;
    let mut found = Vec::new();
    let mut at = 0;
    while directory.get(at..at + 4) == Some(ENTRY) {
        let entry = entry(&directory, at).ok_or_else(|| damaged("its directory"))?;
        at = entry.1;
        found.push(entry.0);
    }
    Ok(found)
}

/// The entry of the directory at a place, and where the next one begins.
fn entry(directory: &[u8], at: usize) -> Option<(Entry, usize)> {
    let word = |offset: usize| number::<4>(directory, at + offset);
    let short = |offset: usize| number::<2>(directory, at + offset).map(|value| value as usize);
    let (name, extra, comment) = (short(28)?, short(30)?, short(32)?);
    let (mut bytes, mut packed_bytes, mut offset) = (word(24)?, word(20)?, word(42)?);
    let text = directory.get(at + 46..at + 46 + name)?;
    let extras = directory.get(at + 46 + name..at + 46 + name + extra)?;
    // Sizes of 4 GiB and more stand in a field of their own, in this order.
    let mut place = 0;
    while let (Some(kind), Some(length)) = (number::<2>(extras, place), number::<2>(extras, place + 2)) {
        if kind == 1 {
            let mut inside = place + 4;
            for value in [&mut bytes, &mut packed_bytes, &mut offset] {
                if *value == u64::from(u32::MAX) {
                    *value = number::<8>(extras, inside)?;
                    inside += 8;
                }
            }
        }
        place += 4 + length as usize;
    }
    let entry = Entry {
        name: String::from_utf8_lossy(text).into_owned(),
        packed: short(10)? != 0,
        packed_bytes,
        bytes,
        offset,
    };
    Some((entry, at + 46 + name + extra + comment))
}

/// The contents of a file in the zip.
fn contents(file: &mut File, entry: &Entry) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(entry.offset))?;
    let mut header = [0; 30];
    file.read_exact(&mut header)?;
    let lengths = number::<2>(&header, 26).zip(number::<2>(&header, 28));
    let (name, extra) = lengths.ok_or_else(|| damaged("a header"))?;
    let start = entry.offset.checked_add(30 + name + extra);
    file.seek(SeekFrom::Start(start.ok_or_else(|| damaged("a header"))?))?;
    let packed = file.take(entry.packed_bytes);
    let mut bytes = Vec::new();
    if entry.packed {
        flate2::read::DeflateDecoder::new(packed)
            .take(entry.bytes)
            .read_to_end(&mut bytes)?;
    } else {
        let mut packed = packed;
        packed.read_to_end(&mut bytes)?;
    }
    match bytes.len() as u64 == entry.bytes {
        true => Ok(bytes),
        false => Err(damaged(&format!("`{}` is cut short", entry.name))),
    }
}

/// All arrays are in memory at once, and a small file may claim any size.
fn check_size(entries: &[Entry]) -> io::Result<()> {
    let bytes = entries
        .iter()
        .fold(0u64, |sum, entry| sum.saturating_add(entry.bytes));
    let free = UsableMemory::here().map_or(u64::MAX, |memory| memory.free_bytes);
    match bytes > free {
        true => Err(refused(format!(
            "its arrays need {bytes} bytes of memory and {free} are free; save them as separate .npy files, which are read in parts"
        ))),
        false => Ok(()),
    }
}

struct Array {
    values: NpyValues,
    width: usize,
}

/// The CSV of the arrays, made while it is read.
pub struct AsCsv {
    arrays: Vec<Array>,
    rows: usize,
    next_row: usize,
    text: Vec<u8>,
    given: usize,
}

impl AsCsv {
    /// `None` where the zip holds no arrays.
    pub fn new(mut file: File) -> io::Result<Option<Self>> {
        let entries = entries(&mut file)?;
        if entries.iter().all(|entry| entry.name.ends_with(".npy")) {
            check_size(&entries)?;
        }
        let mut arrays: Vec<(String, Vec<usize>, NpyValues)> = Vec::new();
        for entry in &entries {
            let Some(name) = entry.name.strip_suffix(".npy") else {
                return Ok(None);
            };
            let array = NpyArray::parse(&contents(&mut file, entry)?);
            let array = array.map_err(|reason| refused(format!("its array `{name}`: {reason}")))?;
            arrays.push((name.to_owned(), array.shape, array.values));
        }
        let Some((_, first, _)) = arrays.first() else {
            return Ok(None);
        };
        let rows = first.first().copied().unwrap_or(0);
        if let Some((name, shape, _)) = arrays
            .iter()
            .find(|(_, shape, _)| shape.first() != Some(&rows) || shape.len() > 2)
        {
            let reason = format!(
                "its array `{name}` has the shape {shape:?}; a table needs arrays of the shape [rows] or [rows, columns] with equally many rows"
            );
            return Err(refused(reason));
        }
        // An array without rows may claim any width, and one without columns any number of rows.
        let widths = arrays
            .iter()
            .map(|(_, shape, _)| shape.get(1).copied().unwrap_or(1));
        let width = widths.clone().fold(0usize, usize::saturating_add);
        if widths.clone().any(|width| width == 0) || width > MOST_COLUMNS {
            let reason = format!(
                "its arrays have {width} columns; expected 1 to {MOST_COLUMNS}, and no array without columns"
            );
            return Err(refused(reason));
        }
        // Every column repeats the array's name.
        let named = arrays
            .iter()
            .zip(widths)
            .fold(0usize, |sum, ((name, ..), width)| {
                sum.saturating_add(width.saturating_mul(name.len()))
            });
        if named > MOST_HEADER_BYTES {
            return Err(refused("the names of its columns are too long".to_owned()));
        }
        let mut names = Vec::new();
        for (name, shape, _) in &arrays {
            match shape.get(1) {
                None => names.push(super::arrow_ipc::quoted(name)),
                Some(&width) => {
                    names.extend(
                        (0..width).map(|column| super::arrow_ipc::quoted(&format!("{name}_{column}"))),
                    );
                }
            }
        }
        let arrays = arrays.into_iter().map(|(_, shape, values)| Array {
            values,
            width: shape.get(1).copied().unwrap_or(1),
        });
        Ok(Some(Self {
            arrays: arrays.collect(),
            rows,
            next_row: 0,
            text: (names.join(",") + "\n").into_bytes(),
            given: 0,
        }))
    }

    fn next_rows(&mut self) -> bool {
        self.text.clear();
        self.given = 0;
        while self.next_row < self.rows && self.text.len() < TEXT_BYTES {
            let row = self.next_row;
            let start = self.text.len();
            for array in &self.arrays {
                for place in row * array.width..(row + 1) * array.width {
                    if self.text.len() > start {
                        self.text.push(b',');
                    }
                    let text = match &array.values {
                        NpyValues::Byte(values) => values[place].to_string(),
                        NpyValues::Integer(values) => values[place].to_string(),
                        NpyValues::Real(values) if values[place].is_nan() => "nan".to_owned(),
                        NpyValues::Real(values) => format!("{:?}", values[place]),
                    };
                    self.text.extend_from_slice(text.as_bytes());
                }
            }
            self.text.push(b'\n');
            self.next_row += 1;
        }
        !self.text.is_empty()
    }
}

impl Read for AsCsv {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given == self.text.len() && !self.next_rows() {
            return Ok(0);
        }
        let count = buffer.len().min(self.text.len() - self.given);
        buffer[..count].copy_from_slice(&self.text[self.given..self.given + count]);
        self.given += count;
        Ok(count)
    }
}
