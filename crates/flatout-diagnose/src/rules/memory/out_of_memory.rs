//! # out-of-memory
//!
//! ## What it detects
//! The program ran out of GPU memory or host memory.
//!
//! ## Why it is slow
//! The run ends, or the program catches the error and pays for the emptied cache and the repeated step.
//!
//! ## Example
//! ```python
//! loader = DataLoader(dataset, batch_size=512)
//! for x, y in loader:
//!     criterion(model(x), y).backward()
//!     optimizer.step()
//!     optimizer.zero_grad()
//! ```
//!
//! ## Use instead
//! ```python
//! loader = DataLoader(dataset, batch_size=256)
//! for step, (x, y) in enumerate(loader):
//!     (criterion(model(x), y) / 2).backward()
//!     if step % 2 == 1:
//!         optimizer.step()
//!         optimizer.zero_grad()
//! ```
//!
//! ## Evidence
//! The error, when it occurred, and the line.
//!
//! ## Fix
//! Halve the batch size and double gradient accumulation: the same step in two parts. Mixed precision halves the memory of
//! activations. If steps fitted at first, something is kept from each step: `total += loss` keeps every graph.
//!
//! ## When it is wrong
//! A batch size finder increases the batch until it fails.
//!
//! ## References
//! Lightning issues 8028 and 9625: out of memory after tuning the batch size.
//! <https://docs.pytorch.org/docs/stable/notes/faq.html>
//!
//! ---
//! ## 检测什么
//! 程序耗尽了显存或内存。
//! ## 为什么慢
//! 运行就此结束；或者程序捕获了它，付出清空缓存和重做一步的代价。
//! ## 证据
//! 错误本身、发生时间和所在行。
//! ## 怎么改
//! batch 减半、梯度累积加倍：同样的一步分两次完成。混合精度使激活值减半。若之前能正常运行一段时间，说明每步都有东西被保留：`total += loss` 会保留每个计算图。
//! ## 何时不成立
//! 有意试到失败为止的 batch 搜索。
//! ## 参考
//! Lightning issue 8028 和 9625：自动调整 batch 后显存不足。
//! <https://docs.pytorch.org/docs/stable/notes/faq.html>

use crate::analysis::{Analysis, Device};
use crate::candidate::Candidate;
use flatout_core::{Evidence, Message, Severity, message};
use flatout_record::EventKind;

pub const ID: &str = "out-of-memory";
pub const WORST: Severity = Severity::Critical;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let events: Vec<_> = analysis
        .data
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::OutOfMemory { message, place } => Some((event.t, message, place)),
            _ => None,
        })
        .collect();
    let (t, text, place) = events.last()?;
    let (times, second) = (events.len(), t.round());
    let line = text.lines().next().unwrap_or_default();
    let batch = analysis
        .window
        .as_ref()
        .and_then(|window| window.samples_per_step())
        .map(f64::round);
    let on_host = text.contains("CPUAllocator") || analysis.device() == Device::Cpu;
    let candidate = Candidate::new(
        ID,
        Severity::Critical,
        match on_host {
            true => message!(
                en: "Ran out of host memory {times} time(s), last at {second} s",
                zh: "内存不足 {times} 次，最后一次在第 {second} 秒"
            ),
            false => message!(
                en: "Ran out of GPU memory {times} time(s), last at {second} s",
                zh: "显存不足 {times} 次，最后一次在第 {second} 秒"
            ),
        },
    )
    .detail(Message::verbatim(line))
    .evidence(
        analysis.in_run(
            Evidence::new(
                message!(en: "out-of-memory errors", zh: "内存或显存不足的次数"),
                times as f64,
                "",
            )
            .against(1.0),
        ),
    )
    .place(place.as_ref());
    let candidate = match analysis.window.as_ref().map(|window| window.steps) {
        Some(steps) => candidate.code(
            place.as_ref(),
            message!(
                en: "{steps} steps ran before: look for tensors kept from step to step (`total += loss` \
                keeps every graph, `loss.detach()` does not)",
                zh: "之前已有 {steps} 步正常运行：检查每一步留下了什么（`total += loss` 会保留全部计算图，`loss.detach()` 不会）"
            ),
        ),
        None => candidate,
    };
    Some(match batch.filter(|batch| *batch >= 2.0) {
        Some(batch) => {
            let half = (batch / 2.0).floor();
            candidate.setting(
                "loader.batch_size",
                Some(format!("{batch}")),
                half,
                message!(
                    en: "batch_size={half} with twice the gradient accumulation: the same step in two parts",
                    zh: "batch_size={half} 并把梯度累积加倍：同样的一步分两次完成"
                ),
            )
        }
        None => candidate.code(
            place.as_ref(),
            message!(
                en: "Halve the batch size and double gradient accumulation",
                zh: "把 batch 减半，并把梯度累积加倍"
            ),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};

    #[test]
    fn fires() {
        let event = EventKind::OutOfMemory {
            message: "CUDA out of memory.\nTried".into(),
            place: None,
        };
        let finding = run(check, Build::steady(20).event(9.0, event)).unwrap();
        assert_eq!(finding.detail.en, "CUDA out of memory.");
    }

    #[test]
    fn quiet() {
        assert!(run(check, Build::steady(20)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
