//! What every diagnosis of a real run must keep, whatever it finds: held against the committed records of the fault
//! programs, whole and cut short. Which cause is right is another question: `cargo xtask faults` asks it.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

#[path = "records/broken.rs"]
mod broken;
#[path = "records/keeps.rs"]
mod keeps;

use flatout_record::{Record, RunData};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A record with a name to blame. The held-out ones are not to be known, so they have none.
pub struct Recorded {
    pub name: String,
    pub folder: PathBuf,
    pub data: RunData,
}

/// Every committed record, read once.
pub fn all() -> &'static [Recorded] {
    static ALL: OnceLock<Vec<Recorded>> = OnceLock::new();
    ALL.get_or_init(read)
}

fn read() -> Vec<Recorded> {
    let faults = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../faults");
    let mut found = Vec::new();
    for (folder, held_out) in [(faults.clone(), false), (faults.join("holdout"), true)] {
        let mut programs: Vec<PathBuf> = fs::read_dir(folder)
            .unwrap()
            .flatten()
            .map(|entry| entry.path())
            .collect();
        programs.sort();
        for program in programs {
            let folder = program.join("record");
            if let Ok(record) = Record::open(&folder) {
                let name = program.file_name().unwrap().to_string_lossy().into_owned();
                found.push(Recorded {
                    name: if held_out {
                        "a held-out program".into()
                    } else {
                        name
                    },
                    folder,
                    data: record.load(),
                });
            }
        }
    }
    assert!(found.len() >= 28, "only {} records", found.len());
    found
}

/// The record as it was at a moment.
pub fn until(data: &RunData, t: f64) -> RunData {
    let mut past = data.clone();
    past.steps.retain(|tick| tick.t <= t);
    past.samples.retain(|sample| sample.t <= t);
    past.events.retain(|event| event.t <= t);
    past.facts.retain(|fact| fact.t <= t);
    past.stacks.retain(|tick| tick.t <= t);
    past.info.exit = None;
    past
}
