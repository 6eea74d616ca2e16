//! A file as a sequence of blocks that begin and end at record boundaries: plain, gzip or zstd, told apart by their first bytes.

use super::scan;
use crate::formats::encoding::Encoding;
use crate::formats::json_lines::{self, AsCsv};
use crate::formats::{arrow_ipc, npz, other};
use crate::{DataError, Result};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Text in a block: it and its index stay in the second-level cache.
pub const BLOCK_BYTES: usize = 256 * 1024;
/// A record longer than this is taken for an unclosed quote.
const MAXIMUM_RECORD_BYTES: usize = 64 * 1024 * 1024;

pub struct BlockReader {
    path: PathBuf,
    input: Box<dyn Read + Send>,
    carry: Vec<u8>,
    finished: bool,
    block_bytes: usize,
    /// The line at which the next block begins, from 1.
    next_line: u64,
}

/// What is known of a block without parsing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockInfo {
    pub first_line: u64,
    /// Line feeds outside quotes: at most so many records.
    pub records: usize,
    pub quoted: bool,
}

/// Opens a file for reading its text, whatever its compression and encoding; tables in other formats as the CSV that they would be. Also
/// whether the text is another one than the file's own bytes.
pub fn open_text(path: &Path, encoding: Encoding) -> Result<(Box<dyn Read + Send>, bool)> {
    let failed = |source| DataError::reading(path, source);
    let mut file = File::open(path).map_err(failed)?;
    let mut magic = [0u8; other::FIRST_BYTES];
    let read = read_fully(&mut file, &mut magic).map_err(failed)?;
    let file = File::open(path).map_err(failed)?;
    let packed: Option<Box<dyn Read + Send>> = match &magic[..read] {
        [0x1F, 0x8B, ..] => Some(Box::new(flate2::read::MultiGzDecoder::new(file))),
        [0x28, 0xB5, 0x2F, 0xFD, ..] => {
            Some(Box::new(zstd::stream::read::Decoder::new(file).map_err(failed)?))
        }
        _ => None,
    };
    let Some(mut packed) = packed else {
        let file = File::open(path).map_err(failed)?;
        if magic[..read].starts_with(npz::ZIP)
            && let Some(arrays) = npz::AsCsv::new(file.try_clone().map_err(failed)?).map_err(failed)?
        {
            return Ok((Box::new(arrays), true));
        }
        let file = File::open(path).map_err(failed)?;
        return as_text(path, &magic[..read], Box::new(file), encoding);
    };
    let read = read_fully(&mut packed, &mut magic).map_err(failed)?;
    let whole: Box<dyn Read + Send> = Box::new(std::io::Cursor::new(magic[..read].to_vec()).chain(packed));
    Ok((as_text(path, &magic[..read], whole, encoding)?.0, true))
}

/// What `input`, which begins with `first`, is as text.
fn as_text(
    path: &Path,
    first: &[u8],
    input: Box<dyn Read + Send>,
    encoding: Encoding,
) -> Result<(Box<dyn Read + Send>, bool)> {
    let failed = |source| DataError::reading(path, source);
    other::refuse(path, first)?;
    if first.starts_with(arrow_ipc::FILE) || first.starts_with(arrow_ipc::STREAM) {
        let csv = arrow_ipc::AsCsv::new(input).map_err(failed)?;
        return Ok((Box::new(csv), true));
    }
    let (text, decoded) = encoding.decode(first, input);
    match json_lines::is_meant_by(first) {
        true => Ok((Box::new(AsCsv::new(text).map_err(failed)?), true)),
        false => Ok((text, decoded)),
    }
}

/// Reads until `buffer` is full or the input ends.
fn read_fully(input: &mut dyn Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

impl BlockReader {
    /// Opens the file and reads its header: the first line that is not blank.
    pub fn open(path: &Path, encoding: Encoding) -> Result<(Self, Vec<u8>)> {
        Self::open_with(path, encoding, BLOCK_BYTES)
    }

    pub fn open_with(path: &Path, encoding: Encoding, block_bytes: usize) -> Result<(Self, Vec<u8>)> {
        let (input, _) = open_text(path, encoding)?;
        let mut reader = Self {
            path: path.to_owned(),
            input,
            carry: Vec::new(),
            finished: false,
            block_bytes,
            next_line: 1,
        };
        let header = reader.header()?;
        Ok((reader, header))
    }

    fn header(&mut self) -> Result<Vec<u8>> {
        let mut block = Vec::new();
        if self.next(&mut block)?.is_none() {
            return Ok(Vec::new());
        }
        self.next_line = 1;
        let text = block.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&block);
        let mut ends = Vec::new();
        // A delimiter that cannot occur: only line feeds outside quotes are found.
        scan::index(text, b'\n', true, &mut ends);
        let mut start = 0;
        for end in ends {
            let line = &text[start..end as usize];
            self.next_line += memchr::memchr_iter(b'\n', line).count() as u64 + 1;
            start = end as usize + 1;
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if !line.is_empty() {
                if std::str::from_utf8(line).is_err() {
                    return Err(DataError::NotUtf8 {
                        path: self.path.clone(),
                    });
                }
                // The rest goes back in front of what is carried over.
                let mut rest = text[start..].to_vec();
                rest.append(&mut self.carry);
                self.carry = rest;
                return Ok(line.to_vec());
            }
        }
        Ok(Vec::new())
    }

    /// The next block into `buffer`, `None` at the end. The last block gets a line feed if it lacks one.
    pub fn next(&mut self, buffer: &mut Vec<u8>) -> Result<Option<BlockInfo>> {
        std::mem::swap(buffer, &mut self.carry);
        self.carry.clear();
        let mut wanted = self.block_bytes;
        loop {
            self.fill(buffer, wanted)?;
            if buffer.is_empty() {
                return Ok(None);
            }
            if self.finished && buffer.last() != Some(&b'\n') {
                buffer.push(b'\n');
            }
            let quoted = memchr::memchr(b'"', buffer).is_some();
            let (end, records) = if quoted {
                quoted_end(buffer)
            } else {
                plain_end(buffer)
            };
            match end {
                Some(end) if end == buffer.len() || !self.finished => {
                    self.carry.extend_from_slice(&buffer[end..]);
                    buffer.truncate(end);
                    let first_line = self.next_line;
                    self.next_line += if quoted {
                        memchr::memchr_iter(b'\n', buffer).count()
                    } else {
                        records
                    } as u64;
                    return Ok(Some(BlockInfo {
                        first_line,
                        records,
                        quoted,
                    }));
                }
                _ if self.finished || buffer.len() > MAXIMUM_RECORD_BYTES => {
                    let lines = memchr::memchr_iter(b'\n', &buffer[..end.unwrap_or(0)]).count() as u64;
                    return Err(DataError::UnclosedQuote {
                        path: self.path.clone(),
                        line: self.next_line + lines,
                    });
                }
                _ => wanted = buffer.len() * 2,
            }
        }
    }

    fn fill(&mut self, buffer: &mut Vec<u8>, wanted: usize) -> Result<()> {
        if self.finished || buffer.len() >= wanted {
            return Ok(());
        }
        let held = buffer.len();
        buffer.resize(wanted, 0);
        let read = read_fully(&mut *self.input, &mut buffer[held..]);
        let read = read.map_err(|source| DataError::reading(&self.path, source))?;
        buffer.truncate(held + read);
        self.finished = held + read < wanted;
        Ok(())
    }
}

fn plain_end(block: &[u8]) -> (Option<usize>, usize) {
    match memchr::memrchr(b'\n', block) {
        None => (None, 0),
        Some(last) => (
            Some(last + 1),
            memchr::memchr_iter(b'\n', &block[..=last]).count(),
        ),
    }
}

/// The end of the last complete record, and how many there are.
fn quoted_end(block: &[u8]) -> (Option<usize>, usize) {
    let (mut inside, mut end, mut records) = (false, None, 0);
    for position in memchr::memchr2_iter(b'"', b'\n', block) {
        if block[position] == b'"' {
            inside = !inside;
        } else if !inside {
            end = Some(position + 1);
            records += 1;
        }
    }
    (end, records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read_all(text: &[u8]) -> Result<(Vec<u8>, Vec<u8>, usize)> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let (mut reader, header) = BlockReader::open(file.path(), Encoding::default())?;
        let (mut all, mut block, mut records) = (Vec::new(), Vec::new(), 0);
        while let Some(info) = reader.next(&mut block)? {
            assert_eq!(block.last(), Some(&b'\n'));
            records += info.records;
            all.extend_from_slice(&block);
        }
        Ok((header, all, records))
    }

    #[test]
    fn blocks_end_at_records_even_inside_quotes() {
        let row = format!("\"{}\n,\"\"x\"\"\",2\n", "y".repeat(1000));
        let text = format!("a,b\r\n{}", row.repeat(2000));
        let (header, all, records) = read_all(text.as_bytes()).unwrap();
        assert_eq!(header, b"a,b");
        assert_eq!(records, 2000);
        assert_eq!(all, text.as_bytes()[5..]);
    }

    #[test]
    fn ends_and_beginnings() {
        assert_eq!(read_all(b"").unwrap(), (vec![], vec![], 0));
        assert_eq!(read_all(b"\n\na\n").unwrap(), (b"a".to_vec(), vec![], 0));
        assert_eq!(
            read_all(b"\xEF\xBB\xBFa\n1").unwrap(),
            (b"a".to_vec(), b"1\n".to_vec(), 1)
        );
        let error = read_all(b"a,b\n1,2\n3,\"4\n5,6\n").unwrap_err().to_string();
        assert!(error.contains("line 3"), "{error}");
    }

    proptest! {
        #[test]
        fn nothing_is_lost(text in "[ab,\n]{0,400}") {
            let (header, all, _) = read_all(text.as_bytes()).unwrap();
            let mut joined = header.clone();
            if !header.is_empty() { joined.push(b'\n'); }
            joined.extend(&all);
            let mut expected = text.trim_start_matches('\n').as_bytes().to_vec();
            if !expected.is_empty() && expected.last() != Some(&b'\n') { expected.push(b'\n'); }
            prop_assert_eq!(joined, expected);
        }
    }
}
