//! # gpu-memory-half-unused
//!
//! ## What it detects
//! Most of the GPU memory is never used while the GPU waits: there is room for a larger batch.
//!
//! ## Why it is slow
//! Unused memory alone is not slow. But a GPU that waits for the CPU could process more samples per step.
//!
//! ## Example
//! ```python
//! loader = DataLoader(dataset, batch_size=64)  # 0.7 of 22.5 GB in use
//! ```
//!
//! ## Use instead
//! ```python
//! loader = DataLoader(dataset, batch_size=1024)
//! ```
//!
//! ## Evidence
//! Peak memory in the steady part relative to the GPU's memory, and the GPU's busy share.
//!
//! ## Fix
//! Use a larger batch as long as samples/s rise. This is a note only, never a cause.
//!
//! ## When it is wrong
//! The batch size was chosen for model quality, or the GPU is far too large for the model.
//!
//! ## References
//! The threshold is 50% of the memory, as in the tool alloc.
//! See also `batch-too-small` and `recomputing-with-free-memory`.
//! <https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management>
//!
//! ---
//! ## 检测什么
//! GPU 在等待，而大部分显存从未使用：可以用更大的 batch。
//! ## 为什么慢
//! 它本身并不慢。但一块在等主机的 GPU，若每步还能容纳更多样本，就可以给它更多。
//! ## 证据
//! 稳定阶段中使用的最大显存与总显存之比，以及忙碌占比。
//! ## 怎么改
//! 只要每秒样本数还在上升就增大 batch。只是提示，从不作为原因。
//! ## 何时不成立
//! batch 是为效果选择的；设备对模型来说太大。
//! ## 参考
//! 阈值为显存的 50%，与工具 alloc 相同。
//! 另见 `batch-too-small`、`recomputing-with-free-memory`。
//! <https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management>

use crate::analysis::{Analysis, Device};
use crate::candidate::Candidate;
use flatout_core::{Evidence, Kind, Severity, message, units};

pub const ID: &str = "gpu-memory-half-unused";
pub const WORST: Severity = Severity::Information;

/// alloc's limit.
const USED: f64 = 0.5;
/// With a GPU that is full, room in its memory changes nothing.
const GPU_BUSY: f64 = 0.7;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    analysis.window.as_ref()?;
    let busy = analysis.device_busy_share().filter(|busy| *busy < GPU_BUSY)?;
    let gpu = analysis
        .busiest_gpu()
        .filter(|_| analysis.device() == Device::Cuda)?;
    let used = gpu.mem_peak_share().filter(|used| *used < USED)?;
    let shown = units::percent(used);
    Some(
        Candidate::new(
            ID,
            Severity::Information,
            message!(
                en: "Only {shown} of GPU memory is used: a larger batch would fit",
                zh: "显存只用了 {shown}，GPU 也没有满载：可以增大 batch"
            ),
        )
        .kind(Kind::Symptom)
        .evidence(
            analysis.in_window(
                Evidence::new(
                    message!(en: "GPU memory in use", zh: "显存使用率"),
                    used * 100.0,
                    "%",
                )
                .against(USED * 100.0),
            ),
        )
        .evidence(
            analysis.in_window(
                Evidence::new(
                    message!(en: "time the GPU was busy", zh: "GPU 忙碌的时间"),
                    busy * 100.0,
                    "%",
                )
                .against(GPU_BUSY * 100.0),
            ),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};

    fn using(gigabytes: u64) -> Build {
        Build::steady(20).gpu(|gpu| {
            gpu.util = Some(0.3);
            gpu.mem_used_bytes = Some(gigabytes << 30);
        })
    }

    #[test]
    fn fires() {
        assert_eq!(run(check, using(2)).unwrap().severity, Severity::Information);
    }

    #[test]
    fn quiet() {
        assert!(run(check, using(70)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
