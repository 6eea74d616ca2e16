//! Reading ahead: one thread reads lines and looks for the words that matter, another makes sense of them. Batches go to and fro,
//! so memory does not grow with the log.

use super::keywords::{Found, Keywords};
use crate::import::lines::LineReader;
use std::io::Read;
use std::sync::mpsc;

/// Text handed over at once.
const BATCH_BYTES: usize = 256 << 10;
/// Batches under way.
const IN_FLIGHT: usize = 4;
const ESCAPE: u8 = 0x1b;

/// How much there was.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub bytes: u64,
    pub lines: u64,
    /// Why it could not be read to its end.
    pub broken_off: Option<String>,
}

#[derive(Default)]
struct Batch {
    text: Vec<u8>,
    lines: Vec<Line>,
}

struct Line {
    end: usize,
    found: Found,
    number: u64,
}

/// Calls `see` with every line, what was found in it, and its number.
pub fn each_line(reader: Box<dyn Read + Send>, mut see: impl FnMut(&[u8], Found, u64)) -> Tally {
    let (full, filled) = mpsc::sync_channel::<Batch>(IN_FLIGHT);
    let (empty, emptied) = mpsc::channel::<Batch>();
    std::thread::scope(|scope| {
        let reading = scope.spawn(move || read(LineReader::new(reader), &full, &emptied));
        for mut batch in filled {
            let mut start = 0;
            for line in batch.lines.drain(..) {
                see(&batch.text[start..line.end], line.found, line.number);
                start = line.end;
            }
            batch.text.clear();
            let _ = empty.send(batch);
        }
        reading.join().unwrap_or_default()
    })
}

fn read(mut lines: LineReader, full: &mpsc::SyncSender<Batch>, emptied: &mpsc::Receiver<Batch>) -> Tally {
    let keywords = Keywords::new();
    let mut tally = Tally::default();
    let mut batch = Batch::default();
    loop {
        match lines.next() {
            Ok(Some(line)) => {
                tally.bytes += line.len() as u64 + 1;
                tally.lines += 1;
                // Progress bars write over themselves: what stands between two returns is a line of its own.
                let mut rest = line;
                while let Some(end) = memchr::memchr(b'\r', rest) {
                    batch.add(&rest[..end], tally.lines, &keywords);
                    rest = &rest[end + 1..];
                }
                batch.add(rest, tally.lines, &keywords);
            }
            Ok(None) => break,
            Err(error) => {
                tally.broken_off = Some(error.to_string());
                break;
            }
        }
        if batch.text.len() >= BATCH_BYTES {
            let next = emptied.try_recv().unwrap_or_default();
            if full.send(std::mem::replace(&mut batch, next)).is_err() {
                return tally;
            }
        }
    }
    let _ = full.send(batch);
    tally
}

impl Batch {
    fn add(&mut self, line: &[u8], number: u64, keywords: &Keywords) {
        if line.is_empty() {
            return;
        }
        let start = self.text.len();
        if memchr::memchr(ESCAPE, line).is_some() {
            without_colour(line, &mut self.text);
        } else {
            self.text.extend_from_slice(line);
        }
        let found = keywords.find(&self.text[start..]);
        let end = self.text.len();
        self.lines.push(Line { end, found, number });
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
    fn lines_come_in_order_over_many_batches() {
        let text: String = (0..60_000)
            .map(|number| format!("line {number} of a log\r\n"))
            .collect();
        let mut seen = 0;
        let tally = each_line(
            Box::new(std::io::Cursor::new(text.clone().into_bytes())),
            |line, _, number| {
                assert_eq!(line, format!("line {seen} of a log").as_bytes());
                seen += 1;
                assert_eq!(number, seen);
            },
        );
        assert_eq!((tally.lines, seen), (60_000, 60_000));
        assert!(text.len() > 4 * BATCH_BYTES);
    }
}
