//! Findings while the program still runs: nobody should wait for the end of a day's training to learn that it starves.

use crate::collect::Progress;
use flatout_core::{Finding, Kind};
use flatout_diagnose::Diagnosis;
use flatout_telemetry::Record;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Seconds after the first step at which the record is looked at.
const LOOKS_S: [f64; 4] = [8.0, 14.8, 30.0, 60.0];
/// The look at which something is said in any case, within 15 s of the first step: that nothing was found is an answer too.
const SAID_BY: usize = 2;
/// With `--live` the record is judged again this often, and never so often that it costs more than a hundredth of a CPU.
const LIVE_S: f64 = 5.0;
const LIVE_COST: f64 = 100.0;

/// A word during the run.
pub enum Live<'a> {
    /// The first cause that was found; after 15 s without one, what can be said so far.
    First(&'a Finding),
    /// The state of things, as often as `--live` asks for it.
    State(&'a Diagnosis, Progress),
}

pub struct EarlyFinding {
    folder: PathBuf,
    looked: usize,
    live: bool,
    next_state_s: f64,
}

impl EarlyFinding {
    pub fn new(folder: &Path, live: bool) -> Self {
        Self {
            folder: folder.to_owned(),
            looked: 0,
            live,
            next_state_s: 0.0,
        }
    }

    /// Speaks when something is due.
    pub fn look(&mut self, progress: Progress, now_s: f64, say: &mut dyn FnMut(Live)) {
        let Some(first_step_s) = progress.first_step_s else {
            return;
        };
        if self.live {
            self.tell_state(progress, first_step_s, now_s, say);
            return;
        }
        if LOOKS_S
            .get(self.looked)
            .is_none_or(|due| now_s < first_step_s + due)
        {
            return;
        }
        self.looked += 1;
        let findings = self.diagnose().map(|found| found.findings).unwrap_or_default();
        let cause = findings.iter().find(|finding| finding.kind == Kind::Cause);
        if let Some(finding) = cause {
            self.looked = LOOKS_S.len();
            say(Live::First(finding));
        } else if self.looked == SAID_BY {
            findings
                .last()
                .into_iter()
                .for_each(|verdict| say(Live::First(verdict)));
        }
    }

    fn tell_state(&mut self, progress: Progress, first_step_s: f64, now_s: f64, say: &mut dyn FnMut(Live)) {
        if now_s < self.next_state_s.max(first_step_s + LIVE_S) {
            return;
        }
        let begun = Instant::now();
        if let Some(diagnosis) = self.diagnose() {
            say(Live::State(&diagnosis, progress));
        }
        self.next_state_s = now_s + LIVE_S.max(begun.elapsed().as_secs_f64() * LIVE_COST);
    }

    fn diagnose(&self) -> Option<Diagnosis> {
        let data = Record::open(&self.folder).ok()?.load();
        Some(flatout_diagnose::diagnose(&data))
    }
}
