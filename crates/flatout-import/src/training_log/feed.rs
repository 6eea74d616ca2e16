//! Reading a log with several threads: blocks of whole lines are read, each line of a block is looked at by itself, and the blocks
//! are given out in their order. Memory does not grow with the log.

use super::keywords::{Finder, Found, Keywords};
use super::stamp;
use super::times::{self, Meaning, Told};
use crate::in_order::in_order;
use crate::lines::{self, LineReader};
use std::io::Read;

const ESCAPE: u8 = 0x1b;

/// How much there was.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub bytes: u64,
    pub lines: u64,
    /// Lines that are not UTF-8.
    pub foreign_lines: u64,
    /// Why it could not be read to its end.
    pub broken_off: Option<String>,
}

/// What a line says by itself.
pub struct Line<'a> {
    /// Without its time stamp.
    pub text: &'a [u8],
    pub stamp_ms: Option<f64>,
    pub found: Found,
    pub told: &'a Told,
    pub durations: &'a [(Meaning, f64)],
    /// From 1.
    pub number: u64,
}

/// Calls `see` with every line in its turn.
pub fn each_line(reader: Box<dyn Read + Send>, mut see: impl FnMut(&Line)) -> Tally {
    let keywords = Keywords::new();
    let mut lines = LineReader::new(reader);
    let mut broken_off = None;
    let mut tally = Tally::default();
    let mut fill = |block: &mut Block| match lines.next_lines(&mut block.raw) {
        Ok(read) => read,
        Err(error) => {
            broken_off = Some(error.to_string());
            false
        }
    };
    let worker = || {
        let mut looker = Looker {
            finder: Finder::new(&keywords),
            stamps: stamp::Reader::default(),
        };
        move |block: &mut Block| looker.look(block)
    };
    in_order(&mut fill, worker, |block| {
        block.tell(tally.lines, &mut see);
        tally.bytes += block.bytes;
        tally.lines += block.lines;
        tally.foreign_lines += block.foreign_lines;
    });
    Tally { broken_off, ..tally }
}

#[derive(Default)]
struct Block {
    raw: Vec<u8>,
    /// Without colours and returns.
    text: Vec<u8>,
    seen: Vec<Seen>,
    durations: Vec<(Meaning, f64)>,
    bytes: u64,
    lines: u64,
    foreign_lines: u64,
}

struct Seen {
    /// Where its text begins behind the stamp, and where it ends.
    start: usize,
    end: usize,
    stamp_ms: Option<f64>,
    found: Found,
    told: Told,
    /// In the block.
    number: u64,
}

struct Looker<'a> {
    finder: Finder<'a>,
    stamps: stamp::Reader,
}

impl Looker<'_> {
    fn look(&mut self, block: &mut Block) {
        let raw = std::mem::take(&mut block.raw);
        block.text.clear();
        block.seen.clear();
        block.durations.clear();
        (block.bytes, block.lines, block.foreign_lines) = (0, 0, 0);
        for line in lines::each(&raw) {
            block.bytes += line.len() as u64 + 1;
            block.lines += 1;
            block.foreign_lines += u64::from(!line.is_ascii() && std::str::from_utf8(line).is_err());
            // Progress bars write over themselves: what stands between two returns is a line of its own.
            let mut rest = line;
            while let Some(end) = memchr::memchr(b'\r', rest) {
                self.line(&rest[..end], block);
                rest = &rest[end + 1..];
            }
            self.line(rest, block);
        }
        block.raw = raw;
    }

    fn line(&mut self, line: &[u8], block: &mut Block) {
        if line.is_empty() {
            return;
        }
        let begin = block.text.len();
        if memchr::memchr(ESCAPE, line).is_some() {
            without_colour(line, &mut block.text);
        } else {
            block.text.extend_from_slice(line);
        }
        let line = &block.text[begin..];
        let found = self.finder.find(line);
        let stamp = self.stamps.read(line);
        let behind = stamp.map_or(0, |(_, behind)| behind);
        let told = if found.any_time() {
            times::tell(&line[behind..], found, &mut block.durations)
        } else {
            Told::Nothing
        };
        block.seen.push(Seen {
            start: begin + behind,
            end: begin + line.len(),
            stamp_ms: stamp.map(|(at_ms, _)| at_ms),
            found,
            told,
            number: block.lines,
        });
    }
}

impl Block {
    fn tell(&self, lines_before: u64, see: &mut impl FnMut(&Line)) {
        let mut durations = self.durations.as_slice();
        for line in &self.seen {
            let (own, rest) = durations.split_at(line.told.durations());
            durations = rest;
            see(&Line {
                text: &self.text[line.start..line.end],
                stamp_ms: line.stamp_ms,
                found: line.found,
                told: &line.told,
                durations: own,
                number: lines_before + line.number,
            });
        }
    }
}

/// The line without the codes that colour it: `ESC [ … letter`.
fn without_colour(line: &[u8], into: &mut Vec<u8>) {
    let mut rest = line;
    while let Some(at) = memchr::memchr(ESCAPE, rest) {
        into.extend_from_slice(&rest[..at]);
        let code = &rest[at + 1..];
        let inside = |byte: &&u8| !byte.is_ascii_alphabetic();
        let length = if code.first() == Some(&b'[') {
            code.iter().take_while(inside).count() + 1
        } else {
            0
        };
        rest = &code[length.min(code.len())..];
    }
    into.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_in_order_over_many_blocks() {
        let text: String = (0..60_000)
            .map(|number| format!("line {number} of a log\r\n"))
            .collect();
        let mut seen = 0;
        let tally = each_line(
            Box::new(std::io::Cursor::new(text.clone().into_bytes())),
            |line| {
                assert_eq!(line.text, format!("line {seen} of a log").as_bytes());
                seen += 1;
                assert_eq!(line.number, seen);
            },
        );
        assert_eq!((tally.lines, seen), (60_000, 60_000));
        assert!(text.len() > 1 << 20, "several blocks");
    }
}
