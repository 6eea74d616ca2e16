//! Every mistake of a configuration file at once, each with its line: who corrects one does not have to start again to learn of the next.

use super::entries::{Entry, entries};
use super::place::place;
use super::{GENERATE, Settings, Values};
use crate::TrainError;
use flatout_core::{Explain, Message};
use std::path::Path;

/// The error for a file in which `first` was found: all of its mistakes where their lines are known, else that one.
pub(super) fn all(path: &Path, text: &str, flags: &Values, first: TrainError) -> TrainError {
    let list = find(path, text, flags);
    match list.as_slice() {
        [] => first,
        // Said with its line already, and with its hint.
        [_] if matches!(first, TrainError::UnknownKey { .. }) => first,
        _ => TrainError::Mistakes {
            path: path.to_owned(),
            list,
        },
    }
}

fn find(path: &Path, text: &str, flags: &Values) -> Vec<Message> {
    let Ok(entries) = entries(path, text) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let validation_from = validation_from(path, &entries, flags);
    // Who has more of them has another kind of file.
    const MOST: usize = 100;
    for entry in entries
        .iter()
        .filter(|entry| entry.path.first().is_none_or(|key| key != GENERATE))
    {
        if found.len() >= MOST {
            break;
        }
        let (mut values, mut phases) = (Values::new(), Vec::new());
        if let Err(error) = place(path, entry, &mut values, &mut phases) {
            found.push(in_words(&error));
            continue;
        }
        let mut own = phases.into_iter().next().map_or(values, |(_, own)| own);
        // A flag in its place: what the file says does not count.
        own.retain(|name, _| !flags.contains_key(name));
        // One date is checked against the other, wherever that is given.
        if own.contains_key("test_from")
            && let Some(date) = &validation_from
        {
            if Settings::of(&[("validation_from", date.clone())].into()).is_err() {
                continue;
            }
            own.insert("validation_from", date.clone());
        }
        if let Err(error) = Settings::of(&own) {
            let (words, place) = (in_words(&error), format!("{}:{}", path.display(), entry.line));
            found.push(Message {
                en: format!("{place}: {}", words.en),
                zh: format!("{place}：{}", words.zh),
            });
        }
    }
    found
}

/// The start of the validation split by the flags or the file.
fn validation_from(path: &Path, entries: &[Entry], flags: &Values) -> Option<String> {
    let mut values = Values::new();
    for entry in entries {
        // What cannot be placed is a mistake of its own.
        let mut phases = Vec::new();
        let _ = place(path, entry, &mut values, &mut phases);
        values.extend(phases.into_iter().flat_map(|(_, own)| own));
    }
    values.extend(flags.iter().map(|(name, value)| (*name, value.clone())));
    values.remove("validation_from")
}

/// An error with its hint, in one line.
pub(super) fn in_words(error: &TrainError) -> Message {
    let mut words = error.message();
    if let Some(hint) = error.hint() {
        words.en += &format!(" ({})", hint.en);
        words.zh += &format!("（{}）", hint.zh);
    }
    words
}
