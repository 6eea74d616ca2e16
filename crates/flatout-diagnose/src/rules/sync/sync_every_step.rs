//! # sync-every-step
//!
//! ## What it detects
//! A line of the program reads from the GPU at every step: `.item()`, `.cpu()`, `.numpy()`, `print(tensor)`,
//! `torch.cuda.synchronize()`.
//!
//! ## Why it is slow
//! Such a read waits until the GPU has finished all queued work. The CPU cannot launch work ahead, so the GPU then waits for the CPU:
//! they take turns instead of working at the same time.
//!
//! ## Example
//! ```python
//! for x, y in loader:
//!     loss = train_step(x, y)
//!     total += loss.item()
//! ```
//!
//! ## Use instead
//! ```python
//! for x, y in loader:
//!     loss = train_step(x, y)
//!     total += loss.detach()
//! print(total.item() / len(loader))
//! ```
//!
//! ## Evidence
//! The lines, the reads per step and the time blocked, and the time that would be saved if CPU and GPU overlapped.
//!
//! ## Fix
//! Keep the value on the GPU (`loss.detach()`), accumulate it there, and read it every N steps.
//!
//! ## When it is wrong
//! If the GPU is the bottleneck anyway, the read only waits for necessary work: nothing would be gained, and the rule does not fire.
//!
//! ## References
//! PyTorch's performance tuning guide, "Avoid unnecessary CPU-GPU synchronization". nsys-ai reports synchronizations from 2% of the
//! GPU time.
//! <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>
//!
//! ---
//! ## 检测什么
//! 程序中某一行每步都从设备读取：`.item()`、`.cpu()`、`.numpy()`、`print(tensor)`、`torch.cuda.synchronize()`。
//! ## 为什么慢
//! 这样的读取要等设备完成之前的全部工作。主机无法提前下发，于是设备又要等主机：两者轮流工作，而不是同时工作。
//! ## 证据
//! 这些行、每步读取次数和阻塞时间；若主机与设备能够重叠还会剩下多少时间。
//! ## 怎么改
//! 把数值留在设备上（`loss.detach()`），在那里累加，每 N 步读一次。
//! ## 何时不成立
//! 设备本身就是瓶颈时，读取等待的是必须完成的工作：没有收益，本规则不会报告。
//! ## 参考
//! PyTorch 性能调优指南：避免不必要的 CPU-GPU 同步。nsys-ai 从 GPU 时间的 2% 起报告同步。
//! <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>

use crate::analysis::{Analysis, Device};
use crate::candidate::{Candidate, Reach, Stretch, severity_of};
use flatout_core::{Evidence, Severity, message, units};
use flatout_record::Phase;

pub const ID: &str = "sync-every-step";
pub const WORST: Severity = Severity::Critical;

/// Reads a step from which a line counts as "every step".
const PER_STEP: f64 = 0.5;
/// Share of the time that would go; below it, nothing is said.
const SHARE: f64 = 0.05;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    if analysis.device() != Device::Cuda {
        return None;
    }
    let sites: Vec<_> = analysis
        .syncs
        .iter()
        .filter(|site| site.per_step() >= PER_STEP)
        .collect();
    let worst = sites.first()?;
    let (wall_s, sync_s) = (window.wall_s(), window.seconds(Phase::Sync));
    // Host and device would work side by side: the step then takes the longer of the two.
    let busy_s = analysis.device_busy_share().map_or(0.0, |busy| busy * wall_s);
    let goes_s = wall_s - (wall_s - sync_s).max(busy_s);
    let share = goes_s / wall_s;
    if share < SHARE {
        return None;
    }
    let blocked_s: f64 = sites.iter().map(|site| site.blocked_s).sum();
    let (what, place) = (&worst.what, &worst.place);
    let (lines, blocked) = (sites.len(), units::percent(blocked_s / wall_s));
    let mut candidate = Candidate::new(
        ID,
        severity_of(share),
        message!(
            en: "Steps wait to read from the GPU: {what} at {place} ({lines} line(s)), {blocked} of the time",
            zh: "每一步都等待读取 GPU：共 {lines} 处，首先是 {place} 的 {what}；占 {blocked} 的时间"
        ),
    )
    .evidence(
        analysis.in_window(
            Evidence::new(
                message!(en: "GPU reads per step", zh: "每步从 GPU 读取的次数"),
                worst.per_step(),
                "",
            )
            .against(PER_STEP),
        ),
    )
    .evidence(
        analysis.in_window(
            Evidence::new(
                message!(en: "time saved when CPU and GPU overlap", zh: "CPU 与 GPU 重叠后可省去的时间"),
                share * 100.0,
                "%",
            )
            .against(SHARE * 100.0),
        ),
    )
    .evidence(analysis.phase_evidence(Phase::Sync, SHARE))
    .claims(Stretch::Sync, Reach::Specific, goes_s * 0.3, goes_s)
    .code(
        Some(place),
        message!(
            en: "Keep it on the GPU: use `total += loss.detach()`, and call .item() every 50 steps",
            zh: "让它留在设备上：`total += loss.detach()`，每 50 步再用 .item() 读取一次"
        ),
    );
    for site in sites {
        candidate = candidate.place(Some(&site.place));
    }
    Some(candidate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};
    use flatout_core::Place;
    use flatout_record::EventKind;

    fn reading(count: u64, util: f64) -> Build {
        Build::steady(20)
            .batch(512)
            .phase(Phase::Sync, 0.4)
            .phase(Phase::Compute, 0.35)
            .gpu(|gpu| gpu.util = Some(util))
            .fact("amp.dtype", "bf16")
            .each_second(move || EventKind::Sync {
                what: "item".into(),
                place: Place::new("train.py", 31),
                count,
                blocked_ms: 400.0,
                steps: 100,
                device: Some("cuda".into()),
            })
    }

    #[test]
    fn fires() {
        let finding = run(check, reading(100, 0.65)).unwrap();
        assert_eq!(finding.places[0].line, 31);
        assert!(causes(reading(100, 0.65)).contains(&ID.to_owned()));
    }

    #[test]
    fn quiet() {
        // Once in a hundred steps; and with a device that is full, the wait is for work.
        assert!(run(check, reading(1, 0.65)).is_none());
        assert!(run(check, reading(100, 0.99)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
