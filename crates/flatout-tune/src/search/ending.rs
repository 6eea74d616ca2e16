//! The end of a search: the smallest batch that is as good, and the proof that the result is not slower than the start.

use super::judge::{self, Compared};
use super::report::{self, Row, Verdict};
use super::{BATCH, Best, FAILURES, NOISY, Search};
use crate::knobs::{self, one};
use crate::trial::{Measurement, Outcome, Plan, Rate, Settings};
use flatout_core::Result;

impl Search<'_> {
    /// The smallest batch that is as good: one that was measured already, else half of the best one.
    pub(super) fn shrink(&mut self, baseline: &Measurement, best: &mut Best) -> Result<()> {
        let Some(batch) = best
            .settings
            .get(BATCH)
            .and_then(|value| value.parse::<u64>().ok())
        else {
            return Ok(());
        };
        let first = baseline
            .samples
            .map_or(batch, |samples| samples / baseline.steps.max(1));
        if self.interrupted || self.left() == 0 || self.failures >= FAILURES || batch / 2 <= first {
            return Ok(());
        }
        let half = self.scaled(one(BATCH, batch / 2), best);
        let settings = best.settings.with(&half);
        if self.done.iter().any(|done| done.settings == settings)
            || !self.options.limits.within(BATCH, batch / 2)
        {
            return Ok(());
        }
        let plan = Plan {
            beat: None,
            ..self.options.plan.clone()
        };
        let outcome = self.measure(&settings, &plan, &half, None)?;
        let Outcome::Measured(measured) = outcome else {
            self.unmeasured(&settings, &half, &outcome);
            return Ok(());
        };
        let Some(score) = self.options.objective.score(&measured) else {
            return Ok(());
        };
        let good = score.mean >= best.score().mean * knobs::AS_GOOD;
        let verdict = if good {
            Verdict::Smaller
        } else {
            Verdict::Refused {
                why: judge::slower(score, best.score()),
            }
        };
        let row = Row::new(&settings, &half, verdict);
        self.row(row, Some(*measured.clone()), Some(best.score().mean));
        if good {
            self.take(best, settings, *measured);
        }
        Ok(())
    }

    /// Never slower than the start: when the gain is not plainly above the noise, both are measured again, and in doubt the start
    /// stays.
    pub(super) fn confirm(&mut self, baseline: &Best, best: &mut Best) -> Result<Rate> {
        let start = &baseline.settings;
        if best.settings == *start {
            return Ok(best.score());
        }
        let known = Rate::pooled(&self.scores_of(start)).unwrap_or_default();
        let clear = faster(best.score(), known) && best.score().noise().max(known.noise()) <= NOISY;
        if !clear {
            self.repeat(start)?;
            let again = self.repeat(&best.settings.clone())?;
            best.scores.extend(again);
        }
        let scores = self.scores_of(start);
        let pooled = Rate::pooled(&scores).unwrap_or_default();
        if !clear && !faster(best.score(), pooled) {
            *best = Best {
                scores,
                ..baseline.clone()
            };
        }
        Ok(pooled)
    }

    /// Of every time that these settings were measured.
    fn scores_of(&self, settings: &Settings) -> Vec<Rate> {
        let same = self.done.iter().filter(|done| done.settings == *settings);
        let measured = same.filter_map(|done| done.outcome.measured());
        measured
            .filter_map(|measured| self.options.objective.score(measured))
            .collect()
    }

    /// Measures settings once more; `None` when there is no trial left for it, or it measured nothing.
    pub(super) fn repeat(&mut self, settings: &Settings) -> Result<Option<Rate>> {
        if self.interrupted || self.left() == 0 {
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
    fn unmeasured(&mut self, settings: &Settings, changes: &Settings, outcome: &Outcome) {
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

fn faster(score: Rate, start: Rate) -> bool {
    judge::compare(score, start, 1.0) == Compared::Better
}
