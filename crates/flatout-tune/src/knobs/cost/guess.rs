//! What one measured size says of others.

use super::BATCH;
use super::curve::Line;
use crate::knobs::Situation;
use flatout_diagnose::analysis::Device;

/// The part of a CPU's step that is taken to be fixed where only one size was measured.
const GUESSED_FIXED: f64 = 0.15;

/// How a step's own part grows with its samples.
pub struct Guess {
    pub line: Line,
    /// Nothing that was measured speaks for it.
    pub blind: bool,
}

/// Only what all multiprocessors do grows with the samples: small kernels take as long for more of them.
pub fn device_s(situation: &Situation) -> Option<f64> {
    let analysis = situation.analysis;
    let width = analysis
        .busiest_gpu()
        .filter(|_| analysis.device() == Device::Cuda)?
        .sm_activity?;
    let window = analysis.window.as_ref()?;
    Some(width * window.step_ms() / 1e3 / window.samples_per_step().filter(|samples| *samples > 0.0)?)
}

/// From the one size there is: on a GPU what the device works at its full width grows with the samples; on the CPU the rule about
/// small batches knows, else it is a modest guess.
pub fn guessed(situation: &Situation, batch: f64, own_s: f64) -> Option<Guess> {
    let analysis = situation.analysis;
    let mut blind = false;
    let share = match analysis.device() {
        Device::Cuda => {
            let busy = analysis.device_busy_share()?;
            let wide = analysis.busiest_gpu().and_then(|gpu| gpu.sm_activity);
            let step_s = situation.best.seconds / situation.best.steps.max(1) as f64;
            1.0 - wide.map_or(busy, |wide| wide.min(busy)) * step_s / own_s
        }
        _ => match situation.expected(&[BATCH]) {
            // The rule's gain is for four times the batch: 1 - 1/gain of the time goes, which is 3/4 of the fixed part.
            Some(gain) => (1.0 - 1.0 / gain) * 4.0 / 3.0,
            None => {
                blind = true;
                GUESSED_FIXED
            }
        },
    };
    let fixed = share.clamp(0.0, 0.99) * own_s;
    let line = Line {
        fixed,
        slope: (own_s - fixed) / batch,
    };
    Some(Guess { line, blind })
}
