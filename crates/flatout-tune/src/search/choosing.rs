//! What to try next: the largest expected gain among what the knobs propose and was not refused.

use super::{BATCH, Best, NOISY, Search, WORTHWHILE, seen};
use crate::knobs::{self, Proposal, Situation};
use crate::trial::Settings;

const SCALE: &str = "optimizer.lr_scale";

impl Search<'_> {
    /// What to try next; `None` when it is over.
    pub(super) fn next(&self, best: &Best) -> Option<Proposal> {
        let kept = self.kept_for_the_end(best);
        if self.trials.interrupted || self.trials.left() <= kept || self.lessons.are_bad() {
            return None;
        }
        let analysis = seen(&best.data);
        let findings = flatout_diagnose::conclude(&analysis).findings;
        let situation = Situation {
            analysis: &analysis,
            findings: &findings,
            settings: &best.settings,
            best: &best.measured,
            trials: &self.trials.done,
            limits: &self.options.limits,
            machine: self.machine,
            hurtful_batch: self.lessons.hurtful_batch,
        };
        knobs::proposals(&situation)
            .into_iter()
            .filter(|proposal| proposal.worth >= WORTHWHILE)
            .map(|proposal| Proposal {
                changes: self.scaled(proposal.changes, best),
                ..proposal
            })
            .find(|proposal| self.lessons.allow(&proposal.changes, best))
    }

    /// Trials that the last comparison needs, where the machine is not quiet.
    fn kept_for_the_end(&self, best: &Best) -> usize {
        if best.score().noise() > NOISY {
            (self.options.most_trials / 4).min(2)
        } else {
            0
        }
    }

    /// With the learning rate scaled along with the batch, where that was asked for.
    pub(super) fn scaled(&self, mut changes: Settings, best: &Best) -> Settings {
        let number =
            |settings: &Settings, key: &str| settings.get(key).and_then(|value| value.parse::<f64>().ok());
        let batch = number(&changes, BATCH).filter(|_| self.options.scale_learning_rate);
        let present = number(&best.settings, BATCH).or_else(|| {
            let analysis = seen(&best.data);
            let told = analysis.train_loader().and_then(|loader| loader.batch_size);
            told.map(|batch| batch as f64).or(best.measured.samples_a_step())
        });
        if let Some((batch, present)) = batch.zip(present).filter(|(_, present)| *present > 0.0) {
            let scale = number(&best.settings, SCALE).unwrap_or(1.0) * batch / present;
            changes.set(SCALE, (scale * 1e4).round() / 1e4);
        }
        changes
    }
}
