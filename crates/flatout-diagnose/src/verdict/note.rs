//! What the marks alone do not tell.

use super::{GpuVerdict, mark};
use flatout_core::{Message, message, units};
use serde::{Deserialize, Serialize};

/// Below this mean SM activity a kernel fills less than half of the GPU; NVIDIA's DCGM guide calls that ineffective use.
const SM_ACTIVITY_LOW: f64 = 0.5;
/// Said only when it held for this share of the time.
const BUSY_SHARE: f64 = 0.1;
const POWER_CAP_SHARE: f64 = 0.01;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Note {
    pub id: String,
    pub message: Message,
}

/// `sm_while_busy`: mean SM activity while utilisation was high, and the share of time it was.
pub fn notes(gpu: &GpuVerdict, sm_while_busy: Option<(f64, f64)>, known_s: f64) -> Vec<Note> {
    let mut notes = Vec::new();
    if let Some((sm, share)) = sm_while_busy
        && sm < SM_ACTIVITY_LOW
        && share >= BUSY_SHARE
    {
        let (busy, sm) = (units::percent(mark::UTILISATION_GOOD), units::percent(sm));
        notes.push(Note {
            id: "idle-sms-behind-utilisation".into(),
            message: message!(
                en: "Utilization hides idle SMs: while it read {busy} or more, the SMs had work only {sm} of \
                the time (below 50%, half the GPU is unused). Utilization only means that some kernel was \
                running.",
                zh: "利用率掩盖了空闲的 SM：利用率 ≥{busy} 期间，SM 实际有工作的时间只占 {sm}（低于 50% 说明 \
                GPU 有一半闲置）。利用率只表示有 kernel 在运行。"
            ),
        });
    }
    let capped_s = gpu.throttle_s.get(mark::POWER_CAP).copied().unwrap_or(0.0);
    if known_s > 0.0 && capped_s / known_s >= POWER_CAP_SHARE {
        let share = units::percent(capped_s / known_s);
        notes.push(Note {
            id: "power-cap".into(),
            message: message!(
                en: "The power limit held the clocks down for {share} of the time. This is normal at full \
                load and does not count as throttling.",
                zh: "有 {share} 的时间时钟受功耗上限限制：满载时属正常现象，不计入降频。"
            ),
        });
    }
    notes
}
