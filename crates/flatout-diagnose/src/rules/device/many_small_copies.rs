//! # many-small-copies
//!
//! ## What it detects
//! Each step copies many small tensors between CPU and GPU, one by one.
//!
//! ## Why it is slow
//! A copy takes about 10 µs of CPU time before its first byte moves, and from pageable memory the CPU waits for each copy. A hundred
//! copies of 1 KB take a millisecond; one copy of 100 KB takes a few microseconds.
//!
//! ## Example
//! ```python
//! lengths = [torch.tensor(len(text), device="cuda") for text in texts]
//! ```
//!
//! ## Use instead
//! ```python
//! lengths = torch.tensor([len(text) for text in texts]).to("cuda")
//! ```
//!
//! ## Evidence
//! Copies per step and their mean size, from GPU traces, and the line that launches most of them.
//!
//! ## Fix
//! Collect the values in one CPU tensor (`torch.tensor(list)`, `torch.stack`) and copy it once, or create them on the GPU
//! (`torch.arange(…, device=device)`). Read values back with one `.tolist()` instead of many `.item()` calls.
//!
//! ## When it is wrong
//! Copies that overlap with kernels on another stream cost no GPU time, although the CPU still launches each of them.
//!
//! ## References
//! NVIDIA's CUDA C++ Best Practices Guide recommends batching many small transfers into one larger transfer.
//! <https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/>
//!
//! ---
//! ## 检测什么
//! 每步在主机与 GPU 之间逐个拷贝许多小张量。
//! ## 为什么慢
//! 每次拷贝在移动第一个字节之前就要花主机约 10 µs；从可分页内存拷贝时主机还要逐个等待。一百次 1 KB 的拷贝要 1 ms，一次 100 KB 的拷贝只要几微秒。
//! ## 证据
//! 跟踪得到的每步拷贝次数与平均大小，以及下发其中大部分的代码行。
//! ## 怎么改
//! 在 CPU 上把数值放进一个张量（`torch.tensor(list)`、`torch.stack`）再拷贝一次，或直接在 GPU 上生成（`torch.arange(…, device=device)`）；读回数值用一次 `.tolist()`，不要逐个 `.item()`。
//! ## 何时不成立
//! 与另一个 stream 上的 kernel 重叠的拷贝不占 GPU 时间；但主机仍要逐个下发。
//! ## 参考
//! NVIDIA《CUDA C++ Best Practices Guide》：把许多小传输合并成一次大传输会快得多。
//! <https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/>

use crate::analysis::stacks::hottest_within;
use crate::analysis::{Analysis, Device};
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE, severity_of};
use flatout_core::{Confidence, Evidence, Place, Severity, message, units};
use flatout_record::{Copy, LaunchStack, Phase, StackCount};

pub const ID: &str = "many-small-copies";
pub const WORST: Severity = Severity::Critical;

/// A batch with a few tensors and a loss that is read stay far below.
const PER_STEP: f64 = 20.0;
/// Up to this size a copy's fixed cost exceeds its transfer (10 µs at 25 GB/s).
const SMALL_BYTES: u64 = 256 << 10;
/// What a copy costs the host at least, and at most where it waits for the GPU.
const LEAST_S: f64 = 8e-6;
const MOST_S: f64 = 40e-6;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let kernels = analysis.kernels.as_ref()?;
    if analysis.device() != Device::Cuda || kernels.steps == 0 {
        return None;
    }
    let copies = || analysis.data.windows.iter().flat_map(|window| &window.copies);
    let (count, bytes) = copies()
        .filter(|copy| is_small(copy))
        .fold((0, 0), |sum: (u64, u64), copy| {
            (sum.0 + copy.count, sum.1 + copy.bytes)
        });
    let per_step = count as f64 / kernels.steps as f64;
    if per_step < PER_STEP {
        return None;
    }
    let steps = window.steps as f64;
    let possible_s = (per_step * MOST_S * steps).min(room(analysis)?);
    let share = possible_s / window.wall_s();
    if share < WARNING_SHARE {
        return None;
    }
    let (shown, size) = (per_step.round(), units::bytes(bytes as f64 / count.max(1) as f64));
    let line = kernels
        .line(small_copies)
        .map(|line| line.place())
        .or_else(|| copying_line(analysis));
    Some(
        Candidate::new(
            ID,
            severity_of(share),
            message!(
                en: "{shown} small copies per step between CPU and GPU, {size} each",
                zh: "每步在 CPU 与 GPU 之间有 {shown} 次小拷贝，每次 {size}"
            ),
        )
        .confidence(Confidence::Medium)
        .evidence(
            analysis.in_window(
                Evidence::new(
                    message!(en: "small copies per step", zh: "每步小拷贝次数"),
                    per_step,
                    "",
                )
                .against(PER_STEP),
            ),
        )
        .place(line.as_ref())
        .claims(
            Stretch::Transfer,
            Reach::Specific,
            (per_step * LEAST_S * steps).min(possible_s),
            possible_s,
        )
        .or_in(Stretch::Dispatch)
        .or_in(Stretch::Sync)
        .code(
            line.as_ref(),
            message!(
                en: "Copy once: build one tensor on the CPU and move it as a whole, or create the values on \
                the GPU; read back with a single .tolist()",
                zh: "只拷贝一次：在 CPU 上构造一个张量整体移动，或直接在 GPU 上生成；读回时用一次 .tolist()"
            ),
        ),
    )
}

/// Where launches were not recorded: the line that copies for most of the time.
fn copying_line(analysis: &Analysis) -> Option<Place> {
    let range = analysis.window.as_ref()?.range();
    let copies = |stack: &StackCount| stack.phase == Some(Phase::Transfer);
    hottest_within(analysis.data, range, copies).map(|(line, _)| line.place)
}

/// The time in which the host copies, waits or launches: no more than that can go.
fn room(analysis: &Analysis) -> Option<f64> {
    let window = analysis.window.as_ref()?;
    let waiting = window.seconds(Phase::Transfer) + window.seconds(Phase::Sync);
    Some(waiting + analysis.dispatch_idle_s().unwrap_or(0.0))
}

fn is_small(copy: &Copy) -> bool {
    let between = copy.direction == "HtoD" || copy.direction == "DtoH";
    between && copy.count > 0 && copy.bytes / copy.count <= SMALL_BYTES
}

fn small_copies(stack: &LaunchStack) -> f64 {
    let small = stack.copies.iter().filter(|copy| is_small(copy));
    small.map(|copy| copy.count as f64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};
    use flatout_record::KernelKind;

    /// In ten steps; 100 steps per second.
    fn copying(count: u64, bytes: u64) -> Build {
        Build::steady(20)
            .batch(512)
            .phase(Phase::Transfer, 0.5)
            .phase(Phase::Compute, 0.5)
            .gpu(|gpu| gpu.util = Some(0.3))
            .kernels(&[(KernelKind::TensorCore, 300.0)])
            .copies(&["main (t.py:9)", "move (t.py:6)"], "HtoD", count, bytes, 10.0)
    }

    #[test]
    fn fires() {
        let finding = run(check, copying(1000, 1_000_000)).unwrap();
        assert_eq!(finding.places, [Place::new("t.py", 6)]);
        assert!(
            finding.title.en.starts_with("100 small copies"),
            "{}",
            finding.title.en
        );
    }

    #[test]
    fn quiet() {
        assert!(run(check, copying(30, 30_000)).is_none());
        assert!(run(check, copying(1000, 4 << 30)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
