//! A starting configuration for a machine, before anything has been measured. Every value with its reason; where a rule of
//! thumb and the machine disagree, the machine wins and both are named. `flatout tune` measures; this only begins well.

mod given;
mod render;
mod rules;

pub use given::Given;
pub use render::{Form, render};

use crate::machine::Machine;
use flatout_core::Message;
use flatout_vocabulary::settings;
use serde::Serialize;

/// What is trained, as far as it is told.
#[derive(Clone, Debug, Default)]
pub struct Question {
    pub model: Option<Model>,
    /// Samples in the data set.
    pub samples: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    Recurrent,
    Dense,
    Convolution,
    Transformer,
}

impl Model {
    /// From what people call their models.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let any = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
        match () {
            () if any(&["lstm", "gru", "rnn"]) => Some(Self::Recurrent),
            () if any(&["cnn", "conv", "resnet", "unet", "hrnet", "vgg", "efficientnet"]) => {
                Some(Self::Convolution)
            }
            () if any(&["transformer", "bert", "gpt", "vit", "llama", "attention"]) => {
                Some(Self::Transformer)
            }
            () if any(&["mlp", "dense", "linear", "tabular"]) => Some(Self::Dense),
            () => None,
        }
    }
}

/// One value and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// The setting's key (see [`settings`]).
    pub key: &'static str,
    pub value: String,
    pub reason: Message,
}

impl Advice {
    /// What a Python program calls the setting.
    pub fn name(&self) -> &'static str {
        settings::find(self.key).map_or(self.key, |setting| setting.name)
    }
}

/// All values, in the order of their weight.
pub fn advise(machine: &Machine, question: &Question) -> Vec<Advice> {
    rules::all(machine, question)
}

/// Only what differs from what the user has.
pub fn differences(advice: Vec<Advice>, given: &Given) -> Vec<(Advice, Option<String>)> {
    advice
        .into_iter()
        .filter_map(|advice| {
            let has = given.value(advice.key);
            let same = has
                .as_deref()
                .is_some_and(|has| means_the_same(advice.key, has, &advice.value));
            (!same).then_some((advice, has))
        })
        .collect()
}

/// `amp: true` is what `amp: bf16` says in many programs; `check` tells whether the code reads it so.
fn means_the_same(key: &str, has: &str, wanted: &str) -> bool {
    let (has, wanted) = (settings::normal(has), settings::normal(wanted));
    has == wanted
        || (key == "amp" && has == "on" && wanted != "off" && wanted != "fp32")
        || (key == "amp" && has == "off" && wanted == "fp32")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_by_their_names() {
        assert_eq!(Model::from_name("BiLSTM"), Some(Model::Recurrent));
        assert_eq!(Model::from_name("resnet50"), Some(Model::Convolution));
        assert_eq!(Model::from_name("my-thing"), None);
    }

    #[test]
    fn differences_only() {
        let machine = Machine::here().with_gpu("RTX 3090", 1).unwrap().with_cpus(16);
        let given = Given::from_pairs(&[("batch_size", "256"), ("num_workers", "40"), ("use_amp", "true")]);
        let all = advise(&machine, &Question::default());
        let different = differences(all.clone(), &given);
        assert!(different.len() < all.len());
        let workers = different
            .iter()
            .find(|(advice, _)| advice.key == "loader.num_workers")
            .unwrap();
        assert_eq!(
            (workers.0.value.as_str(), workers.1.as_deref()),
            ("8", Some("40"))
        );
        assert!(
            !different
                .iter()
                .any(|(advice, _)| advice.key == "loader.batch_size" || advice.key == "amp")
        );
    }
}
