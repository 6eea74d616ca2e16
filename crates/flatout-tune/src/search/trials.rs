//! The trials so far: runs them, tells of them, and knows how many are left.

use super::report::{self, Row, Verdict};
use super::{Options, Progress};
use crate::knobs::Done;
use crate::trial::{Measurement, Outcome, Plan, Rate, Settings, Trial};
use flatout_core::Result;
use std::time::Instant;

pub(super) struct Trials<'a> {
    options: &'a Options,
    trial: &'a mut dyn Trial,
    tell: &'a mut dyn FnMut(Progress),
    began: Instant,
    pub rows: Vec<Row>,
    pub done: Vec<Done>,
    /// The user ended one.
    pub interrupted: bool,
}

impl<'a> Trials<'a> {
    pub(super) fn new(
        options: &'a Options,
        trial: &'a mut dyn Trial,
        tell: &'a mut dyn FnMut(Progress),
    ) -> Self {
        Self {
            options,
            trial,
            tell,
            began: Instant::now(),
            rows: Vec::new(),
            done: Vec::new(),
            interrupted: false,
        }
    }

    pub(super) fn elapsed_s(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Whether none may follow.
    pub(super) fn are_over(&self) -> bool {
        self.interrupted || self.left() == 0
    }

    pub(super) fn left(&self) -> usize {
        if self.began.elapsed() >= self.options.budget {
            return 0;
        }
        self.options.most_trials.saturating_sub(self.done.len())
    }

    pub(super) fn measure(
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
    pub(super) fn row(&mut self, mut row: Row, measured: Option<Measurement>, against: Option<f64>) {
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

    /// Of every time that these settings were measured.
    pub(super) fn scores_of(&self, settings: &Settings) -> Vec<Rate> {
        let same = self.done.iter().filter(|done| done.settings == *settings);
        let measured = same.filter_map(|done| done.outcome.measured());
        measured
            .filter_map(|measured| self.options.objective.score(measured))
            .collect()
    }

    /// Measures settings once more; `None` when there is no trial left for it, or it measured nothing.
    pub(super) fn repeat(&mut self, settings: &Settings) -> Result<Option<Rate>> {
        if self.are_over() {
            return Ok(None);
        }
        let plan = self.options.plan.clone();
        let outcome = self.measure(settings, &plan, &Settings::default(), None)?;
        let Outcome::Measured(again) = outcome else {
            self.unmeasured(settings, settings, &outcome);
            return Ok(None);
        };
        let score = self.options.objective.score(&again);
        self.row(
            Row::new(settings, settings, Verdict::Repeated),
            Some(*again),
            None,
        );
        Ok(score)
    }

    /// The row of a trial that measured nothing; none where the user ended it.
    pub(super) fn unmeasured(&mut self, settings: &Settings, changes: &Settings, outcome: &Outcome) {
        let verdict = match outcome {
            Outcome::Interrupted => return,
            Outcome::OutOfMemory { message, .. } => Verdict::OutOfMemory {
                message: message.clone(),
            },
            other => Verdict::Refused {
                why: report::words(other),
            },
        };
        self.row(Row::new(settings, changes, verdict), None, None);
    }
}
