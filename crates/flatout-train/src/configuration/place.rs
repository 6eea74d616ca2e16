//! Where a value of the file belongs: to the whole run, or to a phase. Unknown keys are refused, the nearest one named.

use super::entries::Entry;
use crate::TrainError;
use crate::settings::{self, Kind, Setting, Values};
use flatout_data::load::policies::quoted;
use std::path::Path;

/// Headings whose keys are settings of the whole run.
const GROUPS: &[&str] = &[
    "train",
    "training",
    "dataset",
    "data",
    "optimizer",
    "model",
    "scheduler",
    "loader",
    "dataloader",
];
/// Headings that are phases, in this order.
pub const PHASES: &[&str] = &["pretrain", "global"];

/// Puts a value where it belongs.
pub fn place(
    path: &Path,
    entry: &Entry,
    values: &mut Values,
    phases: &mut Vec<(String, Values)>,
) -> Result<(), TrainError> {
    let (keys, text) = match entry.path.as_slice() {
        // `missing: {price: zero}` says of a column what `missing: [price=zero]` says.
        [keys @ .., column] if keys.last().is_some_and(|key| is_list(key)) => {
            (keys, format!("{}={}", quoted(column), entry.text))
        }
        keys => (keys, entry.text.clone()),
    };
    let (group, key) = match keys {
        [] => (Some(""), ""),
        [key] => (None, key.as_str()),
        [group, key] => (Some(group.as_str()), key.as_str()),
        [.., key] => (Some(""), key.as_str()),
    };
    let unknown = || TrainError::UnknownKey {
        key: entry.path.join("."),
        place: format!("{}:{}", path.display(), entry.line),
        nearest: settings::nearest(key),
    };
    // `model: lstm` is a setting, `model: {…}` a heading; `name` under a heading says which.
    let known = match (group, key) {
        (Some("model" | "dataset" | "data" | "optimizer"), "name" | "type") => {
            group.and_then(|group| match group {
                "dataset" | "data" => settings::find("data"),
                heading => settings::find(heading),
            })
        }
        _ => settings::find(key),
    };
    let setting = known.ok_or_else(unknown)?;
    match group {
        None => put(values, setting, text),
        Some(group) if GROUPS.contains(&group) => put(values, setting, text),
        Some(group) if PHASES.contains(&group) => {
            if !phases.iter().any(|(name, _)| name == group) {
                phases.push((group.to_owned(), Values::new()));
            }
            if let Some((_, own)) = phases.iter_mut().find(|(name, _)| name == group) {
                put(own, setting, text);
            }
        }
        Some(_) => return Err(unknown()),
    }
    Ok(())
}

fn is_list(key: &str) -> bool {
    settings::find(key).is_some_and(|setting| matches!(setting.kind, Kind::List(_)))
}

/// The last word counts; a list has them all.
fn put(values: &mut Values, setting: &Setting, text: String) {
    match values.get_mut(setting.name) {
        Some(list) if matches!(setting.kind, Kind::List(_)) => {
            list.push(',');
            list.push_str(&text);
        }
        _ => {
            values.insert(setting.name, text);
        }
    }
}
