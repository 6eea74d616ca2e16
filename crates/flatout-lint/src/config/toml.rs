//! TOML, from the format-preserving parser that knows the span of everything.

use super::{ConfigError, Entry, Value};
use crate::python::Span;
use std::ops::Range;
use toml_edit::{Document, Item, Key, TableLike};

pub(super) fn entries(text: &str) -> (Vec<Entry>, Option<ConfigError>) {
    match Document::parse(text) {
        Ok(document) => {
            let mut found = Vec::new();
            table(document.as_table(), &[], &mut found);
            (found, None)
        }
        Err(error) => {
            let at = span(error.span());
            let text = error.message().to_owned();
            (Vec::new(), Some(ConfigError { at, text }))
        }
    }
}

fn span(range: Option<Range<usize>>) -> Span {
    range.map_or_else(Span::default, |range| Span::new(range.start, range.end))
}

fn table(table: &dyn TableLike, above: &[String], found: &mut Vec<Entry>) {
    for (name, item) in table.iter() {
        let key = span(table.key(name).and_then(Key::span));
        let mut path = above.to_vec();
        path.push(name.to_owned());
        let value = value(item);
        found.push(Entry {
            path: path.clone(),
            key,
            value,
            span: span(item.span()),
        });
        below(item, &path, found);
    }
}

fn below(item: &Item, path: &[String], found: &mut Vec<Entry>) {
    if let Some(inner) = item.as_table_like() {
        table(inner, path, found);
    }
    if let Some(tables) = item.as_array_of_tables() {
        for (index, inner) in tables.iter().enumerate() {
            let mut path = path.to_vec();
            path.push(index.to_string());
            table(inner, &path, found);
        }
    }
}

fn value(item: &Item) -> Value {
    let Some(value) = item.as_value() else {
        return if item.is_array_of_tables() {
            Value::Sequence
        } else {
            Value::Mapping
        };
    };
    match value {
        toml_edit::Value::String(text) => Value::Text(text.value().clone()),
        toml_edit::Value::Integer(number) => Value::Integer(*number.value()),
        toml_edit::Value::Float(number) => Value::Float(*number.value()),
        toml_edit::Value::Boolean(flag) => Value::Boolean(*flag.value()),
        toml_edit::Value::Datetime(_) => Value::Unknown,
        toml_edit::Value::Array(_) => Value::Sequence,
        toml_edit::Value::InlineTable(_) => Value::Mapping,
    }
}
