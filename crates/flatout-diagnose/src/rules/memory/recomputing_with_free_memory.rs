//! # recomputing-with-free-memory
//!
//! ## What it detects
//! Gradient checkpointing is on while most of the GPU's memory is free.
//!
//! ## Why it is slow
//! Checkpointing keeps few activations and recomputes the others during backward: it trades time for memory. If the memory is free
//! anyway, the time is lost, because the forward pass of the checkpointed layers runs twice.
//!
//! ## Example
//! ```python
//! model.gradient_checkpointing_enable()  # 11 of 80 GB in use
//! ```
//!
//! ## Use instead
//! ```python
//! model.gradient_checkpointing_disable()
//! ```
//!
//! ## Evidence
//! A call of `torch.utils.checkpoint`, and the peak memory of the GPU.
//!
//! ## Fix
//! Turn it off (`gradient_checkpointing=False`, no `checkpoint(…)` around the layers) or checkpoint fewer layers. Or keep it and use
//! the free memory for a larger batch.
//!
//! ## When it is wrong
//! Without checkpointing the step would not fit; flatout does not know how much memory the activations need. The batch size or
//! sequence length grows later.
//!
//! ## References
//! Chen et al., "Training Deep Nets with Sublinear Memory Cost" (2016): one more forward pass, about 30% more time.
//! <https://docs.pytorch.org/docs/stable/checkpoint.html>
//!
//! ---
//! ## 检测什么
//! 开启了梯度检查点（gradient checkpointing），而 GPU 的大部分显存空闲。
//! ## 为什么慢
//! 检查点只保留少量激活，其余在反向时重新计算：用时间换显存。显存本来就够时，这些时间就白花了；被检查点包住的前向要运行两次。
//! ## 证据
//! 对 `torch.utils.checkpoint` 的调用，以及 GPU 显存使用的最大占比。
//! ## 怎么改
//! 关闭它（`gradient_checkpointing=False`，去掉各层外面的 `checkpoint(…)`），或只对部分层使用；或者保留它，把空闲显存用于更大的 batch。
//! ## 何时不成立
//! 不用它就放不下：激活需要多少显存从这里无法得知。之后 batch 或序列长度会变大。
//! ## 参考
//! Chen 等《Training Deep Nets with Sublinear Memory Cost》（2016）：多一次前向，约多 30% 时间。
//! <https://docs.pytorch.org/docs/stable/checkpoint.html>

use crate::analysis::{Analysis, Device};
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE, severity_of};
use flatout_core::{Confidence, Evidence, Severity, message, units};

pub const ID: &str = "recomputing-with-free-memory";
pub const WORST: Severity = Severity::Warning;

/// Up to this much of the memory in use: activations may grow to twice the whole.
const USED: f64 = 0.4;
/// Forward, forward again, and a backward of twice its time: a quarter goes. Parts outside of checkpointed layers run once.
const GOES: f64 = 0.25;
const SURELY: f64 = 0.08;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    if analysis.facts.switch("checkpointing.used") != Some(true) {
        return None;
    }
    let on_gpu = analysis.device() == Device::Cuda;
    let used = match on_gpu {
        true => analysis.busiest_gpu()?.mem_peak_share(),
        false => analysis.host.memory_used,
    };
    let used = used.filter(|used| *used <= USED)?;
    let busy = match on_gpu {
        true => analysis.device_busy_share()?,
        false => analysis.computing_share(),
    };
    let share = busy * GOES;
    if share < WARNING_SHARE {
        return None;
    }
    let free = units::percent(1.0 - used);
    let place = analysis
        .mention(&[
            "gradient_checkpointing",
            "activation_checkpointing",
            "checkpoint(",
        ])
        .or_else(|| analysis.facts.place("checkpointing.used"));
    Some(
        Candidate::new(
            ID,
            severity_of(share),
            message!(
                en: "Gradient checkpointing runs forward twice while {free} of the memory is free",
                zh: "梯度检查点让前向计算两次，而内存有 {free} 空闲"
            ),
        )
        .confidence(Confidence::Medium)
        .evidence(
            analysis.in_window(
                Evidence::new(message!(en: "memory in use", zh: "内存使用"), used * 100.0, "%")
                    .against(USED * 100.0),
            ),
        )
        .place(place.as_ref())
        .claims(
            Stretch::Device,
            Reach::Specific,
            busy * SURELY * window.wall_s(),
            share * window.wall_s(),
        )
        .code(
            place.as_ref(),
            message!(
                en: "Turn checkpointing off (gradient_checkpointing=False), or use it for some layers only; \
                if memory runs out, keep it and use a larger batch",
                zh: "关闭检查点（gradient_checkpointing=False），或只对部分层使用；若显存不够，保留它并增大 batch"
            ),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};
    use flatout_core::Place;

    fn checkpointing(used_gib: u64) -> Build {
        Build::steady(20)
            .batch(512)
            .gpu(|gpu| {
                gpu.util = Some(0.95);
                gpu.mem_used_bytes = Some(used_gib << 30);
            })
            .fact_at("checkpointing.used", true, 17)
    }

    #[test]
    fn fires() {
        let finding = run(check, checkpointing(12)).unwrap();
        assert_eq!(finding.places, [Place::new("t.py", 17)]);
    }

    #[test]
    fn quiet() {
        assert!(run(check, checkpointing(60)).is_none());
        let off = Build::steady(20).gpu(|gpu| {
            gpu.util = Some(0.95);
            gpu.mem_used_bytes = Some(1 << 30);
        });
        assert!(run(check, off).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
