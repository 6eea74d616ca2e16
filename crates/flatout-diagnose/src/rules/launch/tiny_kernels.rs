//! # tiny-kernels
//!
//! ## What it detects
//! The GPU's kernels are so short that launching them takes longer than running them.
//!
//! ## Why it is slow
//! Launching a kernel costs several microseconds on the CPU and on the GPU, whatever it computes. If the kernel runs for less than
//! that, the GPU mostly waits, and a faster GPU would not help.
//!
//! ## Example
//! ```python
//! for t in range(x.size(1)):
//!     h = cell(x[:, t], h)
//! ```
//!
//! ## Use instead
//! ```python
//! out, h = torch.nn.LSTM(64, 256, batch_first=True).cuda()(x)
//! ```
//!
//! ## Evidence
//! From GPU traces or a profile (`flatout run --profile`): the mean duration of a kernel and the kernels per step. Without either, an
//! upper bound: the GPU's busy time per step, divided by the kernels that its parameters require at least.
//!
//! ## Fix
//! Use fewer, larger kernels: `torch.compile` fuses chains of elementwise operations, and with `mode="reduce-overhead"` it launches
//! the step as one CUDA graph. Replace loops over time steps, heads or layers with one operation on the whole tensor. Use a fused
//! optimizer.
//!
//! ## When it is wrong
//! A step captured in a CUDA graph also has tiny kernels, but no launches. The GPU is then busy, and this rule does not fire.
//!
//! ## References
//! NVIDIA, "Getting Started with CUDA Graphs": a kernel of 2.9 µs takes 9.6 µs if each is waited for, 3.8 µs if launched ahead. An
//! LSTM with batch size 64 in PyTorch 2.11 on an H200: 863 kernels of 2.8 µs per step, and the GPU works 13% of the time.
//! <https://developer.nvidia.com/blog/cuda-graphs/>
//!
//! ---
//! ## 检测什么
//! GPU 的 kernel 太短，启动它们比执行它们还费时。
//! ## 为什么慢
//! 无论计算什么，每个 kernel 都要付出下发的代价，在主机和设备上各需几微秒。若执行时间比这还短，GPU 大部分时间都在等，换更快的 GPU 也没有用。
//! ## 证据
//! 来自对 GPU 的跟踪或 profile（`flatout run --profile`）：kernel 的平均时长和每步的数量。两者都没有时给出上界：一步中 GPU 忙碌的时间，除以其参数至少需要的 kernel 数。
//! ## 怎么改
//! 更少、更大的 kernel：`torch.compile` 会融合逐元素运算，加上 `mode="reduce-overhead"` 则整步作为一个 CUDA graph 下发；把按时间步、注意力头或层的循环改成对整个张量的一次运算；使用 fused 优化器。
//! ## 何时不成立
//! 用 CUDA graph 捕获的步骤同样有很短的 kernel，但没有逐个下发：此时 GPU 是忙碌的，本规则不会报告。
//! ## 参考
//! NVIDIA《Getting Started with CUDA Graphs》：2.9 µs 的 kernel 逐个等待时每个需 9.6 µs，提前下发时 3.8 µs。PyTorch 2.11 在 H200 上 batch 64 的 LSTM：每步 863 个 kernel，每个 2.8 µs，GPU 只有 13% 的时间在工作。
//! <https://developer.nvidia.com/blog/cuda-graphs/>

use super::host_bound_dispatch::refuse_workers;
use crate::advice;
use crate::analysis::{Analysis, Device};
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE, severity_of};
use flatout_core::{Confidence, Evidence, Severity, message, units};

pub const ID: &str = "tiny-kernels";
pub const WORST: Severity = Severity::Critical;

/// What launching an operation from PyTorch takes, about: a kernel shorter than this waits for its successor's launch.
const KERNEL_US: f64 = 10.0;
/// NVML counts any kernel as busy, so a GPU that launches cannot keep up with reads lower than this.
const GPU_BUSY: f64 = 0.7;
/// Fewer kernels a step are not what a step's time goes to.
const KERNELS: f64 = 20.0;
/// Up to so many samples a step a larger batch makes the kernels larger: that is the first thing to try, and another rule's.
const SMALL_BATCH: f64 = 64.0;
/// Every parameter tensor has a kernel for its gradient, every pair of them (weight and bias) one forward, at the least.
const KERNELS_A_TENSOR: f64 = 1.5;

/// The kernels of a step: how many, and their mean length.
struct Kernels {
    count: f64,
    mean_us: f64,
    /// Measured, not an upper bound.
    profiled: bool,
    /// Where lines are known as well, one that holds the launches up is the narrower cause.
    reach: Reach,
}

/// As traces or the profiler measured them; else as few as the parameters allow, and so as long as they can be.
fn kernels(analysis: &Analysis, busy: f64) -> Option<Kernels> {
    let profile = analysis.data.profile.as_ref();
    if let Some((steps, device)) = profile.and_then(|profile| Some((profile.steps, profile.device.as_ref()?)))
    {
        let count = device.kernels as f64;
        return (steps > 0 && count > 0.0).then(|| Kernels {
            count: count / steps as f64,
            mean_us: device.kernel_ms * 1e3 / count,
            profiled: true,
            reach: Reach::Specific,
        });
    }
    if let Some((count, mean_us)) = analysis.kernels.as_ref().and_then(|kernels| kernels.per_step()) {
        return Some(Kernels {
            count,
            mean_us,
            profiled: true,
            reach: Reach::Likely,
        });
    }
    // One call to cuDNN computes all gradients of a recurrent layer.
    if analysis.facts.switch("model.has_rnn") != Some(false) {
        return None;
    }
    let count = analysis.facts.number("model.tensors")? * KERNELS_A_TENSOR;
    let mean_us = analysis.window.as_ref()?.step_ms() * 1e3 * busy / count.max(1.0);
    Some(Kernels {
        count,
        mean_us,
        profiled: false,
        reach: Reach::Specific,
    })
}

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    if analysis.device() != Device::Cuda
        || window
            .samples_per_step()
            .is_some_and(|samples| samples <= SMALL_BATCH)
    {
        return None;
    }
    let busy = analysis.device_busy_share().filter(|busy| *busy < GPU_BUSY)?;
    let Kernels {
        count,
        mean_us,
        profiled,
        reach,
    } = kernels(analysis, busy)?;
    if mean_us >= KERNEL_US || count < KERNELS {
        return None;
    }
    let idle_s = analysis.dispatch_idle_s()?;
    let share = idle_s / window.wall_s();
    if share < WARNING_SHARE {
        return None;
    }
    let (shown, each) = (count.round(), units::duration(mean_us / 1e6));
    let title = if profiled {
        message!(
            en: "{shown} kernels per step, {each} each: launching them takes longer than running them",
            zh: "每步 {shown} 个 kernel，平均只有 {each}：下发比执行更耗时"
        )
    } else {
        message!(
            en: "At least {shown} kernels per step, at most {each} each: launching takes longer than running",
            zh: "每步至少 {shown} 个 kernel，平均至多 {each}：下发比执行更耗时"
        )
    };
    let length = Evidence::new(
        message!(en: "mean kernel duration", zh: "kernel 平均时长"),
        mean_us,
        "µs",
    );
    let candidate = Candidate::new(ID, severity_of(share), title)
        .confidence(if profiled {
            Confidence::High
        } else {
            Confidence::Medium
        })
        .evidence(analysis.in_window(length.against(KERNEL_US)))
        .evidence(analysis.in_window(
            Evidence::new(message!(en: "kernels per step", zh: "每步 kernel 数"), count, "").against(KERNELS),
        ))
        .evidence(
            analysis.in_window(
                Evidence::new(
                    message!(en: "time the GPU was busy", zh: "GPU 忙碌的时间"),
                    busy * 100.0,
                    "%",
                )
                .against(GPU_BUSY * 100.0),
            ),
        )
        .place(analysis.loop_place().as_ref())
        .claims(Stretch::Dispatch, reach, idle_s * 0.2, idle_s);
    Some(with_fixes(candidate, analysis))
}

fn with_fixes(mut candidate: Candidate, analysis: &Analysis) -> Candidate {
    if advice::may_compile(analysis) {
        candidate = candidate.setting(
            "compile",
            None,
            "reduce-overhead",
            message!(
                en: "torch.compile(model, mode=\"reduce-overhead\"): fuses chains of operations and launches \
                the step as one CUDA graph",
                zh: "torch.compile(model, mode=\"reduce-overhead\")：连续的小算子融合成一个 kernel，一步只需一次下发"
            ),
        );
    }
    let candidate = candidate.code(
        analysis.loop_place().as_ref(),
        message!(
            en: "Replace loops over time steps, heads or layers with one operation on the whole tensor; use \
            a fused optimizer",
            zh: "把按时间步、注意力头或层的循环改成对整个张量的一次运算；优化器用 fused 版本"
        ),
    );
    refuse_workers(candidate, analysis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};
    use flatout_record::{DeviceProfile, KernelKind, Profile, RunData};

    fn launching(util: f64) -> Build {
        Build::steady(20)
            .batch(512)
            .gpu(|gpu| gpu.util = Some(util))
            .fact("amp.dtype", "bf16")
    }

    fn profiled(util: f64, kernel_us: f64) -> RunData {
        let mut data = launching(util).done();
        let device = DeviceProfile {
            kernels: 4000,
            kernel_ms: 4.0 * kernel_us,
            ..DeviceProfile::default()
        };
        data.profile = Some(Profile {
            steps: 5,
            span_ms: 90.0,
            device: Some(device),
            ..Profile::default()
        });
        data
    }

    fn named(data: &RunData) -> Vec<String> {
        let causes = crate::diagnose(data)
            .findings
            .into_iter()
            .filter(|finding| finding.kind == flatout_core::Kind::Cause);
        causes.map(|finding| finding.rule).collect()
    }

    #[test]
    fn fires() {
        assert_eq!(
            named(&profiled(0.2, 2.8)),
            [ID],
            "instead of the general word on launching"
        );
        // Traced: 20 kernels per step of 4 µs each, and the GPU is idle otherwise.
        let traced = launching(0.1).kernels(&[(KernelKind::Elementwise, 0.4), (KernelKind::TensorCore, 0.4)]);
        assert_eq!(run(check, traced).unwrap().confidence, Confidence::High);
        let many = || {
            launching(0.1)
                .fact("model.has_rnn", false)
                .fact("model.tensors", 200)
        };
        let finding = run(check, many()).unwrap();
        assert!(finding.evidence[0].value <= 10.0, "10 ms × 10% over 300 kernels");
        assert_eq!(causes(many()), [ID]);
    }

    #[test]
    fn quiet() {
        // Long kernels; a GPU that is busy all the same (a CUDA graph); a small batch; so few tensors that nothing is proved.
        assert!(check(&Analysis::new(&profiled(0.2, 40.0))).is_none());
        assert!(check(&Analysis::new(&profiled(0.97, 2.8))).is_none());
        assert!(
            run(
                check,
                launching(0.1)
                    .batch(16)
                    .fact("model.has_rnn", false)
                    .fact("model.tensors", 200)
            )
            .is_none()
        );
        assert!(
            run(
                check,
                launching(0.3)
                    .fact("model.has_rnn", false)
                    .fact("model.tensors", 16)
            )
            .is_none()
        );
        assert!(
            run(
                check,
                launching(0.1)
                    .fact("model.has_rnn", true)
                    .fact("model.tensors", 200)
            )
            .is_none()
        );
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
