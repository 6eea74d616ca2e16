//! Where a value of the file belongs: to the whole run, or to a phase. Unknown keys are refused, the nearest one named.

use super::entries::Entry;
use crate::TrainError;
use crate::settings::{self, Values};
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
    let (group, key) = match entry.path.as_slice() {
        [key] => (None, key),
        [group, key] => (Some(group.as_str()), key),
        longer => (Some(""), &longer[longer.len() - 1]),
    };
    let unknown = || TrainError::UnknownKey {
        key: entry.path.join("."),
        place: format!("{}:{}", path.display(), entry.line),
        nearest: settings::nearest(key),
    };
    // `model: lstm` is a setting, `model: {…}` a heading; `name` under a heading says which.
    let known = match (group, key.as_str()) {
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
        None => {
            values.insert(setting.name, entry.text.clone());
        }
        Some(group) if GROUPS.contains(&group) => {
            values.insert(setting.name, entry.text.clone());
        }
        Some(group) if PHASES.contains(&group) => {
            if !phases.iter().any(|(name, _)| name == group) {
                phases.push((group.to_owned(), Values::new()));
            }
            if let Some((_, own)) = phases.iter_mut().find(|(name, _)| name == group) {
                own.insert(setting.name, entry.text.clone());
            }
        }
        Some(_) => return Err(unknown()),
    }
    Ok(())
}
