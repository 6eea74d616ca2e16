//! The end of a search: the smallest batch that is as good, and the proof that the result is not slower than the start.

use super::comparison::{self, Compared};
use super::report::{Row, Verdict};
use super::{BATCH, Best, NOISY, Search, State};
use crate::knobs::{self, one};
use crate::trial::{Outcome, Plan, Rate};
use flatout_core::Result;

impl Search<'_> {
    /// The smallest batch that is as good: one that was measured already, else half of the best one.
    pub(super) fn shrink(&mut self, state: &mut State) -> Result<()> {
        let (baseline, best) = (&state.baseline.measured, &mut state.best);
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
        if self.trials.are_over() || self.lessons.are_bad() || batch / 2 <= first {
            return Ok(());
        }
        let half = self.scaled(one(BATCH, batch / 2), best);
        let settings = best.settings.with(&half);
        if self.trials.done.iter().any(|done| done.settings == settings)
            || !self.options.limits.within(BATCH, batch / 2)
        {
            return Ok(());
        }
        let plan = Plan {
            beat: None,
            ..self.options.plan.clone()
        };
        let outcome = self.trials.measure(&settings, &plan, &half, None)?;
        let Outcome::Measured(measured) = outcome else {
            self.trials.unmeasured(&settings, &half, &outcome);
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
                why: comparison::slower(score, best.score()),
            }
        };
        let row = Row::new(&settings, &half, verdict);
        self.trials
            .row(row, Some(*measured.clone()), Some(best.score().mean));
        if good {
            self.take(best, settings, *measured);
        }
        Ok(())
    }

    /// Never slower than the start: when the gain is not plainly above the noise, both are measured again, and in doubt the start
    /// stays.
    pub(super) fn confirm(&mut self, state: &mut State) -> Result<Rate> {
        let State { baseline, best } = state;
        let start = &baseline.settings;
        if best.settings == *start {
            return Ok(best.score());
        }
        let known = Rate::pooled(&self.trials.scores_of(start)).unwrap_or_default();
        let clear = faster(best.score(), known) && best.score().noise().max(known.noise()) <= NOISY;
        if !clear {
            self.trials.repeat(start)?;
            let again = self.trials.repeat(&best.settings.clone())?;
            best.scores.extend(again);
        }
        let scores = self.trials.scores_of(start);
        let pooled = Rate::pooled(&scores).unwrap_or_default();
        if !clear && !faster(best.score(), pooled) {
            *best = Best {
                scores,
                ..baseline.clone()
            };
        }
        Ok(pooled)
    }
}

fn faster(score: Rate, start: Rate) -> bool {
    comparison::compare(score, start, 1.0) == Compared::Better
}
