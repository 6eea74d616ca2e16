//! The objects of a trace's `traceEvents`, one at a time: the file is never held, and one cut short is read to its end.

use std::io::{ErrorKind, Read, Result};

const CHUNK: usize = 1 << 18;
/// An event longer than this is passed over; real ones have a few hundred bytes, with call stacks some thousands.
const LONGEST_EVENT: usize = 1 << 20;
const KEY: &[u8] = b"\"traceEvents\"";

enum State {
    /// Looking for the array; so many bytes of the key have matched.
    Before {
        matched: usize,
    },
    /// Behind the key: `:` and `[` must follow.
    Opening,
    Between,
    Within,
    Done,
}

struct Scan<F> {
    state: State,
    begun: bool,
    depth: u32,
    in_string: bool,
    escaped: bool,
    event: Vec<u8>,
    too_long: bool,
    each: F,
}

/// Calls `each` with the text of every event; whether the array's end was reached.
pub fn events(mut trace: impl Read, each: impl FnMut(&[u8])) -> Result<bool> {
    let mut scan = Scan {
        state: State::Before { matched: 0 },
        begun: false,
        depth: 0,
        in_string: false,
        escaped: false,
        event: Vec::new(),
        too_long: false,
        each,
    };
    let mut chunk = vec![0; CHUNK];
    loop {
        match trace.read(&mut chunk) {
            Ok(0) => return Ok(matches!(scan.state, State::Done)),
            Ok(length) => scan.feed(&chunk[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if matches!(scan.state, State::Done) {
            return Ok(true);
        }
    }
}

impl<F: FnMut(&[u8])> Scan<F> {
    fn feed(&mut self, bytes: &[u8]) {
        let mut at = 0;
        while at < bytes.len() {
            if let State::Within = self.state {
                at += self.within(&bytes[at..]);
                continue;
            }
            self.outside(bytes[at]);
            at += 1;
        }
    }

    fn outside(&mut self, byte: u8) {
        match self.state {
            State::Before { matched } => self.look_for_key(byte, matched),
            State::Opening => match byte {
                b'[' => self.state = State::Between,
                b':' | b' ' | b'\t' | b'\r' | b'\n' => {}
                _ => self.state = State::Before { matched: 0 },
            },
            State::Between => match byte {
                b'{' => {
                    self.state = State::Within;
                    (self.depth, self.in_string, self.escaped, self.too_long) = (1, false, false, false);
                    self.event.clear();
                    self.event.push(byte);
                }
                b']' => self.state = State::Done,
                _ => {}
            },
            State::Within | State::Done => {}
        }
    }

    fn look_for_key(&mut self, byte: u8, matched: usize) {
        if !self.begun && !byte.is_ascii_whitespace() {
            self.begun = true;
            if byte == b'[' {
                // The older form: the events without an object around them.
                self.state = State::Between;
                return;
            }
        }
        let matched = match byte {
            _ if byte == KEY[matched] => matched + 1,
            b'"' => 1,
            _ => 0,
        };
        self.state = if matched == KEY.len() {
            State::Opening
        } else {
            State::Before { matched }
        };
    }

    /// Takes bytes of an event, to its end at most; how many.
    fn within(&mut self, bytes: &[u8]) -> usize {
        let mut length = bytes.len();
        for (at, byte) in bytes.iter().enumerate() {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        length = at + 1;
                        break;
                    }
                }
                _ => {}
            }
        }
        self.too_long |= self.event.len() + length > LONGEST_EVENT;
        if !self.too_long {
            self.event.extend_from_slice(&bytes[..length]);
        }
        if self.depth == 0 {
            self.state = State::Between;
            if !self.too_long {
                (self.each)(&self.event);
            }
        }
        length
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(text: &[u8]) -> (Vec<String>, bool) {
        let mut found = Vec::new();
        let complete = events(text, |event| {
            found.push(String::from_utf8_lossy(event).into_owned())
        })
        .unwrap();
        (found, complete)
    }

    #[test]
    fn events_come_one_by_one() {
        let text = br#"{"a":["traceEvents",1],"traceEvents" : [ {"n":"}\"{"}, {"m":{"k":[1]}} ],"z":{}}"#;
        let (found, complete) = all(text);
        assert_eq!(found, [r#"{"n":"}\"{"}"#, r#"{"m":{"k":[1]}}"#]);
        assert!(complete);
        assert_eq!(all(br#"[{"a":1},{"b":2}]"#).0.len(), 2);
    }

    #[test]
    fn a_trace_cut_short_gives_what_is_whole() {
        let (found, complete) = all(br#"{"traceEvents":[{"a":1},{"b":"#);
        assert_eq!(found, [r#"{"a":1}"#]);
        assert!(!complete);
        assert!(!all(b"").1);
    }

    #[test]
    fn an_endless_event_is_passed_over() {
        let long = format!(
            r#"{{"traceEvents":[{{"x":"{}"}},{{"a":1}}]}}"#,
            "y".repeat(LONGEST_EVENT)
        );
        assert_eq!(all(long.as_bytes()).0, [r#"{"a":1}"#]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(noise in prop::collection::vec(any::<u8>(), 0..500)) {
            all(&noise);
            let mut text = br#"{"traceEvents":["#.to_vec();
            text.extend(&noise);
            all(&text);
        }
    }
}
