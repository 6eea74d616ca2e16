//! Switches that cost nothing to turn: the fused optimizer, TF32, cuDNN's own search, the memory format of convolutions,
//! gradients set to none, objects that the garbage collector need not walk again, memory that need not be given back. Turned together first, since each alone is often within the noise.

use super::cost::Cost;
use super::loader::FREEZE;
use super::{Knob, Proposal, Situation};
use crate::trial::Settings;
use flatout_core::message;

pub const KNOB: Knob = Knob {
    name: "switches",
    keys: &[
        "optimizer.fused",
        "tf32",
        "cudnn.benchmark",
        "channels_last",
        "zero_grad.set_to_none",
        FREEZE,
        "malloc.keep",
    ],
    propose,
    variants: |machine| {
        let on_gpu: &[&'static str] = if machine.gpus.is_empty() {
            &[]
        } else {
            &["tf32", "cudnn.benchmark"]
        };
        let keys = [&["channels_last", "optimizer.fused"], on_gpu].concat();
        keys.into_iter().map(|key| (key, "on".to_owned())).collect()
    },
};

/// Optimizers that have a fused form.
const FUSED: [&str; 4] = ["Adam", "AdamW", "SGD", "Adagrad"];
/// What each is worth to a step's own part: seed reports and the H200 measurements lie around these.
const FUSED_GAIN: f64 = 1.04;
const TF32_GAIN: f64 = 1.15;
const BENCHMARK_GAIN: f64 = 1.04;
const CHANNELS_LAST_GAIN: f64 = 1.08;
/// On a CPU, where no steps with it were taken: one small CNN took a third, another half as long again.
const CHANNELS_LAST_GAIN_ON_CPU: f64 = 1.3;
const SET_TO_NONE_GAIN: f64 = 1.03;
/// Of the time for pages, what keeping memory saves; of less than this part of all, nothing is felt.
const KEPT: f64 = 0.9;
const LEAST_ON_PAGES: f64 = 0.03;

fn propose(situation: &Situation) -> Vec<Proposal> {
    let each = each(situation);
    let mut all: Vec<Proposal> = Vec::new();
    if each.len() > 1 {
        let changes = each
            .iter()
            .map(|(key, _)| ((*key).to_owned(), "on".to_owned()))
            .collect();
        all.push(proposal(changes, each.iter().map(|(_, gain)| gain).product()));
    }
    let together_failed = each.len() > 1
        && all
            .first()
            .is_some_and(|bundle| situation.tried(&situation.settings.with(&bundle.changes)));
    if each.len() == 1 || together_failed {
        all.extend(
            each.into_iter()
                .map(|(key, gain)| proposal(super::one(key, "on"), gain)),
        );
    }
    all
}

fn proposal(changes: Settings, gain: f64) -> Proposal {
    let changes_numbers = changes.get("tf32").is_some();
    Proposal {
        knob: KNOB.name,
        changes,
        gain: Some(gain),
        worth: gain,
        why: message!(en: "off in the program; turning it on costs nothing", zh: "程序中未开启，打开没有代价"),
        changes_numbers,
    }
}

/// What a step's own part takes with it on, where that was measured.
fn ratio(situation: &Situation, key: &str) -> Option<f64> {
    match key {
        "malloc.keep" => situation.best.on_pages.map(|part| 1.0 - part * KEPT),
        _ => situation.own_ratio(key, "on"),
    }
}

fn each(situation: &Situation) -> Vec<(&'static str, f64)> {
    let facts = &situation.analysis.facts;
    let cost = Cost::of(situation);
    let mut all = Vec::new();
    let mut add = |key: &'static str, applies: bool, factor: f64| {
        if applies && situation.allows(key) && situation.settings.get(key).is_none() {
            // They make the computing faster, not the loading.
            let gain = |factor: f64| {
                cost.as_ref()
                    .map_or(factor, |cost| cost.gain_by_computing(factor))
            };
            let told = ratio(situation, key).map(|ratio| gain(1.0 / ratio));
            if told.is_none_or(|told| told > 1.0) {
                all.push((key, told.or(situation.expected(&[key])).unwrap_or(gain(factor))));
            }
        }
    };
    let class = facts.text("optimizer.class").unwrap_or_default();
    let unfused = facts.get("optimizer.fused").is_some() && facts.switch("optimizer.fused") != Some(true);
    add(
        "optimizer.fused",
        unfused && FUSED.contains(&class.as_str()),
        FUSED_GAIN,
    );
    add(
        "zero_grad.set_to_none",
        facts.switch("zero_grad.set_to_none") == Some(false),
        SET_TO_NONE_GAIN,
    );
    // Only where collecting was seen to take its time; the rule tells what it is worth.
    add(FREEZE, situation.expected(&[FREEZE]).is_some(), 1.0);
    let on_pages = situation.best.on_pages.unwrap_or(0.0);
    add("malloc.keep", on_pages >= LEAST_ON_PAGES, 1.0);
    let convolutions = facts.switch("model.has_conv") == Some(true);
    let contiguous = facts
        .text("model.memory_format")
        .is_some_and(|format| format == "contiguous");
    let last_gain = if situation.on_gpu() {
        CHANNELS_LAST_GAIN
    } else {
        CHANNELS_LAST_GAIN_ON_CPU
    };
    add("channels_last", convolutions && contiguous, last_gain);
    if situation.on_gpu() {
        let capability = situation
            .analysis
            .busiest_gpu()
            .and_then(|gpu| gpu.info.compute_capability);
        let ampere = capability.is_some_and(|(major, _)| major >= 8);
        let plain = facts.text("amp.dtype").is_some_and(|dtype| dtype == "off")
            && situation.settings.get("amp").is_none();
        add(
            "tf32",
            ampere && facts.switch("tf32.matmul") == Some(false),
            if plain { TF32_GAIN } else { 1.01 },
        );
        add(
            "cudnn.benchmark",
            convolutions && facts.switch("cudnn.benchmark") == Some(false),
            BENCHMARK_GAIN,
        );
    }
    all
}
