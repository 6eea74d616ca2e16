//! The first finding, while the program still runs: nobody should wait for the end of a day's training to learn that it starves.

use crate::collect::Progress;
use flatout_core::{Finding, Kind};
use flatout_telemetry::Record;
use std::path::{Path, PathBuf};

/// Seconds after the first step at which the record is looked at: a verdict within 15 s, with enough to rest on.
const LOOKS_S: [f64; 4] = [8.0, 13.0, 30.0, 60.0];

pub struct EarlyFinding {
    folder: PathBuf,
    looked: usize,
}

impl EarlyFinding {
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            looked: 0,
        }
    }

    /// The first cause, the first time one is found.
    pub fn look(&mut self, progress: Progress, now_s: f64) -> Option<Finding> {
        let due = *LOOKS_S.get(self.looked)?;
        if now_s < progress.first_step_s? + due {
            return None;
        }
        self.looked += 1;
        let data = Record::open(&self.folder).ok()?.load();
        let finding = flatout_diagnose::diagnose(&data)
            .findings
            .into_iter()
            .find(|finding| finding.kind == Kind::Cause)?;
        self.looked = LOOKS_S.len();
        Some(finding)
    }
}
