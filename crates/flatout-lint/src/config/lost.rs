//! Keys that are given twice: readers keep the last one, so only that one may be judged by its value.

use super::Entry;
use rustc_hash::FxHashMap;

/// An entry that a later one of the same name replaces.
#[derive(Debug)]
pub struct Lost {
    pub entry: Entry,
    /// The entry that counts, by its place among those that count.
    pub by: usize,
}

/// The entries that take effect, in order, and those that do not. Everything below a section that is repeated is lost with it.
pub fn sort_out(entries: Vec<Entry>) -> (Vec<Entry>, Vec<Lost>) {
    let last: FxHashMap<Vec<String>, usize> = entries
        .iter()
        .enumerate()
        .map(|(at, entry)| (entry.path.clone(), at))
        .collect();
    let mut kept: Vec<Entry> = Vec::with_capacity(entries.len());
    let mut replaced: Vec<(Entry, usize)> = Vec::new();
    let mut new_place: FxHashMap<usize, usize> = FxHashMap::default();
    let mut lost_section: Option<Vec<String>> = None;
    for (at, entry) in entries.into_iter().enumerate() {
        if lost_section
            .as_ref()
            .is_some_and(|section| is_below(&entry.path, section))
        {
            continue;
        }
        lost_section = None;
        match last.get(&entry.path) {
            // YAML's merge key may be given several times.
            Some(&by) if by != at && entry.name() != "<<" => {
                lost_section = Some(entry.path.clone());
                replaced.push((entry, by));
            }
            _ => {
                new_place.insert(at, kept.len());
                kept.push(entry);
            }
        }
    }
    let lost = replaced
        .into_iter()
        .filter_map(|(entry, by)| {
            Some(Lost {
                entry,
                by: *new_place.get(&by)?,
            })
        })
        .collect();
    (kept, lost)
}

fn is_below(path: &[String], section: &[String]) -> bool {
    path.len() > section.len() && path.starts_with(section)
}
