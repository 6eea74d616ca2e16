//! How batches are made: whole batches instead of one call per sample. The probe proves for each data set that they are equal, and says so
//! where they are not; then the trial counts as not applied. Whole batches need no workers, so both are proposed together.

use super::cost::Cost;
use super::{Knob, Proposal, Situation};
use crate::trial::Settings;
use flatout_core::message;

pub const KNOB: Knob = Knob {
    name: "fetching",
    keys: &[
        BATCHED,
        "loader.resident",
        "loader.threads",
        "padding.trim",
        "step.graph",
    ],
    propose,
    variants: |_| Vec::new(),
};

const BATCHED: &str = "loader.batched";
const WORKERS: &str = "loader.num_workers";
/// Below this wait there is nothing to gain that could be measured.
const WAIT_SHARE: f64 = 0.03;
/// The part of the waiting that goes with whole batches: of a TensorDataset with 20 columns, 98%.
const SAVED: f64 = 0.9;
/// Data sets whose items are plain indexing, whatever the program does with them.
const PLAIN: [&str; 2] = ["TensorDataset", "Subset"];

fn propose(situation: &Situation) -> Vec<Proposal> {
    let dataset = situation
        .analysis
        .facts
        .text("loader.dataset")
        .unwrap_or_default();
    let known = PLAIN.contains(&dataset.as_str()) || situation.limits.asked(BATCHED);
    if !known || !situation.allows(BATCHED) || situation.settings.get(BATCHED).is_some() {
        return Vec::new();
    }
    let share = Cost::of(situation).map_or(0.0, |cost| cost.wait_share());
    if share < WAIT_SHARE {
        return Vec::new();
    }
    let mut changes = Settings::default();
    changes.set(BATCHED, "on");
    if situation.workers() > 0 && situation.allows(WORKERS) {
        changes.set(WORKERS, 0);
    }
    let gain = 1.0 / (1.0 - share * SAVED);
    vec![Proposal {
        knob: KNOB.name,
        changes,
        gain: Some(gain),
        worth: gain,
        why: message!(en: "the dataset can be indexed by whole batches", zh: "数据集可以按整个 batch 取值"),
        changes_numbers: false,
    }]
}
