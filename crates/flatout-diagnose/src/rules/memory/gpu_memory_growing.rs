//! # gpu-memory-growing
//!
//! ## What it detects
//! GPU memory grows steadily while the steps stay the same.
//!
//! ## Why it is slow
//! Something keeps tensors alive: losses summed with their graphs (`total += loss`), or outputs collected in a list. The run ends out
//! of memory, hours later.
//!
//! ## Example
//! ```python
//! total += loss
//! ```
//!
//! ## Use instead
//! ```python
//! total += loss.detach()
//! ```
//!
//! ## Evidence
//! GPU memory at the start and end of the steady part, how steadily it grew, and when it will be full.
//!
//! ## Fix
//! Keep numbers, not graphs: `loss.detach()`, or an occasional `.item()`. Clear lists of outputs.
//!
//! ## When it is wrong
//! A cache fills by design, or the inputs get longer.
//!
//! ## References
//! TraceML reports a confirmed growth of 1 GiB.
//! <https://docs.pytorch.org/docs/stable/notes/faq.html>
//!
//! ---
//! ## 检测什么
//! 每步工作不变，显存却持续增长。
//! ## 为什么慢
//! 有东西让张量一直存活：连同计算图一起累加的损失（`total += loss`）、放进列表的输出。几小时后会因显存不足而结束。
//! ## 证据
//! 稳定阶段开始和结束时的显存、增长的稳定程度，以及何时会用满。
//! ## 怎么改
//! 保存数值而不是计算图：`loss.detach()`，偶尔 `.item()`；清空保存输出的列表。
//! ## 何时不成立
//! 本来就要填满的缓存，越来越长的输入。
//! ## 参考
//! TraceML：确认增长 1 GiB。
//! <https://docs.pytorch.org/docs/stable/notes/faq.html>

use crate::analysis::gpus::Gpu;
use crate::analysis::{Analysis, Device};
use crate::candidate::Candidate;
use flatout_core::{Evidence, Severity, message, units};

pub const ID: &str = "gpu-memory-growing";
pub const WORST: Severity = Severity::Warning;

/// TraceML's limit.
const GROWTH_BYTES: f64 = 1024.0 * 1048576.0;
/// Steps of the window in which memory must not have shrunk, and parts of it in which it must have grown.
const STEADY: f64 = 0.9;
const PARTS: usize = 5;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    // What happens on a card that the training does not use is no matter of this run.
    if analysis.device() == Device::Cpu {
        return None;
    }
    let (gpu, growth) = analysis
        .gpus
        .iter()
        .filter_map(|gpu| Some((gpu, growth(gpu)?)))
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    let index = gpu.index;
    let seconds = window.wall_s();
    let (shown, a_minute) = (units::bytes(growth), units::bytes(growth / seconds * 60.0));
    let mut candidate = Candidate::new(
        ID,
        Severity::Warning,
        message!(
            en: "Memory of GPU {index} grew by {shown} during equal steps ({a_minute} per minute)",
            zh: "步骤不变，GPU {index} 的显存却增长了 {shown}（每分钟 {a_minute}）"
        ),
    )
    .evidence(
        analysis.in_window(
            Evidence::new(
                message!(en: "growth of GPU memory", zh: "显存增长"),
                growth / 1048576.0,
                "MiB",
            )
            .against(GROWTH_BYTES / 1048576.0),
        ),
    )
    .code(
        analysis.loop_place().as_ref(),
        message!(
            en: "Look for `total += loss` without .detach(), and for lists of outputs that are never cleared",
            zh: "检查没有 .detach() 的 `total += loss`，以及从不清空的输出列表"
        ),
    );
    if let (Some(total), Some((_, used))) = (gpu.mem_total_bytes, gpu.mem_used.last()) {
        let left_s = (total - used) / (growth / seconds);
        let what = message!(en: "time until the memory is full", zh: "距离显存耗尽");
        candidate = candidate.evidence(Evidence::new(what, left_s / 60.0, "min"));
    }
    Some(candidate)
}

/// Bytes grown, when it grew in every part of the window and hardly ever shrank.
fn growth(gpu: &Gpu) -> Option<f64> {
    let used: Vec<f64> = gpu.mem_used.iter().map(|(_, bytes)| *bytes).collect();
    let pairs = used.len().checked_sub(1).filter(|pairs| *pairs >= PARTS * 2)?;
    let rising = used.windows(2).filter(|pair| pair[1] >= pair[0]).count();
    let grew = |part: usize| used[pairs * (part + 1) / PARTS] > used[pairs * part / PARTS];
    let growth = used[pairs] - used[0];
    (growth >= GROWTH_BYTES && rising as f64 >= pairs as f64 * STEADY && (0..PARTS).all(grew))
        .then_some(growth)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check_empty};
    use flatout_record::RunData;

    fn growing(megabytes_a_second: u64) -> RunData {
        let mut data = Build::steady(30)
            .gpu(|gpu| gpu.mem_used_bytes = Some(4 << 30))
            .done();
        for (second, sample) in data.samples.iter_mut().enumerate() {
            let bytes = (4u64 << 30) + second as u64 * (megabytes_a_second << 20);
            sample.gpus.get_mut(&0).unwrap().mem_used_bytes = Some(bytes);
        }
        data
    }

    #[test]
    fn fires() {
        assert!(check(&Analysis::new(&growing(100))).is_some());
    }

    #[test]
    fn quiet() {
        assert!(check(&Analysis::new(&growing(0))).is_none());
        let mut step = growing(0);
        for sample in &mut step.samples[20..] {
            sample.gpus.get_mut(&0).unwrap().mem_used_bytes = Some(9 << 30);
        }
        assert!(
            check(&Analysis::new(&step)).is_none(),
            "one larger allocation is no growth"
        );
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
