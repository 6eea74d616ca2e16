//! JSON lines (`.jsonl`, `.ndjson`) as the text of a CSV table: one object per line, its keys are the columns. What is nested stays text.

use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Read};

/// Objects whose keys are the columns; a key that comes up later is an error.
const LOOKED_AT: usize = 1000;

/// Whether a text begins like an object. A header of CSV that begins so would be a strange one.
pub fn is_meant_by(first: &[u8]) -> bool {
    let text = first.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(first);
    text.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
}

/// The CSV of JSON lines, made while it is read.
pub struct AsCsv {
    input: BufReader<Box<dyn Read + Send>>,
    columns: Vec<String>,
    /// Objects that were read for their keys, last first.
    waiting: Vec<Map<String, Value>>,
    text: Vec<u8>,
    given: usize,
    line: u64,
}

impl AsCsv {
    pub fn new(input: Box<dyn Read + Send>) -> io::Result<Self> {
        let mut csv = Self {
            input: BufReader::new(input),
            columns: Vec::new(),
            waiting: Vec::new(),
            text: Vec::new(),
            given: 0,
            line: 0,
        };
        let mut keys = BTreeSet::new();
        while csv.waiting.len() < LOOKED_AT {
            let Some(object) = csv.object()? else { break };
            keys.extend(object.keys().cloned());
            csv.waiting.push(object);
        }
        csv.waiting.reverse();
        csv.columns = keys.into_iter().collect();
        let header = csv.columns.iter().map(|name| quoted(name)).collect::<Vec<_>>();
        csv.text = (header.join(",") + "\n").into_bytes();
        Ok(csv)
    }

    /// The next line's object; `None` at the end.
    fn object(&mut self) -> io::Result<Option<Map<String, Value>>> {
        let mut line = String::new();
        loop {
            line.clear();
            self.line += 1;
            if self.input.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            let text = line.trim().trim_start_matches('\u{feff}');
            if text.is_empty() {
                continue;
            }
            let number = self.line;
            let wrong = |reason: String| {
                io::Error::new(io::ErrorKind::InvalidData, format!("line {number}: {reason}"))
            };
            return match serde_json::from_str(text) {
                Ok(Value::Object(object)) => Ok(Some(object)),
                Ok(_) => Err(wrong("not a JSON object".to_owned())),
                Err(error) => Err(wrong(error.to_string())),
            };
        }
    }

    /// Makes the text of the next object; false at the end.
    fn next_row(&mut self) -> io::Result<bool> {
        let next = match self.waiting.pop() {
            Some(object) => Some(object),
            None => self.object()?,
        };
        let Some(object) = next else {
            return Ok(false);
        };
        if let Some(key) = object.keys().find(|key| self.columns.binary_search(key).is_err()) {
            let (line, first) = (self.line, LOOKED_AT);
            let reason = format!("line {line}: the key `{key}` is in none of the first {first} lines");
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        self.text.clear();
        self.given = 0;
        for (place, name) in self.columns.iter().enumerate() {
            if place > 0 {
                self.text.push(b',');
            }
            let cell = match object.get(name) {
                None | Some(Value::Null) => String::new(),
                Some(Value::String(text)) => quoted(text),
                Some(value @ (Value::Number(_) | Value::Bool(_))) => value.to_string(),
                Some(nested) => quoted(&nested.to_string()),
            };
            self.text.extend_from_slice(cell.as_bytes());
        }
        self.text.push(b'\n');
        Ok(true)
    }
}

impl Read for AsCsv {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given == self.text.len() && !self.next_row()? {
            return Ok(0);
        }
        let count = buffer.len().min(self.text.len() - self.given);
        buffer[..count].copy_from_slice(&self.text[self.given..self.given + count]);
        self.given += count;
        Ok(count)
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csv(text: &'static str) -> io::Result<String> {
        let mut all = String::new();
        AsCsv::new(Box::new(text.as_bytes()))?.read_to_string(&mut all)?;
        Ok(all)
    }

    #[test]
    fn objects_become_rows() {
        let found =
            csv("{\"b\": 1.5, \"a\": \"x, \\\"y\\\"\"}\n\n{\"a\": null, \"c\": true, \"b\": -3}\n").unwrap();
        assert_eq!(found, "\"a\",\"b\",\"c\"\n\"x, \"\"y\"\"\",1.5,\n,-3,true\n");
        let wrong = |text| csv(text).unwrap_err().to_string();
        assert!(wrong("{\"a\": 1}\n[1]\n").contains("line 2: not a JSON object"));
        assert!(wrong("{\"a\": 1}\n{\"a\": \n").contains("line 2"));
        assert!(is_meant_by(b"  {\"a\"") && !is_meant_by(b"a,b"));
    }
}
