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

/// The file's scalars with their paths; lists are joined by commas, and the lists of a list by bars.
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
    // The lists so far: their paths, and which entry each one fills.
    let mut lists: Vec<(Vec<String>, usize)> = Vec::new();
    // The innermost list of the last scalar.
    let mut last: Vec<String> = Vec::new();
    for item in items {
        let line = lines.at(item.bytes.start);
        let within = lists.iter().rev().find(|(above, _)| {
            item.key.is_none() && item.path.len() > above.len() && item.path.starts_with(above)
        });
        match (within.map(|(_, entry)| *entry), &item.value) {
            (_, Value::Mapping) => {}
            (Some(entry), Value::Sequence) => lists.push((item.path, entry)),
            (Some(entry), _) => {
                let list = within.map(|(list, _)| list.clone()).unwrap_or_default();
                let scalar = scalar(item, text);
                if let Some(entry) = found.get_mut(entry) {
                    entry.text += match entry.text.is_empty() {
                        true => "",
                        false if list == last => ",",
                        false => "|",
                    };
                    entry.text += &scalar;
                }
                last = list;
            }
            (None, value) => {
                let keys = keys(&item.path, &lists);
                if *value == Value::Sequence {
                    lists.push((item.path.clone(), found.len()));
                }
                found.push(Entry {
                    path: keys,
                    text: scalar(item, text),
                    line,
                });
            }
        }
    }
    Ok(found)
}

/// A path without the positions in lists.
fn keys(path: &[String], lists: &[(Vec<String>, usize)]) -> Vec<String> {
    let is_position = |&(place, _): &(usize, &String)| lists.iter().any(|(list, _)| list == &path[..place]);
    let keys = path.iter().enumerate().filter(|part| !is_position(part));
    keys.map(|(_, key)| key.clone()).collect()
}

/// An alias is shown as it is written: what it stands for is not looked up.
fn scalar(item: Item, text: &str) -> String {
    match item.value {
        Value::Unknown if item.text.is_empty() => text.get(item.bytes).unwrap_or_default().to_owned(),
        _ => item.text,
    }
}
