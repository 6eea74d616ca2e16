//! A YAML file as a flat list of its values, each with its path and line. What a value means is not known here.

use crate::TrainError;
use flatout_config::{Format, Item, Lines, Value};
use std::path::Path;

/// A value of the file, with its place.
pub struct Entry {
    pub path: Vec<String>,
    pub text: String,
    pub line: usize,
}

/// The file's scalars with their paths; lists are joined by commas.
pub fn entries(path: &Path, text: &str) -> Result<Vec<Entry>, TrainError> {
    let (items, problem) = flatout_config::read(text, Format::Yaml);
    let lines = Lines::of(text);
    if let Some(problem) = problem {
        return Err(TrainError::Syntax {
            path: path.to_owned(),
            line: lines.at(problem.at.start),
            reason: problem.text,
        });
    }
    let mut found: Vec<Entry> = Vec::new();
    // The list that is being read: its path, and whether it has an item yet.
    let mut list: Option<(Vec<String>, bool)> = None;
    for item in items {
        let line = lines.at(item.bytes.start);
        let within = list.as_mut().filter(|(above, _)| {
            item.key.is_none() && item.path.len() > above.len() && item.path.starts_with(above)
        });
        match (within, item.value == Value::Sequence) {
            (_, _) if item.value == Value::Mapping => {}
            (Some(_), true) => {}
            (Some((_, has_items)), false) => {
                let scalar = scalar(item, text);
                if let Some(entry) = found.last_mut() {
                    entry.text += if *has_items { "," } else { "" };
                    entry.text += &scalar;
                }
                *has_items = true;
            }
            (None, is_list) => {
                list = is_list.then(|| (item.path.clone(), false));
                found.push(Entry {
                    path: item.path.clone(),
                    text: scalar(item, text),
                    line,
                });
            }
        }
    }
    Ok(found)
}

/// An alias is shown as it is written: what it stands for is not looked up.
fn scalar(item: Item, text: &str) -> String {
    match item.value {
        Value::Unknown if item.text.is_empty() => text.get(item.bytes).unwrap_or_default().to_owned(),
        _ => item.text,
    }
}
