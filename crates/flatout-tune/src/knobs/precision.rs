//! Mixed precision, where the hardware multiplies bf16 faster.

use super::cost::Cost;
use super::{Knob, Proposal, Situation, one};
use flatout_core::message;
use flatout_record::Phase;

pub const KNOB: Knob = Knob {
    name: "precision",
    keys: &["amp"],
    propose,
    variants: |machine| {
        let ampere = machine
            .gpus
            .iter()
            .any(|gpu| gpu.compute_capability.is_some_and(|(major, _)| major >= 8));
        let faster = if machine.gpus.is_empty() {
            machine.cpu_bf16
        } else {
            ampere
        };
        if faster {
            vec![("amp", "bf16".to_owned())]
        } else {
            Vec::new()
        }
    },
};

/// The part of the busy time that bf16 saves, where products are most of it: an LSTM on an H200 from 208k to 302k samples/s.
const SAVED_ON_GPU: f64 = 0.3;
/// On a CPU convolutions and recurrences gain (a small CNN 1.3 times, none once it is channels-last; an LSTM 1.1 times); small linear layers lose more by the
/// conversions (an MLP and a transformer a fifth), so elsewhere it is tried only when asked for.
const SAVED_ON_CPU: f64 = 0.08;

fn propose(situation: &Situation) -> Vec<Proposal> {
    let facts = &situation.analysis.facts;
    if facts.text("amp.dtype").is_none_or(|dtype| dtype != "off") || situation.settings.get("amp").is_some() {
        return Vec::new();
    }
    let told = || Some(Cost::of(situation)?.gain_by_computing(1.0 / situation.own_ratio("amp", "bf16")?));
    let gain = if let Some(gain) = told() {
        gain
    } else if situation.on_gpu() {
        let capability = situation
            .analysis
            .busiest_gpu()
            .and_then(|gpu| gpu.info.compute_capability);
        if capability.is_none_or(|(major, _)| major < 8) {
            return Vec::new();
        }
        let busy = situation.analysis.device_busy_share().unwrap_or(0.5);
        situation
            .expected(&["amp"])
            .unwrap_or(1.0 / (1.0 - busy * SAVED_ON_GPU))
    } else {
        let has = |key: &str| facts.switch(key) == Some(true);
        let gains = has("model.has_conv") || has("model.has_rnn") || situation.limits.asked("amp");
        if !situation.machine.cpu_bf16 || !gains {
            return Vec::new();
        }
        let compute = situation.analysis.share(Phase::Compute);
        1.0 / (1.0 - compute * SAVED_ON_CPU)
    };
    vec![Proposal {
        knob: KNOB.name,
        changes: one("amp", "bf16"),
        gain: Some(gain),
        worth: gain,
        why: message!(en: "matrix multiplications run in fp32, although the hardware supports bf16", zh: "矩阵乘法使用 fp32，而硬件有 bf16 单元"),
        changes_numbers: true,
    }]
}
