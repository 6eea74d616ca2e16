//! Lines of a log in whatever encoding it has: bytes as they are, or UTF-16 (what a Windows shell's `>` writes) turned into
//! UTF-8. The numbers in a log are ASCII in every other encoding, so nothing else needs turning.

use std::io::{self, Read};

const BLOCK_BYTES: usize = 256 << 10;
/// A line longer than this is no log line; it is given out in pieces, so that memory stays bounded.
const LONGEST_LINE: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Bytes,
    Utf16 { big_endian: bool },
}

pub struct LineReader {
    reader: Box<dyn Read + Send>,
    encoding: Option<Encoding>,
    /// What was read from the file and not yet decoded: an odd byte or half a pair of UTF-16.
    undecoded: Vec<u8>,
    buffer: Vec<u8>,
    start: usize,
    /// Up to here the buffer has been searched for a newline.
    searched: usize,
    ended: bool,
    number: u64,
}

impl LineReader {
    pub fn new(reader: Box<dyn Read + Send>) -> Self {
        Self {
            reader,
            encoding: None,
            undecoded: Vec::new(),
            buffer: Vec::with_capacity(2 * BLOCK_BYTES),
            start: 0,
            searched: 0,
            ended: false,
            number: 0,
        }
    }

    /// The number of the line that was given out last, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The next line without its ending; `None` at the end of the file.
    pub fn next(&mut self) -> io::Result<Option<&[u8]>> {
        loop {
            let found = memchr::memchr(b'\n', &self.buffer[self.searched..]);
            if let Some(offset) = found {
                let (start, end) = (self.start, self.searched + offset);
                self.start = end + 1;
                self.searched = end + 1;
                self.number += 1;
                let line = &self.buffer[start..end];
                return Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)));
            }
            self.searched = self.buffer.len();
            if let Some(end) = self.unended() {
                let start = self.start;
                self.start = end;
                self.number += 1;
                return Ok(Some(&self.buffer[start..end]));
            }
            if self.ended {
                return Ok(None);
            }
            self.fill()?;
        }
    }

    /// The next lines with their endings, as many as are there at once, in place of what is in `into`; false at the end. A line
    /// without its ending is the last one, or a piece of one that is too long, and comes alone or last.
    pub fn next_lines(&mut self, into: &mut Vec<u8>) -> io::Result<bool> {
        into.clear();
        loop {
            if let Some(offset) = memchr::memrchr(b'\n', &self.buffer[self.searched..]) {
                let end = self.searched + offset + 1;
                into.extend_from_slice(&self.buffer[self.start..end]);
                self.start = end;
                self.searched = end;
                return Ok(true);
            }
            self.searched = self.buffer.len();
            if let Some(end) = self.unended() {
                into.extend_from_slice(&self.buffer[self.start..end]);
                self.start = end;
                return Ok(true);
            }
            if self.ended {
                return Ok(false);
            }
            self.fill()?;
        }
    }

    /// Where what is given out without its ending stops: the last line of the file, or a piece of one that is too long.
    fn unended(&self) -> Option<usize> {
        let pending = &self.buffer[self.start..];
        if pending.is_empty() || !self.ended && pending.len() < LONGEST_LINE {
            return None;
        }
        // A progress bar that never ends its line is best cut where it begins anew.
        let cut = memchr::memrchr(b'\r', pending).filter(|_| !self.ended);
        Some(cut.map_or(self.buffer.len(), |at| self.start + at + 1))
    }

    fn fill(&mut self) -> io::Result<()> {
        self.buffer.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        match self.encoding {
            Some(Encoding::Bytes) => self.ended = read_block(&mut self.reader, &mut self.buffer)? == 0,
            Some(Encoding::Utf16 { big_endian }) => {
                self.ended = read_block(&mut self.reader, &mut self.undecoded)? == 0;
                decode_utf16(&mut self.undecoded, big_endian, self.ended, &mut self.buffer);
            }
            None => {
                let read = read_block(&mut self.reader, &mut self.undecoded)?;
                self.ended = read == 0;
                // The mark at the start of a file is at most three bytes; a slow pipe may bring fewer.
                if read == 0 || self.undecoded.len() >= 4 {
                    self.detect();
                }
            }
        }
        Ok(())
    }

    fn detect(&mut self) {
        let (encoding, mark) = detect(&self.undecoded);
        self.encoding = Some(encoding);
        self.undecoded.drain(..mark);
        match encoding {
            Encoding::Bytes => self.buffer.append(&mut self.undecoded),
            Encoding::Utf16 { big_endian } => {
                decode_utf16(&mut self.undecoded, big_endian, self.ended, &mut self.buffer);
            }
        }
    }
}

/// The lines of a block, without their endings.
pub fn each(block: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = block;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let Some(end) = memchr::memchr(b'\n', rest) else {
            return Some(std::mem::take(&mut rest));
        };
        let line = &rest[..end];
        rest = &rest[end + 1..];
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    })
}

fn read_block(reader: &mut dyn Read, into: &mut Vec<u8>) -> io::Result<usize> {
    let start = into.len();
    into.resize(start + BLOCK_BYTES, 0);
    let result = loop {
        match reader.read(&mut into[start..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => break other,
        }
    };
    into.truncate(start + *result.as_ref().unwrap_or(&0));
    result
}

/// The encoding, and the length of the mark that says so.
fn detect(start: &[u8]) -> (Encoding, usize) {
    match start {
        [0xEF, 0xBB, 0xBF, ..] => (Encoding::Bytes, 3),
        [0xFF, 0xFE, ..] => (Encoding::Utf16 { big_endian: false }, 2),
        [0xFE, 0xFF, ..] => (Encoding::Utf16 { big_endian: true }, 2),
        // ASCII in UTF-16 without a mark: every other byte is zero.
        [first, 0, second, 0, ..] if *first != 0 && *second != 0 => {
            (Encoding::Utf16 { big_endian: false }, 0)
        }
        [0, first, 0, second, ..] if *first != 0 && *second != 0 => (Encoding::Utf16 { big_endian: true }, 0),
        _ => (Encoding::Bytes, 0),
    }
}

fn decode_utf16(bytes: &mut Vec<u8>, big_endian: bool, ended: bool, into: &mut Vec<u8>) {
    let unit = |pair: &[u8]| {
        let pair = [pair[0], pair[1]];
        if big_endian {
            u16::from_be_bytes(pair)
        } else {
            u16::from_le_bytes(pair)
        }
    };
    let mut whole = bytes.len() / 2 * 2;
    // A character may need two units; the second may not have come yet.
    if !ended && whole >= 2 && (0xD800..0xDC00).contains(&unit(&bytes[whole - 2..whole])) {
        whole -= 2;
    }
    let mut utf8 = [0u8; 4];
    for c in char::decode_utf16(bytes[..whole].chunks_exact(2).map(unit)) {
        let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
        into.extend_from_slice(c.encode_utf8(&mut utf8).as_bytes());
    }
    bytes.drain(..whole);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Gives its bytes in small pieces, as a pipe may.
    struct Drip(Vec<u8>, usize);

    impl Read for Drip {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(into.len()).min(self.0.len());
            into[..count].copy_from_slice(&self.0[..count]);
            self.0.drain(..count);
            Ok(count)
        }
    }

    fn lines(bytes: &[u8], piece: usize) -> Vec<Vec<u8>> {
        let mut reader = LineReader::new(Box::new(Drip(bytes.to_vec(), piece)));
        let mut all = Vec::new();
        while let Some(line) = reader.next().unwrap() {
            all.push(line.to_vec());
        }
        assert_eq!(reader.number(), all.len() as u64);
        assert_eq!(in_blocks(bytes, piece), all);
        all
    }

    /// The same, read in blocks of whole lines.
    fn in_blocks(bytes: &[u8], piece: usize) -> Vec<Vec<u8>> {
        let mut reader = LineReader::new(Box::new(Drip(bytes.to_vec(), piece)));
        let (mut block, mut all) = (Vec::new(), Vec::new());
        while reader.next_lines(&mut block).unwrap() {
            all.extend(each(&block).map(<[u8]>::to_vec));
        }
        all
    }

    #[test]
    fn every_encoding_gives_the_same_lines() {
        let text = "name, 型号\r\n1, 2\n最后 😀";
        let expected: Vec<Vec<u8>> = text
            .split('\n')
            .map(|line| line.trim_end_matches('\r').as_bytes().to_vec())
            .collect();
        let mark = |mark: &[u8], bytes: Vec<u8>| [mark, &bytes].concat();
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for piece in [1, 2, 3, 7, 1000] {
            for bytes in [
                text.as_bytes().to_vec(),
                mark(b"\xEF\xBB\xBF", text.into()),
                mark(b"\xFF\xFE", little.clone()),
                mark(b"\xFE\xFF", big.clone()),
                little.clone(),
                big.clone(),
            ] {
                assert_eq!(lines(&bytes, piece), expected, "in pieces of {piece}");
            }
        }
    }

    #[test]
    fn an_endless_line_is_given_out_in_pieces() {
        let pieces = lines(&vec![b'x'; 3 * LONGEST_LINE], 1 << 16);
        assert!(pieces.len() >= 2);
        assert_eq!(pieces.iter().map(Vec::len).sum::<usize>(), 3 * LONGEST_LINE);
    }

    proptest! {
        #[test]
        fn bytes_come_back_as_they_were(bytes in prop::collection::vec(1u8..128, 0..300), piece in 1usize..50) {
            let expected: Vec<Vec<u8>> = bytes
                .split_inclusive(|byte| *byte == b'\n')
                .map(|line| line.strip_suffix(b"\n").map_or(line, |line| line.strip_suffix(b"\r").unwrap_or(line)).to_vec())
                .collect();
            prop_assert_eq!(lines(&bytes, piece), expected);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), piece in 1usize..50) {
            lines(&bytes, piece);
        }
    }
}
