//! # pageable-copies
//!
//! ## What it detects
//! Batches are copied to the GPU from ordinary (pageable) memory, and the copies take a noticeable share of the time.
//!
//! ## Why it is slow
//! The driver first copies pageable memory into a pinned buffer of its own. The copy is slower, and the CPU waits for it, so it
//! cannot overlap with the previous step.
//!
//! ## Example
//! ```python
//! loader = DataLoader(dataset, num_workers=8)
//! for x, y in loader:
//!     x = x.to("cuda")
//! ```
//!
//! ## Use instead
//! ```python
//! loader = DataLoader(dataset, num_workers=8, pin_memory=True)
//! for x, y in loader:
//!     x = x.to("cuda", non_blocking=True)
//! ```
//!
//! ## Evidence
//! Time copying to the GPU, the actual value of `pin_memory`, and the bytes per batch.
//!
//! ## Fix
//! Set `pin_memory=True` on the DataLoader and copy with `.to(device, non_blocking=True)`.
//!
//! ## When it is wrong
//! Little memory can be pinned, or a custom batch type has no `pin_memory()`. If the GPU is always busy, nothing is lost: flatout
//! counts only the time that would be saved if copies overlapped with steps.
//!
//! ## References
//! TraceML warns when copies take 10% of a step, and reports 20% as critical. PyTorch's tutorial on pinned memory and `non_blocking`.
//! <https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html>
//!
//! ---
//! ## 检测什么
//! batch 从普通的可分页内存拷贝到 GPU，拷贝占用了可见的时间。
//! ## 为什么慢
//! 驱动要先把可分页内存拷到自己的锁页缓冲区；拷贝更慢，而且主机要等它完成，无法与上一步的计算重叠。
//! ## 证据
//! 拷贝到设备的时间；真正生效的 `pin_memory`；一个 batch 的字节数。
//! ## 怎么改
//! loader 设置 `pin_memory=True`，并用 `.to(device, non_blocking=True)`。
//! ## 何时不成立
//! 可锁页的内存很少，或自定义的 batch 类型没有 `pin_memory()`。设备一直繁忙时，拷贝只是在等待设备，没有损失：只统计拷贝与计算重叠后可省去的时间。
//! ## 参考
//! TraceML：主机到设备的拷贝占一步的 10% 和 20%。PyTorch 关于锁页内存和 `non_blocking` 的指南。
//! <https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html>

use crate::analysis::{Analysis, Device};
use crate::candidate::{Candidate, Reach, Stretch, severity_of};
use flatout_core::{Evidence, Severity, message, units};
use flatout_record::Phase;

pub const ID: &str = "pageable-copies";
pub const WORST: Severity = Severity::Critical;

/// Half of TraceML's first level: below it nothing is said.
const SHARE: f64 = 0.05;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let loader = analysis.train_loader();
    let traced = Traced::of(analysis);
    let pinned = analysis
        .facts
        .switch("input.pinned")
        .or(loader.and_then(|loader| loader.pin_memory));
    let pageable = match &traced {
        Some(traced) => traced.share >= SHARE || pinned == Some(false),
        None => pinned == Some(false),
    };
    if analysis.device() != Device::Cuda || !pageable {
        return None;
    }
    let traced_s = traced
        .as_ref()
        .map_or(0.0, |traced| traced.share * window.wall_s());
    // Copies into a tensor that exists are no phase of their own: only the trace knows them.
    let seconds = window.seconds(Phase::Transfer).max(traced_s);
    let shown = units::percent(seconds / window.wall_s());
    let per_step = analysis
        .facts
        .number("input.bytes")
        .map(|bytes| bytes * window.steps as f64);
    let bytes = traced.map_or(per_step, |traced| Some(traced.bytes_per_s * window.wall_s()));
    // However well it overlaps, a copy is no faster than the bus.
    let on_the_bus_s = bytes
        .zip(bus_bytes_s(analysis))
        .map_or(0.0, |(bytes, speed)| bytes / speed);
    // Nor does a step take less than the device computes: a copy that only waits for a busy device costs nothing.
    let busy_s = analysis
        .device_busy_share()
        .map_or(0.0, |busy| busy * window.wall_s());
    let least_s = (window.wall_s() - seconds).max(on_the_bus_s).max(busy_s);
    let possible_s = (window.wall_s() - least_s).max(0.0);
    let share = possible_s / window.wall_s();
    if share < SHARE {
        return None;
    }
    let place = loader.and_then(|loader| loader.place.as_ref());
    let candidate = Candidate::new(
        ID,
        severity_of(share),
        message!(
            en: "Copies from pageable memory take {shown} of the time",
            zh: "从可分页内存拷贝到 GPU 占 {shown} 的时间"
        ),
    )
    .evidence(analysis.phase_evidence(Phase::Transfer, SHARE))
    .place(place)
    .claims(Stretch::Transfer, Reach::Specific, possible_s * 0.4, possible_s)
    .explains(seconds)
    .or_in(Stretch::Dispatch)
    .or_in(Stretch::Sync);
    let mut candidate = match loader {
        Some(_) => candidate.setting(
            "loader.pin_memory",
            Some("false".into()),
            "true",
            message!(en: "pin_memory=True", zh: "pin_memory=True"),
        ),
        None => candidate.code(
            place,
            message!(
                en: "Keep the data in pinned memory: `data = data.pin_memory()` once, or copy each batch into a pinned buffer",
                zh: "把数据放在锁页内存中：先执行一次 `data = data.pin_memory()`，或把每个 batch 拷贝到锁页缓冲区"
            ),
        ),
    }
    .code(
        place,
        message!(
            en: "Copy with .to(device, non_blocking=True), so that the copy overlaps with the previous step",
            zh: "用 .to(device, non_blocking=True) 拷贝，使其与上一步重叠"
        ),
    );
    if let Some(bytes) = bytes {
        let rate = bytes / seconds.max(1e-9) / 1e9;
        let what = message!(en: "copy bandwidth", zh: "拷贝速度");
        candidate = candidate.evidence(analysis.in_window(Evidence::new(what, rate, "GB/s")));
    }
    Some(candidate)
}

/// Copies from pageable memory that the windows traced.
struct Traced {
    /// Of the wall time.
    share: f64,
    bytes_per_s: f64,
}

impl Traced {
    fn of(analysis: &Analysis) -> Option<Self> {
        let windows = &analysis.data.windows;
        let wall_ms: f64 = windows.iter().map(|window| window.wall_ms).sum();
        let pageable = || {
            let copies = windows.iter().flat_map(|window| &window.copies);
            copies.filter(|copy| copy.direction == "HtoD" && copy.memory == "pageable")
        };
        let ms: f64 = pageable().map(|copy| copy.ms).sum();
        let bytes: u64 = pageable().map(|copy| copy.bytes).sum();
        (wall_ms > 0.0).then(|| Self {
            share: ms / wall_ms,
            bytes_per_s: bytes as f64 / (wall_ms / 1e3),
        })
    }
}

/// What the card's bus carries at most: 1 GB/s a lane in generation 3, twice as much in each later one.
fn bus_bytes_s(analysis: &Analysis) -> Option<f64> {
    let info = &analysis.busiest_gpu()?.info;
    let (generation, lanes) = (info.pcie_generation_max?, info.pcie_width_max?);
    (generation > 0 && lanes > 0).then(|| 1e9 * 2f64.powi(generation as i32 - 3) * f64::from(lanes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};
    use serde_json::json;

    fn copying(pinned: bool) -> Build {
        Build::steady(20)
            .phase(Phase::Transfer, 0.3)
            .phase(Phase::Compute, 0.7)
            .gpu(|gpu| gpu.util = Some(0.65))
            .fact("input.bytes", 1 << 24)
            .loader(0, json!({"num_workers": 2, "pin_memory": pinned}))
    }

    #[test]
    fn fires() {
        assert!(run(check, copying(false)).is_some());
        assert_eq!(causes(copying(false).fact("amp.dtype", "bf16")), [ID]);
    }

    #[test]
    fn the_bus_bounds_the_gain() {
        let mut data = copying(false)
            .fact("input.bytes", 120e6)
            .fact("amp.dtype", "bf16")
            .done();
        let gain = |data: &flatout_record::RunData| crate::diagnose(data).findings[0].gain.unwrap().high;
        let free = gain(&data);
        let info = data.info.gpus.get_mut(&0).unwrap();
        (info.pcie_generation_max, info.pcie_width_max) = (Some(3), Some(16));
        // 100 batches a second of 120 MB need 0.75 s of each second on that bus.
        assert!(
            gain(&data) < free && (gain(&data) - 1.0 / 0.75).abs() < 0.02,
            "{}",
            gain(&data)
        );
    }

    #[test]
    fn what_waits_for_a_busy_device_loses_nothing() {
        let small = |busy: f64| {
            copying(false)
                .fact("input.bytes", 128 << 10)
                .busy(busy)
                .gpu(move |gpu| gpu.util = Some(busy))
        };
        assert!(run(check, small(0.97)).is_none());
        // Host and device take turns: side by side they would be faster.
        assert!(run(check, small(0.65)).is_some());
    }

    #[test]
    fn quiet() {
        assert!(run(check, copying(true)).is_none());
        assert!(run(check, copying(false).phase(Phase::Transfer, 0.01)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
