//! What trials taught: settings that do nothing here, changes that were refused, and whether to go on at all.

use super::{AGAIN, BATCH, Best, FAILURES};
use crate::trial::Settings;

#[derive(Default)]
pub(super) struct Lessons {
    /// Settings that the program does not take.
    pub dead: Vec<String>,
    /// Changes that were refused.
    refused: Vec<Refused>,
    /// Trials in a row that ended badly.
    pub failures: usize,
    /// The smallest batch that hurt the loss.
    pub hurtful_batch: Option<u64>,
}

/// A change that was refused, the best score then, and the batch: what feeds the steps depends on that.
struct Refused {
    changes: Settings,
    score: f64,
    batch: Option<String>,
}

impl Lessons {
    /// Whether too many trials in a row ended badly.
    pub(super) fn are_bad(&self) -> bool {
        self.failures >= FAILURES
    }

    pub(super) fn refuse(&mut self, changes: &Settings, best: &Best) {
        self.refused.push(Refused {
            changes: changes.clone(),
            score: best.score().mean,
            batch: best.settings.get(BATCH).map(str::to_owned),
        });
    }

    /// A batch hurt the loss.
    pub(super) fn hurt(&mut self, batch: u64) {
        self.hurtful_batch = Some(self.hurtful_batch.map_or(batch, |known| known.min(batch)));
    }

    /// Neither dead nor refused a moment ago; how the steps are fed may be looked at again with another batch.
    pub(super) fn allow(&self, changes: &Settings, best: &Best) -> bool {
        let dead = changes.0.keys().any(|key| self.dead.contains(key));
        let feeds = changes.0.keys().any(|key| key.starts_with("loader."));
        let score = best.score().mean;
        let refused = self.refused.iter().any(|refused| {
            let same_batch = refused.batch.as_deref() == best.settings.get(BATCH);
            refused.changes == *changes && score < refused.score * AGAIN && (same_batch || !feeds)
        });
        !dead && !refused
    }
}
