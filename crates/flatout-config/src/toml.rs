//! TOML, from the format-preserving parser that knows the span of everything.

use crate::{Item, Problem, Value};
use toml_edit::{Document, Item as Node, Key, TableLike};

pub(crate) fn items(text: &str) -> (Vec<Item>, Option<Problem>) {
    match Document::parse(text) {
        Ok(document) => {
            let mut found = Vec::new();
            table(document.as_table(), &[], text, &mut found);
            (found, None)
        }
        Err(error) => {
            let at = error.span().unwrap_or_default();
            let text = error.message().to_owned();
            (Vec::new(), Some(Problem { at, text }))
        }
    }
}

fn table(table: &dyn TableLike, above: &[String], text: &str, found: &mut Vec<Item>) {
    for (name, node) in table.iter() {
        let mut path = above.to_vec();
        path.push(name.to_owned());
        let bytes = node.span().unwrap_or_default();
        let value = value(node);
        let shown = match value {
            Value::Mapping => "",
            Value::Sequence if !node.is_value() => "",
            _ => node
                .as_str()
                .or_else(|| text.get(bytes.clone()))
                .unwrap_or_default(),
        };
        found.push(Item {
            path: path.clone(),
            key: Some(table.key(name).and_then(Key::span).unwrap_or_default()),
            value,
            text: shown.trim().to_owned(),
            bytes,
        });
        below(node, &path, text, found);
    }
}

fn below(item: &Node, path: &[String], text: &str, found: &mut Vec<Item>) {
    if let Some(inner) = item.as_table_like() {
        table(inner, path, text, found);
    }
    if let Some(tables) = item.as_array_of_tables() {
        for (index, inner) in tables.iter().enumerate() {
            let mut path = path.to_vec();
            path.push(index.to_string());
            table(inner, &path, text, found);
        }
    }
}

fn value(item: &Node) -> Value {
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
