//! `torch.compile`. It takes minutes to begin, so it comes last; recurrent layers it passes over. Where it fails, PyTorch goes
//! on without it, and the trial says so. First the default mode; then, where the GPU waits for launches, the one with CUDA graphs.

use super::{Knob, Proposal, Situation, one};
use flatout_core::{Message, message};

pub const KNOB: Knob = Knob {
    name: "compile",
    keys: &["compile"],
    propose,
    variants: |_| Vec::new(),
};

/// The part of the device's or the launching time that fusing saves; CUDA guides speak of 10 to 30%.
const SAVED: f64 = 0.15;
/// The part of the waiting for launches that graphs take away: the optimizer and what is between stays outside of them.
const GRAPHED: f64 = 0.4;

fn propose(situation: &Situation) -> Vec<Proposal> {
    let facts = &situation.analysis.facts;
    // On a CPU it needs a C++ compiler and rarely pays within a trial: only when asked for by name.
    if !situation.on_gpu() && !situation.limits.asked("compile") {
        return Vec::new();
    }
    let own = facts.switch("compile.applied") == Some(true) && situation.settings.get("compile").is_none();
    if own || facts.switch("model.has_rnn") == Some(true) {
        return Vec::new();
    }
    match situation.settings.get("compile") {
        None => {
            let analysis = situation.analysis;
            let compute = analysis.computing_share();
            let why = message!(en: "small operations can be fused into fewer kernels", zh: "小算子可以融合为更少的 kernel");
            vec![proposal("default", 1.0 / (1.0 - compute * SAVED), why)]
        }
        // The launches that are left become one: only where the GPU still waits for them.
        Some("default") if situation.on_gpu() => {
            let window = situation.analysis.window.as_ref();
            let idle = situation.analysis.dispatch_idle_s().zip(window);
            let share = idle.map_or(0.0, |(idle_s, window)| idle_s / window.wall_s());
            let why = message!(en: "the GPU still waits for launches", zh: "GPU 仍在等待下发");
            vec![proposal("reduce-overhead", 1.0 / (1.0 - share * GRAPHED), why)]
        }
        Some(_) => Vec::new(),
    }
}

fn proposal(mode: &str, gain: f64, why: Message) -> Proposal {
    Proposal {
        knob: KNOB.name,
        changes: one("compile", mode),
        gain: Some(gain),
        worth: gain,
        why,
        changes_numbers: true,
    }
}
