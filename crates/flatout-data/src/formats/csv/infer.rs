//! Column names and types: the header of every file, and samples from the head of every file and the middle and end of plain ones.

use super::blocks::BlockReader;
use super::number::{is_missing, parse_f32, parse_i64};
use super::parse::clean;
use super::scan;
use crate::formats::encoding::Encoding;
use crate::table::ColumnType;
use crate::time::parse_us;
use crate::{DataError, Result, parallel};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

const SAMPLE_BYTES: u64 = 64 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvSchema {
    pub delimiter: u8,
    pub names: Vec<String>,
    pub types: Vec<ColumnType>,
    pub encoding: Encoding,
}

impl CsvSchema {
    pub fn column(&self, path: &Path, name: &str) -> Result<usize> {
        self.names
            .iter()
            .position(|known| known == name)
            .ok_or_else(|| DataError::NoSuchColumn {
                path: path.to_owned(),
                column: name.to_owned(),
                columns: self.names.clone(),
            })
    }
}

/// What the sampled values of a column have in common.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    values: usize,
    integers: usize,
    numbers: usize,
    times: usize,
}

impl Seen {
    fn add(&mut self, text: &[u8]) {
        if is_missing(text) {
            return;
        }
        self.values += 1;
        let boolean = matches!(text, b"true" | b"false" | b"True" | b"False" | b"TRUE" | b"FALSE");
        let infinite = text
            .strip_prefix(b"-")
            .unwrap_or(text)
            .eq_ignore_ascii_case(b"inf");
        // An identifier such as 000123 must keep its zeros.
        let padded = text.len() > 1 && text[0] == b'0' && text.iter().all(u8::is_ascii_digit);
        self.integers += usize::from((parse_i64(text).is_some() && !padded) || boolean);
        self.numbers += usize::from((parse_f32(text).is_some() && !padded) || boolean || infinite);
        self.times += usize::from(text.len() > 8 && parse_us(text).is_some());
    }

    fn merge(&mut self, other: &Self) {
        self.values += other.values;
        self.integers += other.integers;
        self.numbers += other.numbers;
        self.times += other.times;
    }

    fn kind(&self) -> ColumnType {
        match self.values {
            0 => ColumnType::Real,
            all if self.integers == all => ColumnType::Integer,
            all if self.numbers == all => ColumnType::Real,
            all if self.times == all => ColumnType::Time,
            // A few bad cells do not make numbers a category: they are bad rows, to be reported where they are.
            all if self.numbers * 20 >= all * 19 => ColumnType::Real,
            all if self.times * 20 >= all * 19 => ColumnType::Time,
            _ => ColumnType::Category,
        }
    }
}

/// Infers one schema for all files; a file with other columns is an error that names it.
pub fn infer(
    files: &[PathBuf],
    delimiter: Option<u8>,
    threads: usize,
    encoding: Encoding,
) -> Result<CsvSchema> {
    let (_, header) = BlockReader::open(&files[0], encoding)?;
    if header.is_empty() {
        return Err(DataError::NoRows {
            path: files[0].clone(),
        });
    }
    let delimiter = delimiter.unwrap_or_else(|| guess_delimiter(&header));
    let names = split_header(&header, delimiter);
    check_names(&names, &files[0])?;
    let samples = parallel::map(files.len(), threads, |index| {
        sample(&files[index], &files[0], delimiter, &names, encoding)
    })?;
    let mut seen = vec![Seen::default(); names.len()];
    for file in &samples {
        seen.iter_mut()
            .zip(file)
            .for_each(|(total, part)| total.merge(part));
    }
    Ok(CsvSchema {
        delimiter,
        names,
        types: seen.iter().map(Seen::kind).collect(),
        encoding,
    })
}

fn guess_delimiter(header: &[u8]) -> u8 {
    let count = |byte: u8| memchr::memchr_iter(byte, header).count();
    let best = [b',', b'\t', b';', b'|']
        .into_iter()
        .rev()
        .max_by_key(|&byte| count(byte));
    best.unwrap_or(b',')
}

pub fn split_header(header: &[u8], delimiter: u8) -> Vec<String> {
    let mut ends = Vec::new();
    scan::index(header, delimiter, true, &mut ends);
    let mut start = 0;
    ends.push(header.len() as u32);
    ends.iter()
        .map(|&end| {
            let name = clean(&header[start..end as usize], true);
            start = end as usize + 1;
            String::from_utf8_lossy(&name).into_owned()
        })
        .collect()
}

fn check_names(names: &[String], path: &Path) -> Result<()> {
    let duplicate = names
        .iter()
        .enumerate()
        .find(|(index, name)| names[..*index].contains(name));
    match duplicate {
        None => Ok(()),
        Some((_, name)) => Err(DataError::DuplicateColumn {
            path: path.to_owned(),
            column: name.clone(),
        }),
    }
}

/// A shard must have the columns of the first one, in the same order.
pub fn check_header(header: &[u8], delimiter: u8, names: &[String], path: &Path, first: &Path) -> Result<()> {
    let found = split_header(header, delimiter);
    if found == names {
        return Ok(());
    }
    let without = |left: &[String], right: &[String]| -> Vec<String> {
        left.iter()
            .filter(|name| !right.contains(name))
            .cloned()
            .collect()
    };
    Err(DataError::OtherColumns {
        path: path.to_owned(),
        first: first.to_owned(),
        missing: without(names, &found),
        extra: without(&found, names),
    })
}

fn sample(
    path: &Path,
    first: &Path,
    delimiter: u8,
    names: &[String],
    encoding: Encoding,
) -> Result<Vec<Seen>> {
    let (mut reader, header) = BlockReader::open(path, encoding)?;
    if header.is_empty() {
        return Err(DataError::NoRows {
            path: path.to_owned(),
        });
    }
    check_header(&header, delimiter, names, path, first)?;
    let mut seen = vec![Seen::default(); names.len()];
    let mut block = Vec::new();
    if reader.next(&mut block)?.is_some() {
        block.truncate(SAMPLE_BYTES as usize);
        sample_block(&block, delimiter, &mut seen);
    }
    for start in later_places(path, encoding) {
        if let Ok(mut block) = read_at(path, start) {
            let first_record = memchr::memchr(b'\n', &block).map_or(block.len(), |feed| feed + 1);
            block.drain(..first_record);
            // Out of step with the quotes, perhaps: a text in place of a number would be a wrong guess.
            if memchr::memchr(b'"', &block).is_none() {
                sample_block(&block, delimiter, &mut seen);
            }
        }
    }
    Ok(seen)
}

/// The middle and the end of a plain file that is longer than the sample of its head.
fn later_places(path: &Path, encoding: Encoding) -> Vec<u64> {
    let compressed = super::blocks::open_text(path, encoding).is_ok_and(|(_, changed)| changed);
    let size = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    if compressed || size < 4 * SAMPLE_BYTES {
        return Vec::new();
    }
    vec![size / 2, size - SAMPLE_BYTES]
}

fn read_at(path: &Path, start: u64) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(start))?;
    let mut block = Vec::new();
    file.take(SAMPLE_BYTES).read_to_end(&mut block)?;
    Ok(block)
}

fn sample_block(block: &[u8], delimiter: u8, seen: &mut [Seen]) {
    let mut ends = Vec::new();
    scan::index(block, delimiter, true, &mut ends);
    let (mut start, mut fields) = (0, Vec::new());
    for end in ends {
        fields.push(&block[start..end as usize]);
        start = end as usize + 1;
        if block[end as usize] == b'\n' {
            if fields.len() == seen.len() {
                for (seen, field) in seen.iter_mut().zip(&fields) {
                    seen.add(&clean(field, true));
                }
            }
            fields.clear();
        }
    }
}
