//! What a trial's outcome means: kept, refused and why, or measured again because the noise hides it.

use super::comparison::{self, Compared, compare};
use super::report::{self, Verdict};
use super::{Best, Search, WORTHWHILE};
use crate::guard::{self, Guarded};
use crate::knobs::Proposal;
use crate::trial::{Measurement, Outcome, Rate, Settings};
use flatout_core::{Message, Result, message};

impl Search<'_> {
    /// The verdict on a trial; `None` when it was interrupted.
    pub(super) fn judge(
        &mut self,
        proposal: &Proposal,
        baseline: &Measurement,
        best: &mut Best,
        outcome: Outcome,
    ) -> Result<(Option<Verdict>, Option<Measurement>)> {
        let measured = match outcome {
            Outcome::Measured(measured) => *measured,
            Outcome::Interrupted => return Ok((None, None)),
            Outcome::OutOfMemory { message, .. } => {
                return Ok((Some(Verdict::OutOfMemory { message }), None));
            }
            other => {
                self.lessons.failures += 1;
                let why = report::words(&other);
                return Ok((Some(eager(proposal, Verdict::Refused { why })), None));
            }
        };
        self.lessons.failures = 0;
        // Others were in force before: this change is in their way, they are not dead.
        let turned = measured
            .not_in_force
            .iter()
            .filter(|(key, _)| proposal.changes.get(key).is_some());
        self.lessons.dead.extend(turned.map(|(key, _)| key.clone()));
        if proposal
            .changes
            .0
            .keys()
            .all(|key| self.lessons.dead.contains(key))
        {
            let why = measured
                .not_in_force
                .first()
                .map(|(_, why)| why.clone())
                .unwrap_or_default();
            let verdict = eager(proposal, Verdict::Refused { why });
            return Ok((Some(verdict), Some(measured)));
        }
        let Some(score) = self.options.objective.score(&measured) else {
            let why = message!(en: "its energy use is unknown", zh: "其能耗未知");
            return Ok((Some(Verdict::Refused { why }), Some(measured)));
        };
        let verdict = if proposal.changes_numbers {
            self.guarded(baseline, &measured)
        } else {
            None
        };
        let batch = proposal
            .changes
            .get("loader.batch_size")
            .and_then(|value| value.parse::<u64>().ok());
        if let (true, Some(batch)) = (verdict.is_some(), batch) {
            self.lessons.hurt(batch);
        }
        let verdict = match verdict {
            Some(hurts) => hurts,
            None => match self.faster(best, score)? {
                // Not to be told apart: then what asks less of the machine is taken.
                Verdict::Refused { .. }
                    if fewer_workers(proposal, best) && score.mean >= best.score().mean =>
                {
                    Verdict::Kept {
                        gain: score.mean / best.score().mean,
                    }
                }
                verdict => verdict,
            },
        };
        Ok((Some(eager(proposal, verdict)), Some(measured)))
    }

    fn guarded(&self, baseline: &Measurement, measured: &Measurement) -> Option<Verdict> {
        let updates = measured
            .samples_a_step()
            .zip(baseline.samples_a_step())
            .map_or(1.0, |(now, then)| now / then);
        match guard::guard(baseline, measured, updates) {
            Guarded::Hurts { why } => Some(Verdict::Refused { why }),
            _ => None,
        }
    }

    /// Whether a score is better than the best; within the noise the best is measured again.
    fn faster(&mut self, best: &mut Best, score: Rate) -> Result<Verdict> {
        let refused = |score: Rate, best: Rate| Verdict::Refused {
            why: comparison::slower(score, best),
        };
        match compare(score, best.score(), WORTHWHILE) {
            Compared::Better => {
                return Ok(Verdict::Kept {
                    gain: score.mean / best.score().mean,
                });
            }
            Compared::Worse => return Ok(refused(score, best.score())),
            Compared::Unclear if self.trials.left() == 0 || score.mean <= best.score().mean => {
                return Ok(refused(score, best.score()));
            }
            Compared::Unclear => {}
        }
        let again = self.trials.repeat(&best.settings.clone())?;
        best.scores.extend(again);
        Ok(match compare(score, best.score(), WORTHWHILE) {
            Compared::Better => Verdict::Kept {
                gain: score.mean / best.score().mean,
            },
            _ => refused(score, best.score()),
        })
    }
}

/// Whether it is the best so far, but for fewer workers.
fn fewer_workers(proposal: &Proposal, best: &Best) -> bool {
    const KEY: &str = "loader.num_workers";
    let count = |settings: &Settings| settings.get(KEY).and_then(|value| value.parse::<u64>().ok());
    let only = proposal.changes.0.len() == 1;
    let fewer = count(&proposal.changes).zip(count(&best.settings));
    only && fewer.is_some_and(|(then, now)| then < now)
}

/// Compiling that failed or gained nothing: the model runs as it did, and that is said.
fn eager(proposal: &Proposal, verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Refused { why } if proposal.changes.get("compile").is_some() => Verdict::Refused {
            why: Message {
                en: format!("{}; the model is left as it was", why.en),
                zh: format!("{}；模型保持原样", why.zh),
            },
        },
        other => other,
    }
}
