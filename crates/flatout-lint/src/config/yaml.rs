//! YAML, from the parser's events: spans are kept, aliases are not followed (their values are unknown here).

use super::{ConfigError, Entry, Value};
use crate::python::Span;
use saphyr_parser::{Event, Parser, ScalarStyle};

/// Paths grow with the nesting, so reading 100,000 levels took over 25 s; no configuration has more than this.
const DEEPEST: usize = 200;

enum Frame {
    Mapping {
        path: Vec<String>,
        key: Option<(String, Span)>,
    },
    Sequence {
        path: Vec<String>,
        next: usize,
    },
}

pub(super) fn entries(text: &str) -> (Vec<Entry>, Option<ConfigError>) {
    let bytes = ByteOffsets::of(text);
    let mut reader = Reader {
        stack: Vec::new(),
        entries: Vec::new(),
    };
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        match event {
            Ok((event, at)) => {
                let span = Span::new(bytes.at(at.start.index()), bytes.at(at.end.index()));
                reader.event(event, span);
                if reader.stack.len() > DEEPEST {
                    let text = format!("nested more than {DEEPEST} levels deep");
                    return (Vec::new(), Some(ConfigError { at: span, text }));
                }
            }
            Err(error) => {
                let at = bytes.at(error.marker().index());
                let error = ConfigError {
                    at: Span::new(at, at),
                    text: error.info().to_owned(),
                };
                return (reader.entries, Some(error));
            }
        }
    }
    (reader.entries, None)
}

struct Reader {
    stack: Vec<Frame>,
    entries: Vec<Entry>,
}

impl Reader {
    fn event(&mut self, event: Event<'_>, span: Span) {
        match event {
            Event::Scalar(text, style, _, tag) => {
                if let Some(Frame::Mapping { key: key @ None, .. }) = self.stack.last_mut() {
                    *key = Some((text.into_owned(), span));
                    return;
                }
                let value = match (style, tag) {
                    (_, Some(_)) => Value::Unknown,
                    (ScalarStyle::Plain, None) => plain(&text),
                    (_, None) if text.contains("${") => Value::Unknown,
                    (_, None) => Value::Text(text.into_owned()),
                };
                self.value(value, span);
            }
            Event::Alias(_) => {
                if let Some(Frame::Mapping { key: key @ None, .. }) = self.stack.last_mut() {
                    *key = Some((String::new(), span));
                } else {
                    self.value(Value::Unknown, span);
                }
            }
            Event::MappingStart(..) => {
                let path = self.start(Value::Mapping, span);
                self.stack.push(Frame::Mapping { path, key: None });
            }
            Event::SequenceStart(..) => {
                let path = self.start(Value::Sequence, span);
                self.stack.push(Frame::Sequence { path, next: 0 });
            }
            Event::MappingEnd | Event::SequenceEnd => {
                self.stack.pop();
            }
            _ => {}
        }
    }

    /// A mapping or a sequence begins: as a value, or (rarely) as a key, which then has no name.
    fn start(&mut self, value: Value, span: Span) -> Vec<String> {
        if let Some(Frame::Mapping {
            key: key @ None,
            path,
        }) = self.stack.last_mut()
        {
            *key = Some((String::new(), span));
            return path.clone();
        }
        self.value(value, span)
    }

    fn value(&mut self, value: Value, span: Span) -> Vec<String> {
        match self.stack.last_mut() {
            Some(Frame::Mapping { path, key }) => {
                let Some((name, key)) = key.take() else {
                    return path.clone();
                };
                let mut path = path.clone();
                path.push(name);
                self.entries.push(Entry {
                    path: path.clone(),
                    key,
                    value,
                    span,
                });
                path
            }
            Some(Frame::Sequence { path, next }) => {
                let mut path = path.clone();
                path.push(next.to_string());
                *next += 1;
                path
            }
            None => Vec::new(),
        }
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
            assert!(entries(&text).1.is_some());
        }
        assert!(entries(&("- ".repeat(100) + "a")).1.is_none());
    }
}
