//! The search: diagnose, then try what can act on the causes found, the largest expected gain first; look again after every
//! change that was kept. At most a dozen trials. It knows nothing of how a trial is run.

mod beginning;
mod choosing;
mod ending;
mod judge;
mod judging;
mod report;
#[cfg(test)]
mod tests;

pub use report::{Found, Row, Verdict};

use crate::TuneError;
use crate::knobs::{self, Done, Proposal};
use crate::limits::Limits;
use crate::machine::Machine;
use crate::objective::Objective;
use crate::trial::{Measurement, Outcome, Plan, Rate, Settings, Trial};
use flatout_core::Result;
use flatout_diagnose::Analysis;
use flatout_record::{Record, RunData};
use std::time::{Duration, Instant};

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
    trial: &'a mut dyn Trial,
    tell: &'a mut dyn FnMut(Progress),
    began: Instant,
    rows: Vec<Row>,
    done: Vec<Done>,
    /// Settings that the program does not take.
    dead: Vec<String>,
    /// Changes that were refused.
    refused: Vec<Refused>,
    failures: usize,
    /// The smallest batch that hurt the loss.
    hurtful_batch: Option<u64>,
    interrupted: bool,
}

/// A change that was refused, the best score then, and the batch: what feeds the steps depends on that.
struct Refused {
    changes: Settings,
    score: f64,
    batch: Option<String>,
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
            trial,
            tell,
            began: Instant::now(),
            rows: Vec::new(),
            done: Vec::new(),
            dead: Vec::new(),
            refused: Vec::new(),
            failures: 0,
            hurtful_batch: None,
            interrupted: false,
        }
    }

    fn run(&mut self) -> Result<Found> {
        let Some(first) = self.baseline()? else {
            return Err(TuneError::Interrupted.into());
        };
        let baseline = first.clone();
        let own_workers = Analysis::new(&first.data)
            .train_loader()
            .and_then(|loader| loader.num_workers);
        let mut best = first;
        while let Some(proposal) = self.next(&best, self.kept_for_the_end(&best)) {
            self.attempt(&proposal, &baseline.measured, &mut best)?;
        }
        self.shrink(&baseline.measured, &mut best)?;
        let start_score = self.confirm(&baseline, &mut best)?;
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
        Ok(Found {
            rows: std::mem::take(&mut self.rows),
            changed: best.settings != start,
            mended: (baseline.settings != start).then_some(baseline.settings),
            start,
            start_score,
            settings: best.settings,
            measured: best.measured,
            score,
            findings,
            interrupted: self.interrupted,
            seconds: self.began.elapsed().as_secs_f64(),
        })
    }

    fn attempt(&mut self, proposal: &Proposal, baseline: &Measurement, best: &mut Best) -> Result<()> {
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
        let outcome = self.measure(&settings, &plan, &proposal.changes, predicted)?;
        let number = self.done.len();
        let (verdict, measured) = self.judge(proposal, baseline, best, outcome)?;
        let Some(verdict) = verdict else { return Ok(()) };
        let kept = matches!(verdict, Verdict::Kept { .. });
        if !kept {
            self.refused.push(Refused {
                changes: proposal.changes.clone(),
                score: best.score().mean,
                batch: best.settings.get(BATCH).map(str::to_owned),
            });
        }
        let row = Row {
            number,
            knob: Some(proposal.knob.to_owned()),
            why: proposal.why.clone(),
            predicted,
            ..Row::new(&settings, &proposal.changes, verdict)
        };
        self.row(row, measured.clone(), Some(best.score().mean));
        if let (true, Some(measured)) = (kept, measured) {
            self.take(best, settings, measured);
        }
        Ok(())
    }

    /// The plan of trials that others follow: they ask other workers for batches, as the search would have them.
    fn plan(&self) -> Plan {
        let Options { limits, start, .. } = &self.options;
        let alive = !self.dead.iter().any(|key| key == knobs::FREEZE);
        Plan {
            workers: knobs::feeding(limits, self.machine),
            freeze: alive && limits.allows(knobs::FREEZE) && start.get(knobs::FREEZE) != Some("off"),
            ..self.options.plan.clone()
        }
    }

    /// How many times its batch a trial takes steps of: as far as it may grow.
    fn sizes(&self, settings: &Settings) -> u64 {
        let limits = &self.options.limits;
        let batch: Option<u64> = settings.get(BATCH).and_then(|batch| batch.parse().ok());
        let within = limits.highest(BATCH).zip(batch);
        let most = within.map_or(LARGEST, |(highest, batch)| highest / batch.max(1));
        if limits.allows(BATCH) {
            most.clamp(1, LARGEST)
        } else {
            1
        }
    }

    /// What a trial may try on some of its steps; nothing where it is not asked to.
    fn variants(&self, settings: &Settings, asked: bool) -> Vec<String> {
        let all = knobs::variants(&self.options.limits, self.machine, settings);
        let live = |wish: &String| !self.dead.iter().any(|key| wish.split('=').next() == Some(key));
        all.into_iter().filter(|wish| asked && live(wish)).collect()
    }

    fn take(&self, best: &mut Best, settings: Settings, measured: Measurement) {
        let mut settings = settings;
        settings.0.retain(|key, _| !self.dead.contains(key));
        if let Ok(data) = load(&measured)
            && seen(&data).window.is_some()
        {
            best.data = data;
        }
        best.scores = self.options.objective.score(&measured).into_iter().collect();
        best.settings = settings;
        best.measured = measured;
    }

    fn left(&self) -> usize {
        if self.began.elapsed() >= self.options.budget {
            return 0;
        }
        self.options.most_trials.saturating_sub(self.done.len())
    }

    fn measure(
        &mut self,
        settings: &Settings,
        plan: &Plan,
        changes: &Settings,
        predicted: Option<f64>,
    ) -> Result<Outcome> {
        (self.tell)(Progress::Begins {
            number: self.done.len() + 1,
            changes,
            predicted,
        });
        let outcome = self.trial.run(settings, plan)?;
        self.interrupted |= outcome == Outcome::Interrupted;
        if outcome != Outcome::Interrupted {
            self.done.push(Done {
                settings: settings.clone(),
                outcome: outcome.clone(),
            });
        }
        Ok(outcome)
    }

    /// Adds a row, with what was measured held against the score of the best then.
    fn row(&mut self, mut row: Row, measured: Option<Measurement>, against: Option<f64>) {
        if row.number == 0 {
            row.number = self.done.len();
        }
        row.score = measured
            .as_ref()
            .and_then(|measured| self.options.objective.score(measured));
        row.gain = row
            .score
            .zip(against)
            .map(|(score, against)| score.mean / against);
        row.measured = measured;
        (self.tell)(Progress::Row(&row));
        self.rows.push(row);
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
