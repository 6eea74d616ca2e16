//! # exposed-communication
//!
//! ## What it detects
//! The ranks transfer gradients while none of them computes.
//!
//! ## Why it is slow
//! DistributedDataParallel reduces a bucket of gradients as soon as it is complete, while backward computes the next ones. Transfers
//! that remain after backward has ended are not hidden: with one bucket that is all of them, with slow links most of them.
//!
//! ## Example
//! ```python
//! model = DistributedDataParallel(model, find_unused_parameters=True)
//! ```
//!
//! ## Use instead
//! ```python
//! model = DistributedDataParallel(model, gradient_as_bucket_view=True, static_graph=True)
//! ```
//!
//! ## Evidence
//! Time in collectives after the last rank has arrived, from the timestamps of all ranks (waiting for a slow rank does not count). On
//! a GPU: time in which only NCCL kernels run, which includes waiting.
//!
//! ## Fix
//! More and smaller buckets (`bucket_cap_mb`), `gradient_as_bucket_view=True`, `static_graph=True` if the graph does not change,
//! `find_unused_parameters=False` if every parameter is used. Fewer synchronizations (`no_sync()` while accumulating, larger
//! batches). Fewer bytes (`bf16_compress_hook`).
//!
//! ## When it is wrong
//! Models of a few kilobytes are bound by the latency of a collective: only fewer synchronizations help.
//!
//! ## References
//! PyTorch's notes on DistributedDataParallel: buckets, overlap, `gradient_as_bucket_view`, communication hooks.
//! <https://docs.pytorch.org/docs/stable/notes/ddp.html>
//!
//! ---
//! ## 检测什么
//! 各 rank 在传输梯度，而没有 rank 在计算。
//! ## 为什么慢
//! DistributedDataParallel 在一个 bucket 的梯度齐备后立即归约，同时 backward 继续计算后面的梯度。backward 结束后剩下的部分就无法被掩盖：只有一个 bucket 时全部剩下，
//! 链路慢时剩下大部分。
//! ## 证据
//! 根据所有 rank 的时间戳：最后一个 rank 到达之后在集合通信中的时间，不含等待慢 rank 的时间。在 GPU 上：只有 NCCL kernel 运行的时间，其中包含等待。
//! ## 怎么改
//! 更多、更小的 bucket（`bucket_cap_mb`）；`gradient_as_bucket_view=True`；计算图不变时用 `static_graph=True`；所有参数都用到时用 `find_unused_parameters=False`；
//! 减少同步次数（累积梯度时用 `no_sync()`，增大 batch）；减少字节数（`bf16_compress_hook`）。
//! ## 何时不成立
//! 只有几 KB 的模型受限于集合通信的延迟：只有减少同步次数才有用。
//! ## 参考
//! PyTorch 关于 DistributedDataParallel 的说明：bucket、重叠、`gradient_as_bucket_view`、通信 hook。
//! <https://docs.pytorch.org/docs/stable/notes/ddp.html>

use crate::account::activity::Activity;
use crate::analysis::Analysis;
use crate::analysis::collectives::GRADIENTS;
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE, severity_of};
use flatout_core::{Confidence, Evidence, Place, Severity, message, units};

pub const ID: &str = "exposed-communication";
pub const WORST: Severity = Severity::Critical;

/// Up to this many buckets leave backward little to hide behind.
const FEW_BUCKETS: f64 = 2.0;
/// Below this size a bucket's latency costs more than overlapping gains.
const SMALL_BYTES: f64 = 1e6;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref().filter(|window| window.steps > 0)?;
    let found = on_host(analysis).or_else(|| on_gpu(analysis))?;
    let share = found.seconds / window.wall_s();
    if share < WARNING_SHARE {
        return None;
    }
    let (shown, time) = (
        units::percent(share),
        units::duration(found.seconds / window.steps as f64),
    );
    let mut candidate = Candidate::new(
        ID,
        severity_of(share),
        message!(
            en: "Ranks transfer data while none of them computes: {shown} of each step, {time}",
            zh: "各 rank 传输数据时没有计算：占每步的 {shown}，{time}"
        ),
    )
    .confidence(found.confidence)
    .evidence(
        analysis.in_window(
            Evidence::new(
                message!(en: "transfer between ranks that nothing overlaps", zh: "未与计算重叠的 rank 间传输"),
                share * 100.0,
                "%",
            )
            .against(WARNING_SHARE * 100.0),
        ),
    )
    .place(found.place.as_ref())
    .claims(found.stretch, Reach::Specific, 0.0, found.seconds);
    if let Some(bytes) = analysis.facts.number("model.bytes") {
        candidate = candidate.evidence(Evidence::new(
            message!(en: "parameters of the model", zh: "模型参数大小"),
            bytes / 1e6,
            "MB",
        ));
    }
    Some(with_fixes(analysis, candidate, found.place.as_ref()))
}

struct Exposed {
    seconds: f64,
    place: Option<Place>,
    stretch: Stretch,
    confidence: Confidence,
}

/// From the stamps of all ranks.
fn on_host(analysis: &Analysis) -> Option<Exposed> {
    let collectives = analysis.collectives.as_ref()?;
    let largest = collectives
        .sites
        .iter()
        .filter(|site| site.transfer_s.is_some())
        .max_by(|a, b| {
            a.transfer_s
                .unwrap_or(0.0)
                .total_cmp(&b.transfer_s.unwrap_or(0.0))
        })?;
    Some(Exposed {
        seconds: collectives.transfer_s()?,
        place: largest.place.clone(),
        stretch: Stretch::Communication,
        confidence: Confidence::High,
    })
}

/// From traces of the GPU.
fn on_gpu(analysis: &Analysis) -> Option<Exposed> {
    let seconds = analysis.account.as_ref()?.seconds(Activity::GpuCommunicating);
    (seconds > 0.0).then_some(Exposed {
        seconds,
        place: None,
        stretch: Stretch::Device,
        // A kernel that waits for another rank looks the same.
        confidence: Confidence::Medium,
    })
}

fn with_fixes(analysis: &Analysis, mut candidate: Candidate, place: Option<&Place>) -> Candidate {
    let facts = &analysis.facts;
    let wrapped = analysis.mention(&["DistributedDataParallel(", "DDP("]);
    let at = wrapped.as_ref().or(place);
    let is = |key: &str| facts.switch(key);
    let sites = analysis.collectives.iter().flat_map(|all| &all.sites);
    let ddp = sites.clone().any(|site| site.op == GRADIENTS) || is("ddp.static_graph").is_some();
    if !ddp {
        return candidate.code(
            place,
            message!(
                en: "Call it less often, or use async_op=True and call wait() after other work",
                zh: "减少调用次数，或用 async_op=True，在其他工作之后再 wait()"
            ),
        );
    }
    if is("ddp.find_unused_parameters") == Some(true) {
        candidate = candidate.code(
            at,
            message!(
                en: "DistributedDataParallel(…, find_unused_parameters=False) if every parameter gets a \
                gradient",
                zh: "如果每个参数都有梯度：DistributedDataParallel(…, find_unused_parameters=False)"
            ),
        );
    }
    let (bytes, bucket) = (facts.number("model.bytes"), facts.number("ddp.bucket_bytes"));
    if let (Some(bytes), Some(bucket)) = (bytes, bucket)
        && bytes <= bucket * FEW_BUCKETS
        && bytes / 4.0 >= SMALL_BYTES
    {
        let size = ((bytes / 4e6).round() as u64).max(1);
        let count = (bytes / bucket).ceil();
        candidate = candidate.code(
            at,
            message!(
                en: "DistributedDataParallel(…, bucket_cap_mb={size}): the gradients fit in {count} \
                bucket(s), so nothing can overlap",
                zh: "DistributedDataParallel(…, bucket_cap_mb={size})：梯度只有 {count} 个 bucket，无法与计算重叠"
            ),
        );
    }
    if is("ddp.gradient_as_bucket_view") == Some(false) {
        candidate = candidate.code(
            at,
            message!(
                en: "DistributedDataParallel(…, gradient_as_bucket_view=True): avoids the copy between \
                gradients and buckets",
                zh: "DistributedDataParallel(…, gradient_as_bucket_view=True)：梯度与 bucket 之间不再拷贝"
            ),
        );
    }
    candidate.code(
        place,
        message!(
            en: "Synchronize less often: use a larger batch, or no_sync() while accumulating gradients",
            zh: "减少同步次数：增大 batch，或在累积梯度时用 no_sync()"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};
    use flatout_core::Fix;

    #[test]
    fn fires() {
        let build = Build::steady(20)
            .fact("model.bytes", 20_000_000)
            .fact("ddp.bucket_bytes", 26_214_400)
            .fact("ddp.gradient_as_bucket_view", false)
            .collective(10.0, 400.0, 0.0);
        let finding = run(check, build).unwrap();
        assert!(finding.title.en.contains("42.1% of each step") || finding.title.en.contains("40"));
        let said = |text: &str| {
            let has = |fix: &Fix| matches!(fix, Fix::Code { say, .. } if say.en.contains(text));
            finding.fixes.iter().any(has)
        };
        assert!(said("bucket_cap_mb=5") && said("gradient_as_bucket_view"));
        assert!(!said("find_unused"));
    }

    #[test]
    fn quiet() {
        // Waiting for a slow rank is another rule's.
        assert!(run(check, Build::steady(20).collective(600.0, 30.0, 0.0)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
