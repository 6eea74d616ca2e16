//! `torch.compile`. It takes minutes to begin, so it comes last; recurrent layers it passes over. Where it fails, PyTorch goes
//! on without it, and the trial says so.

use super::{Knob, Proposal, Situation, one};
use flatout_core::message;
use flatout_telemetry::Phase;

pub const KNOB: Knob = Knob {
    name: "compile",
    keys: &["compile"],
    propose,
};

/// The part of the device's or the launching time that fusing saves; CUDA guides speak of 10 to 30%.
const SAVED: f64 = 0.15;

fn propose(situation: &Situation) -> Vec<Proposal> {
    let facts = &situation.analysis.facts;
    // On a CPU it needs a C++ compiler and rarely pays within a trial: only when asked for by name.
    if !situation.on_gpu() && !situation.limits.asked("compile") {
        return Vec::new();
    }
    if facts.switch("compile.applied") == Some(true)
        || facts.switch("model.has_rnn") == Some(true)
        || situation.settings.get("compile").is_some()
    {
        return Vec::new();
    }
    let compute = situation.analysis.share(Phase::Compute) + situation.analysis.share(Phase::Sync);
    let gain = situation
        .expected(&["compile"])
        .unwrap_or(1.0 / (1.0 - compute * SAVED))
        .min(1.5);
    vec![Proposal {
        knob: KNOB.name,
        changes: one("compile", "default"),
        gain,
        why: message!(en: "small operations can be fused into fewer kernels", zh: "小算子可以融合为更少的 kernel"),
        changes_numbers: true,
    }]
}
