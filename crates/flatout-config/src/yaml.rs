//! YAML, from the parser's events: spans are kept, aliases are not followed (their values are unknown here).

use crate::{Item, Problem, Value};
use saphyr_parser::{Event, Parser, ScalarStyle};
use std::ops::Range;

/// Paths grow with the nesting, so reading 100,000 levels took over 25 s; no configuration has more than this.
const DEEPEST: usize = 200;

enum Frame {
    Mapping {
        path: Vec<String>,
        key: Option<(String, Range<usize>)>,
    },
    Sequence {
        path: Vec<String>,
        next: usize,
    },
}

pub(crate) fn items(text: &str) -> (Vec<Item>, Option<Problem>) {
    let bytes = ByteOffsets::of(text);
    let mut reader = Reader {
        stack: Vec::new(),
        items: Vec::new(),
    };
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        match event {
            Ok((event, at)) => {
                let place = bytes.at(at.start.index())..bytes.at(at.end.index());
                let quoted = matches!(
                    event,
                    Event::Scalar(_, ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted, ..)
                );
                let place = if quoted { closed(text, place) } else { place };
                reader.event(event, place.clone());
                if reader.stack.len() > DEEPEST {
                    let text = format!("nested more than {DEEPEST} levels deep");
                    return (Vec::new(), Some(Problem { at: place, text }));
                }
            }
            Err(error) => {
                let at = bytes.at(error.marker().index());
                let problem = Problem {
                    at: at..at,
                    text: error.info().to_owned(),
                };
                return (reader.items, Some(problem));
            }
        }
    }
    (reader.items, None)
}

/// A quoted scalar up to its closing quote: the parser's place goes on to the end of a comment behind it.
fn closed(text: &str, place: Range<usize>) -> Range<usize> {
    let written = text.get(place.clone()).unwrap_or_default().as_bytes();
    let Some((quote, mut at)) = written.first().map(|quote| (*quote, 1)) else {
        return place;
    };
    while at < written.len() {
        match written[at] {
            b'\\' if quote == b'"' => at += 2,
            byte if byte == quote && quote == b'\'' && written.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return place.start..place.start + at + 1,
            _ => at += 1,
        }
    }
    place
}

struct Reader {
    stack: Vec<Frame>,
    items: Vec<Item>,
}

impl Reader {
    fn event(&mut self, event: Event<'_>, place: Range<usize>) {
        match event {
            Event::Scalar(text, style, _, tag) => {
                if let Some(Frame::Mapping { key: key @ None, .. }) = self.stack.last_mut() {
                    *key = Some((text.into_owned(), place));
                    return;
                }
                let value = match (style, tag) {
                    (_, Some(_)) => Value::Unknown,
                    (ScalarStyle::Plain, None) => plain(&text),
                    (_, None) if text.contains("${") => Value::Unknown,
                    (_, None) => Value::Text(text.clone().into_owned()),
                };
                self.value(value, text.into_owned(), place);
            }
            Event::Alias(_) => {
                if let Some(Frame::Mapping { key: key @ None, .. }) = self.stack.last_mut() {
                    *key = Some((String::new(), place));
                } else {
                    self.value(Value::Unknown, String::new(), place);
                }
            }
            Event::MappingStart(..) => {
                let path = self.start(Value::Mapping, place);
                self.stack.push(Frame::Mapping { path, key: None });
            }
            Event::SequenceStart(..) => {
                let path = self.start(Value::Sequence, place);
                self.stack.push(Frame::Sequence { path, next: 0 });
            }
            Event::MappingEnd | Event::SequenceEnd => {
                self.stack.pop();
            }
            _ => {}
        }
    }

    /// A mapping or a sequence begins: as a value, or (rarely) as a key, which then has no name.
    fn start(&mut self, value: Value, place: Range<usize>) -> Vec<String> {
        if let Some(Frame::Mapping {
            key: key @ None,
            path,
        }) = self.stack.last_mut()
        {
            *key = Some((String::new(), place));
            return path.clone();
        }
        self.value(value, String::new(), place)
    }

    fn value(&mut self, value: Value, text: String, bytes: Range<usize>) -> Vec<String> {
        let (path, key) = match self.stack.last_mut() {
            Some(Frame::Mapping { path, key }) => {
                let Some((name, key)) = key.take() else {
                    return path.clone();
                };
                let mut path = path.clone();
                path.push(name);
                (path, Some(key))
            }
            Some(Frame::Sequence { path, next }) => {
                let mut path = path.clone();
                path.push(next.to_string());
                *next += 1;
                (path, None)
            }
            None => (Vec::new(), None),
        };
        self.items.push(Item {
            path: path.clone(),
            key,
            value,
            text,
            bytes,
        });
        path
    }
}

/// What PyYAML makes of an unquoted scalar.
fn plain(text: &str) -> Value {
    if text.contains("${") {
        return Value::Unknown;
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => return Value::Boolean(true),
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => {
            return Value::Boolean(false);
        }
        _ => {}
    }
    let number = text.replace('_', "");
    if !number.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first)) {
        return Value::Text(text.to_owned());
    }
    match (number.parse::<i64>(), number.parse::<f64>()) {
        (Ok(value), _) => Value::Integer(value),
        (_, Ok(value)) => Value::Float(value),
        _ => Value::Text(text.to_owned()),
    }
}

/// The parser counts characters; everybody else counts bytes.
struct ByteOffsets<'a> {
    text: &'a str,
    /// Empty for ASCII, where both are the same.
    offsets: Vec<u32>,
}

impl<'a> ByteOffsets<'a> {
    fn of(text: &'a str) -> Self {
        let offsets = if text.is_ascii() {
            Vec::new()
        } else {
            text.char_indices().map(|(at, _)| at as u32).collect()
        };
        Self { text, offsets }
    }

    fn at(&self, character: usize) -> usize {
        if self.offsets.is_empty() {
            character.min(self.text.len())
        } else {
            self.offsets
                .get(character)
                .map_or(self.text.len(), |at| *at as usize)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_nesting_is_refused_at_once() {
        for text in [
            "- ".repeat(100_000) + "a",
            "{".repeat(100_000),
            "? ".repeat(100_000),
        ] {
            assert!(items(&text).1.is_some());
        }
        assert!(items(&("- ".repeat(100) + "a")).1.is_none());
    }
}
