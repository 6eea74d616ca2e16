//! The knobs. A new one is a file here with `KNOB`, and one line in [`KNOBS`].
//!
//! A knob looks at what the best trial so far measured and proposes what to try next; it says nothing when it cannot act on
//! what it sees. Knobs that interact are one knob: the loader's settings are proposed together.

mod batch_size;
mod compile;
mod cost;
mod fetching;
mod loader;
mod precision;
mod switches;
mod threads;

pub use batch_size::AS_GOOD;
pub use loader::{FREEZE, feeding, sensible};

/// The knob that turns only what feeds the steps.
pub const LOADER: &str = loader::KNOB.name;

use crate::limits::Limits;
use crate::machine::Machine;
use crate::trial::{Measurement, Outcome, Settings};
use flatout_core::{Finding, Kind, Message};
use flatout_diagnose::Analysis;
use flatout_diagnose::analysis::Device;

pub struct Knob {
    pub name: &'static str,
    /// The settings it turns.
    pub keys: &'static [&'static str],
    pub propose: fn(&Situation) -> Vec<Proposal>,
    /// Values whose worth to a step some steps at the end of a trial tell, as `--apply` wants them.
    pub variants: fn(&Machine) -> Vec<(&'static str, String)>,
}

/// In the order in which their values are tried on some steps: threads fit every program, others may end it.
pub const KNOBS: &[Knob] = &[
    loader::KNOB,
    fetching::KNOB,
    batch_size::KNOB,
    threads::KNOB,
    switches::KNOB,
    precision::KNOB,
    compile::KNOB,
];

/// Something to try.
#[derive(Clone, Debug)]
pub struct Proposal {
    pub knob: &'static str,
    /// Laid over the settings of the best trial.
    pub changes: Settings,
    /// The factor on throughput to expect. `None` where nothing tells: then it is not predicted.
    pub gain: Option<f64>,
    /// What decides whether and when it is tried: the gain, or where that is not known or not sure, what a look is worth.
    pub worth: f64,
    pub why: Message,
    /// The numbers that come out are not the same: the guard looks at the loss.
    pub changes_numbers: bool,
}

/// A trial that was done.
#[derive(Clone, Debug)]
pub struct Done {
    pub settings: Settings,
    pub outcome: Outcome,
}

/// Settings that change how a step's products are computed, and with that what all else is worth to it.
pub(crate) const PRODUCTS: [&str; 3] = ["amp", "tf32", "compile"];

/// What knobs look at: the best trial so far, and all others.
pub struct Situation<'a> {
    pub analysis: &'a Analysis<'a>,
    pub findings: &'a [Finding],
    pub settings: &'a Settings,
    pub best: &'a Measurement,
    pub trials: &'a [Done],
    pub limits: &'a Limits,
    pub machine: &'a Machine,
    /// A batch of this size hurt the loss.
    pub hurtful_batch: Option<u64>,
}

impl Situation<'_> {
    pub fn on_gpu(&self) -> bool {
        self.analysis.device() == Device::Cuda
    }

    pub fn allows(&self, key: &str) -> bool {
        self.limits.allows(key)
    }

    /// What trials with such settings measured, the latest first.
    pub fn measured_with(&self, such: impl Fn(&Settings) -> bool) -> impl Iterator<Item = &Measurement> {
        let latest = self.trials.iter().rev().filter(move |done| such(&done.settings));
        latest.filter_map(|done| done.outcome.measured())
    }

    pub fn tried(&self, settings: &Settings) -> bool {
        self.trials.iter().any(|done| done.settings == *settings)
    }

    /// The middle of the gain that a finding expects, for the causes that one of these settings mends.
    pub fn expected(&self, keys: &[&str]) -> Option<f64> {
        let causes = self.findings.iter().filter(|finding| finding.kind == Kind::Cause);
        let acting = causes.filter(|finding| {
            finding.fixes.iter().any(|fix| matches!(fix, flatout_core::Fix::Setting { setting, .. } if keys.contains(&setting.as_str())))
        });
        acting
            .filter_map(|finding| finding.gain)
            .map(|gain| (gain.low + gain.high) / 2.0)
            .reduce(f64::max)
    }

    /// What a step's own part takes with this value, as a part of what it takes now: by the steps that a trial took with it, the latest
    /// first, of those whose products are the same. In bf16, say, TF32 is worth something else.
    pub fn own_ratio(&self, key: &str, value: &str) -> Option<f64> {
        let products = |settings: &Settings| PRODUCTS.map(|key| settings.get(key).map(str::to_owned));
        let now = products(self.settings);
        let measured = self.measured_with(move |settings| products(settings) == now);
        let setting = format!("{key}={value}");
        measured
            .flat_map(|measured| &measured.variants)
            .find(|variant| variant.setting == setting)
            .map(|variant| variant.own_ratio)
            .filter(|ratio| ratio.is_finite() && *ratio > 0.0)
    }

    /// A setting that the search has turned already, as a number.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.settings.get(key).and_then(|value| value.parse().ok())
    }

    /// Workers of the loader, now.
    pub fn workers(&self) -> u64 {
        let own = self.analysis.train_loader().and_then(|loader| loader.num_workers);
        self.number("loader.num_workers").or(own).unwrap_or(0)
    }

    /// Samples in a batch of the loader, now.
    pub fn batch(&self) -> Option<u64> {
        let own = self.analysis.train_loader().and_then(|loader| loader.batch_size);
        let set = self.number("loader.batch_size");
        let counted = self.best.samples.map(|samples| samples / self.best.steps.max(1));
        set.or(own).or(counted).filter(|batch| *batch > 0)
    }

    /// Samples in the training data, where the loader knows.
    pub fn data_length(&self) -> Option<u64> {
        self.analysis.train_loader().and_then(|loader| loader.length)
    }
}

/// A setting with one value, as [`Settings`].
pub fn one(key: &str, value: impl ToString) -> Settings {
    let mut settings = Settings::default();
    settings.set(key, value);
    settings
}

/// All proposals that were not tried yet, the largest gain first.
pub fn proposals(situation: &Situation) -> Vec<Proposal> {
    let start = situation
        .trials
        .first()
        .map_or_else(Settings::default, |done| done.settings.clone());
    let mut all: Vec<Proposal> = KNOBS
        .iter()
        .filter(|knob| knob.keys.iter().any(|key| situation.allows(key)))
        .flat_map(|knob| (knob.propose)(situation))
        .filter(|proposal| !situation.tried(&sensible(situation.settings, &proposal.changes, &start)))
        .filter(|proposal| proposal.worth.is_finite())
        .collect();
    all.sort_by(|a, b| b.worth.total_cmp(&a.worth));
    all
}

/// What a trial with these settings may try on some of its steps, in the order of the knobs.
pub fn variants(limits: &Limits, machine: &Machine, settings: &Settings) -> Vec<String> {
    KNOBS
        .iter()
        .flat_map(|knob| (knob.variants)(machine))
        .filter(|(key, _)| limits.allows(key) && settings.get(key).is_none())
        .map(|(key, value)| format!("{key}={value}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_vocabulary::settings;

    #[test]
    fn every_key_has_a_name_for_people() {
        for knob in KNOBS {
            assert!(!knob.keys.is_empty());
            for key in knob.keys {
                assert!(settings::find(key).is_some(), "{key} of {}", knob.name);
            }
        }
    }
}
