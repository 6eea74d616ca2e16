//! Findings while the program still runs: nobody should wait for the end of a day's training to learn that it starves.

use crate::RunError;
use crate::collect::Progress;
use flatout_core::{Finding, Kind, Severity};
use flatout_diagnose::Diagnosis;
use flatout_diagnose::rules::health::too_little_data;
use flatout_diagnose::rules::parallel::stalled;
use flatout_record::{Record, StalledRank};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Seconds after the first step at which the record is looked at.
const LOOKS_S: [f64; 4] = [8.0, 14.8, 30.0, 60.0];
/// The look at which something is said in any case, within 15 s of the first step: that nothing was found is an answer too.
const SAID_BY: usize = 2;
/// A program that has shown no step by then is looked at as one whose loop has none: what it did first was to start.
const WITHOUT_STEPS_S: f64 = 20.0;
/// With `--live` the record is judged again this often, and never so often that it costs more than a hundredth of a CPU.
const LIVE_S: f64 = 5.0;
const LIVE_COST: f64 = 100.0;

/// A word during the run.
pub enum Live<'a> {
    /// The first cause that was found; after 15 s without one, what can be said so far.
    First(&'a Finding),
    /// Nothing can be recorded; the program starts all the same.
    Unrecorded(&'a RunError),
    /// No progress for this many seconds: where every rank is, and whether the program is being stopped.
    Stalled {
        seconds: f64,
        ranks: &'a [StalledRank],
        stopping: bool,
    },
    /// It goes on after so many seconds.
    Resumed(f64),
    /// The state of things, as often as `--live` asks for it.
    State(&'a Diagnosis, Progress),
}

pub struct EarlyFinding {
    folder: PathBuf,
    looked: usize,
    live: bool,
    next_state_s: f64,
    /// When the first step was seen, of a program that has shown one.
    first_step_s: Option<f64>,
}

impl EarlyFinding {
    pub fn new(folder: &Path, live: bool) -> Self {
        Self {
            folder: folder.to_owned(),
            looked: 0,
            live,
            next_state_s: 0.0,
            first_step_s: None,
        }
    }

    /// Speaks when something is due.
    pub fn look(&mut self, progress: Progress, now_s: f64, say: &mut dyn FnMut(Live)) {
        if progress.first_step_s != self.first_step_s {
            // What was said of its start is no word on its steps.
            self.first_step_s = progress.first_step_s;
            self.looked = 0;
        }
        let first_step_s = progress.first_step_s.unwrap_or(WITHOUT_STEPS_S);
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
        // A stall is reported by itself, with all ranks. What is only worth knowing is no reason to stop looking.
        let cause = findings.iter().find(|finding| {
            finding.kind == Kind::Cause
                && finding.severity >= Severity::Warning
                && finding.rule != stalled::ID
        });
        if let Some(finding) = cause {
            self.looked = LOOKS_S.len();
            say(Live::First(finding));
        } else if self.looked == SAID_BY {
            // Before its steps begin a program may start for as long as it likes.
            let word = findings
                .last()
                .filter(|verdict| progress.first_step_s.is_some() || verdict.rule != too_little_data::ID);
            word.into_iter().for_each(|verdict| say(Live::First(verdict)));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said at each of these times after the first step, of a record that lies still.
    fn said(program: &str, times_s: &[f64]) -> Vec<Option<(String, Kind)>> {
        said_of(program, Some(5.0), times_s)
    }

    fn said_of(program: &str, first_step_s: Option<f64>, times_s: &[f64]) -> Vec<Option<(String, Kind)>> {
        let faults = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../faults");
        let mut early = EarlyFinding::new(&faults.join(program).join("record"), false);
        let progress = Progress {
            first_step_s,
            ..Progress::default()
        };
        let mut look = |after_s: f64| {
            let mut said = None;
            early.look(
                progress,
                first_step_s.unwrap_or(WITHOUT_STEPS_S) + after_s,
                &mut |live| {
                    if let Live::First(finding) = live {
                        said = Some((finding.rule.clone(), finding.kind));
                    }
                },
            );
            said
        };
        times_s.iter().map(|after_s| look(*after_s)).collect()
    }

    #[test]
    fn prints_a_cause_immediately_and_once() {
        let cause = Some(("loader-without-workers".to_owned(), Kind::Cause));
        assert_eq!(
            said("in_process_images", &[7.0, 8.1, 14.9, 31.0]),
            [None, cause, None, None]
        );
    }

    #[test]
    fn a_loop_without_steps_is_looked_at_as_well() {
        let said = said_of("lines/odd_es", None, &[-1.0, 8.1, 14.9, 31.0]);
        assert!(
            said[0].is_none() && said.iter().flatten().count() == 1,
            "{said:?}"
        );
    }

    #[test]
    fn prints_something_within_15_seconds() {
        let verdict = Some(("nothing-wrong".to_owned(), Kind::Verdict));
        assert_eq!(said("data_in_memory", &[8.1, 14.9, 31.0]), [None, verdict, None]);
    }
}
