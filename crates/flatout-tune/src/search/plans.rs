//! What trials are asked to do beside running the program.

use super::{BATCH, LARGEST, Options, Search};
use crate::knobs;
use crate::trial::{Plan, Settings};

/// The first run is longer: the diagnosis needs a steady window.
const BASELINE_S: f64 = 5.0;

impl Search<'_> {
    pub(super) fn first_plan(&self) -> Plan {
        let plan = self.options.plan.clone();
        if self.options.most_trials == 1 {
            // Nothing follows: only its rate was asked for.
            return plan;
        }
        Plan {
            seconds: plan.seconds.max(BASELINE_S),
            settle_s: plan.settle_s.max(2.0 * BASELINE_S),
            sizes: self.sizes(&self.options.start),
            variants: self.variants(&self.options.start, true),
            ..self.plan()
        }
    }

    /// The plan of trials that others follow: they ask other workers for batches, as the search would have them.
    pub(super) fn plan(&self) -> Plan {
        let Options { limits, start, .. } = &self.options;
        let alive = !self.lessons.dead.iter().any(|key| key == knobs::FREEZE);
        Plan {
            workers: knobs::feeding(limits, self.machine),
            freeze: alive && limits.allows(knobs::FREEZE) && start.get(knobs::FREEZE) != Some("off"),
            ..self.options.plan.clone()
        }
    }

    /// How many times its batch a trial takes steps of: as far as it may grow.
    pub(super) fn sizes(&self, settings: &Settings) -> u64 {
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
    pub(super) fn variants(&self, settings: &Settings, asked: bool) -> Vec<String> {
        let all = knobs::variants(&self.options.limits, self.machine, settings);
        let live = |wish: &String| {
            !self
                .lessons
                .dead
                .iter()
                .any(|key| wish.split('=').next() == Some(key))
        };
        all.into_iter().filter(|wish| asked && live(wish)).collect()
    }
}
