//! # gpu-memory-near-limit
//!
//! ## What it detects
//! GPU memory is almost full.
//!
//! ## Why it is slow
//! PyTorch's allocator then frees and reallocates memory instead of reusing it, and waits for the GPU each time. A slightly longer
//! sequence, the last batch or an evaluation can end the run.
//!
//! ## Example
//! ```python
//! loader = DataLoader(dataset, batch_size=512)  # 23.6 of 24 GB in use
//! ```
//!
//! ## Use instead
//! ```python
//! loader = DataLoader(dataset, batch_size=256)  # and optimizer.step() every 2 batches
//! ```
//!
//! ## Evidence
//! Peak memory in the steady part relative to the GPU's memory.
//!
//! ## Fix
//! Use a smaller batch with gradient accumulation, mixed precision, or `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`.
//!
//! ## When it is wrong
//! PyTorch caches freed memory: the GPU can read full while half of its memory is free inside the process.
//!
//! ## References
//! TraceML warns from 92% and reports 97% as critical; several tools use 90%.
//! <https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management>
//!
//! ---
//! ## 检测什么
//! 显存快用满了。
//! ## 为什么慢
//! 此时 PyTorch 的分配器会反复释放再申请，而不是复用，每次都要等设备；再多一点（更长的序列、最后一个 batch、一次评估）就会结束运行。
//! ## 证据
//! 稳定阶段中使用的最大显存与总显存之比。
//! ## 怎么改
//! 更小的 batch 加梯度累积、混合精度、`expandable_segments:True`。
//! ## 何时不成立
//! PyTorch 会自己保留已释放的显存：设备看起来已满，进程内可能有一半空闲。
//! ## 参考
//! TraceML：92% 和 97%；多个工具：90%。
//! <https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management>

use crate::analysis::{Analysis, Device};
use crate::candidate::Candidate;
use flatout_core::{Confidence, Evidence, Severity, message, units};

pub const ID: &str = "gpu-memory-near-limit";
pub const WORST: Severity = Severity::Warning;

/// Between TraceML's two levels.
const USED: f64 = 0.95;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    analysis.window.as_ref()?;
    // A program on the CPU fills no card: what is full there is somebody else's.
    if analysis.device() == Device::Cpu {
        return None;
    }
    let share_of = |gpu: &crate::analysis::gpus::Gpu| gpu.mem_peak_share().unwrap_or(0.0);
    let gpu = analysis
        .gpus
        .iter()
        .max_by(|a, b| share_of(a).total_cmp(&share_of(b)))?;
    let used = gpu.mem_peak_share().filter(|used| *used >= USED)?;
    let (index, shown, total) = (
        gpu.index,
        units::percent(used),
        units::bytes(gpu.mem_total_bytes?),
    );
    Some(
        Candidate::new(
            ID,
            Severity::Warning,
            message!(
                en: "Memory of GPU {index} is {shown} full (of {total}): no room for a larger batch",
                zh: "GPU {index} 显存已用 {shown}（共 {total}）：batch 再大就会 OOM"
            ),
        )
        .confidence(Confidence::Medium)
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
        .code(
            None,
            message!(
                en: "Use a smaller batch with gradient accumulation, or set \
                PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
                zh: "减小 batch 并用梯度累积，或设置 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
            ),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};

    fn using(gigabytes: u64) -> Build {
        Build::steady(20).gpu(|gpu| gpu.mem_used_bytes = Some(gigabytes << 30))
    }

    #[test]
    fn fires() {
        assert!(run(check, using(78)).is_some());
    }

    #[test]
    fn quiet() {
        assert!(run(check, using(60)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
