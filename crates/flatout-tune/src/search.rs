//! The search: diagnose, then try what can act on the causes found, the largest expected gain first; look again after every
//! change that was kept. At most a dozen trials. It knows nothing of how a trial is run.
//!
//! A search goes through [`Stage`]s. What it has is in three parts: the [`Trials`] so far, the [`Lessons`] they taught, and the
//! [`State`]: the start and the best.
//!
//! ```text
//! baseline ──▶ propose ──▶ try ──┐
//!                 ▲   │          │
//!                 └───┼──────────┘
//!                     ▼
//!                  shrink ──▶ confirm ──▶ found
//! ```

mod beginning;
mod choosing;
mod comparison;
mod ending;
mod lessons;
mod plans;
mod report;
#[cfg(test)]
mod tests;
mod trials;
mod verdict;

pub use report::{Found, Row, Verdict};

use crate::TuneError;
use crate::knobs::{self, Proposal};
use crate::limits::Limits;
use crate::machine::Machine;
use crate::objective::Objective;
use crate::trial::{Measurement, Plan, Rate, Settings, Trial};
use flatout_core::Result;
use flatout_diagnose::Analysis;
use flatout_record::{Record, RunData};
use lessons::Lessons;
use std::time::Duration;
use trials::Trials;

/// Less than this is not worth a trial, nor a setting.
const WORTHWHILE: f64 = 1.02;
/// A change that was refused is worth another trial once everything else got this much faster.
const AGAIN: f64 = 1.3;
/// So many trials in a row that end badly end the search.
const FAILURES: usize = 3;
/// A trial that is below this part of the best is given up.
const CUT: f64 = 0.8;
/// A noise above this asks for a second measurement of start and best at the end, and trials are kept for it.
const NOISY: f64 = 0.05;
/// How many times its batch a trial takes steps of, where the batch may change.
const LARGEST: u64 = 8;
/// Seconds of a trial's record that tell of it.
const LEAST_SEEN_S: f64 = 1.0;
/// Stacks are told each second, of the second before.
const STACKS_LATE_S: f64 = 0.5;
/// Rules on the start and the end, of which a trial has more than a run.
const OF_WHOLE_RUNS: [&str; 2] = ["slow-start", "slow-end"];
const BATCH: &str = "loader.batch_size";

#[derive(Clone, Debug)]
pub struct Options {
    pub objective: Objective,
    pub most_trials: usize,
    pub budget: Duration,
    pub plan: Plan,
    /// Scale the learning rate with the batch.
    pub scale_learning_rate: bool,
    pub limits: Limits,
    /// Settings that every trial has: a placeholder's first value.
    pub start: Settings,
}

/// Told while it goes on.
pub enum Progress<'a> {
    Begins {
        number: usize,
        changes: &'a Settings,
        predicted: Option<f64>,
    },
    Row(&'a Row),
}

struct Search<'a> {
    options: &'a Options,
    machine: &'a Machine,
    trials: Trials<'a>,
    lessons: Lessons,
}

/// What a search does next, once it knows the baseline.
enum Stage {
    Propose,
    Try(Proposal),
    Shrink,
    Confirm,
}

/// What a search has measured of value.
struct State {
    baseline: Best,
    best: Best,
}

/// The best so far.
#[derive(Clone)]
struct Best {
    settings: Settings,
    measured: Measurement,
    scores: Vec<Rate>,
    /// Its record, or the last one that was long enough to diagnose.
    data: RunData,
}

impl Best {
    fn score(&self) -> Rate {
        Rate::pooled(&self.scores).unwrap_or_default()
    }
}

/// Searches until nothing worthwhile is left to try, the trials or the time are spent, or the user has had enough.
pub fn search(
    options: &Options,
    machine: &Machine,
    trial: &mut dyn Trial,
    tell: &mut dyn FnMut(Progress),
) -> Result<Found> {
    Search::new(options, machine, trial, tell).run()
}

impl<'a> Search<'a> {
    fn new(
        options: &'a Options,
        machine: &'a Machine,
        trial: &'a mut dyn Trial,
        tell: &'a mut dyn FnMut(Progress),
    ) -> Self {
        Self {
            options,
            machine,
            trials: Trials::new(options, trial, tell),
            lessons: Lessons::default(),
        }
    }

    fn run(&mut self) -> Result<Found> {
        let Some(baseline) = self.baseline()? else {
            return Err(TuneError::Interrupted.into());
        };
        let mut state = State {
            best: baseline.clone(),
            baseline,
        };
        let mut stage = Stage::Propose;
        let start_score = loop {
            stage = match stage {
                Stage::Propose => self.next(&state.best).map_or(Stage::Shrink, Stage::Try),
                Stage::Try(proposal) => {
                    self.attempt(&proposal, &mut state)?;
                    Stage::Propose
                }
                Stage::Shrink => {
                    self.shrink(&mut state)?;
                    Stage::Confirm
                }
                Stage::Confirm => break self.confirm(&mut state)?,
            };
        };
        Ok(self.found(state, start_score))
    }

    /// The result.
    fn found(&mut self, state: State, start_score: Rate) -> Found {
        let State { baseline, mut best } = state;
        let own_workers = Analysis::new(&baseline.data)
            .train_loader()
            .and_then(|loader| loader.num_workers);
        let start = self.options.start.clone();
        if let Some(workers) = own_workers {
            // Turned away and back again: that is no change.
            best.settings.0.retain(|key, value| {
                key != "loader.num_workers" || start.get(key).is_some() || *value != workers.to_string()
            });
        }
        let score = best.score();
        let mut findings = flatout_diagnose::conclude(&seen(&best.data)).findings;
        findings.retain(|finding| !OF_WHOLE_RUNS.contains(&finding.rule.as_str()));
        Found {
            rows: std::mem::take(&mut self.trials.rows),
            changed: best.settings != start,
            mended: (baseline.settings != start).then_some(baseline.settings),
            start,
            start_score,
            settings: best.settings,
            measured: best.measured,
            score,
            findings,
            interrupted: self.trials.interrupted,
            seconds: self.trials.elapsed_s(),
        }
    }

    fn attempt(&mut self, proposal: &Proposal, state: &mut State) -> Result<()> {
        let State { baseline, best } = state;
        let settings = knobs::sensible(&best.settings, &proposal.changes, &self.options.start);
        let objective = self.options.objective;
        let energy = objective == Objective::Energy;
        let other_batch = proposal.changes.get(BATCH).is_some();
        let plan = Plan {
            beat: (!energy).then_some(best.measured.rate.mean * CUT),
            best: (!energy).then_some(best.measured.rate),
            // What comes next goes on from this step; other workers alone change nothing in it.
            sizes: if proposal.knob == knobs::LOADER {
                0
            } else {
                self.sizes(&settings)
            },
            variants: self.variants(&settings, other_batch),
            ..self.plan()
        };
        let speed = proposal.gain;
        let predicted = speed.and_then(|speed| objective.predicted(speed, &proposal.changes, &best.measured));
        let outcome = self
            .trials
            .measure(&settings, &plan, &proposal.changes, predicted)?;
        let number = self.trials.done.len();
        let (verdict, measured) = self.judge(proposal, &baseline.measured, best, outcome)?;
        let Some(verdict) = verdict else { return Ok(()) };
        let kept = matches!(verdict, Verdict::Kept { .. });
        if !kept {
            self.lessons.refuse(&proposal.changes, best);
        }
        let row = Row {
            number,
            knob: Some(proposal.knob.to_owned()),
            why: proposal.why.clone(),
            predicted,
            ..Row::new(&settings, &proposal.changes, verdict)
        };
        self.trials.row(row, measured.clone(), Some(best.score().mean));
        if let (true, Some(measured)) = (kept, measured) {
            self.take(best, settings, measured);
        }
        Ok(())
    }

    fn take(&self, best: &mut Best, settings: Settings, measured: Measurement) {
        let mut settings = settings;
        settings.0.retain(|key, _| !self.lessons.dead.contains(key));
        if let Ok(data) = load(&measured)
            && seen(&data).window.is_some()
        {
            best.data = data;
        }
        best.scores = self.options.objective.score(&measured).into_iter().collect();
        best.settings = settings;
        best.measured = measured;
    }
}

/// What a trial's record tells.
fn seen(data: &RunData) -> Analysis<'_> {
    Analysis::lasting(data, LEAST_SEEN_S)
}

/// The record of the measurement, without the steps of other sizes that came after it.
fn load(measured: &Measurement) -> Result<RunData> {
    let mut data = Record::open(&measured.record)?.load();
    if let Some(until_s) = measured.until_s {
        data.steps.retain(|tick| tick.t <= until_s);
        data.samples.retain(|sample| sample.t <= until_s);
        data.events.retain(|event| event.t <= until_s);
        data.facts.retain(|fact| fact.t <= until_s);
        data.stacks.retain(|tick| tick.t <= until_s + STACKS_LATE_S);
    }
    Ok(data)
}
