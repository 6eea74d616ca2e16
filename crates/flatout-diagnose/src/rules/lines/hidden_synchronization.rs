//! # hidden-synchronization
//!
//! ## What it detects
//! A line in the step needs a value from the GPU to continue: a tensor in `if`, `nonzero`, a boolean mask, `.any()` or `.item()`. GPU
//! traces show several such waits per step.
//!
//! ## Why it is slow
//! The CPU waits until the GPU has finished all queued work, and then the GPU idles until the CPU launches the next work.
//!
//! ## Example
//! ```python
//! loss = losses[mask].mean()
//! ```
//!
//! ## Use instead
//! ```python
//! loss = (losses * mask).sum() / mask.sum()
//! ```
//!
//! ## Evidence
//! Stack samples of the training thread (or of a DataLoader worker) in this line and the functions it calls, and the source of the
//! line.
//!
//! ## Fix
//! Keep the decision on the GPU (`torch.where`, `clamp`, multiplying by a mask), or check every N steps.
//!
//! ## When it is wrong
//! The value decides which computation comes next.
//!
//! ## References
//! The guide "Why was the GPU idle?" explains how time is assigned to lines. TraceML also warns from 10% of the time.
//! <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>
//!
//! ---
//! ## 检测什么
//! 一步之内的某一行需要 GPU 上的值才能继续：`if` 中的 tensor、`nonzero`、布尔掩码、`.any()`、`.item()`，且 GPU 的记录显示每步有多次这样的等待。
//! ## 为什么慢
//! 主机停下来等 GPU 全部算完，GPU 又空等主机再次下发。
//! ## 证据
//! 训练线程（或 DataLoader worker）停在该行及其调用中的采样，以及该行的源码。
//! ## 怎么改
//! 把判断留在设备上（`torch.where`、`clamp`、乘以掩码），或每 N 步检查一次。
//! ## 何时不成立
//! 该值决定接下来做哪种计算。
//! ## 参考
//! 指南“GPU 为什么空闲？”说明了时间如何归到各行代码。TraceML 同样从 10% 起告警。
//! <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>

use crate::account::Span;
use crate::account::center::{in_backward, in_optimizer};
use crate::account::frame::Frame;
use crate::account::gpu_idle_share;
use crate::analysis::Analysis;
use crate::candidate::{Candidate, Reach, Stretch, severity_of};
use crate::known::{self, Known};
use flatout_core::{Evidence, Place, Severity, message};
use flatout_record::SyncStack;
use std::collections::BTreeMap;

pub const ID: &str = "hidden-synchronization";
pub const WORST: Severity = Severity::Critical;

/// Waits per step at one line from which on they keep the host from running ahead.
const WAITS: f64 = 4.0;
/// A GPU that is idle less does not wait for its host.
const IDLE: f64 = 0.25;
/// Of the time the GPU is idle, what may go when the host can run ahead, and what surely goes: launching still takes its time. 24 blocks
/// with boolean masks on an H200, idle 46% of the time: 1.73 times as fast without the masks.
const GOES: f64 = 0.9;
const SURELY: f64 = 0.3;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    known::candidate(analysis, Known::HiddenSync, ID).or_else(|| many_waits(analysis))
}

/// A line whose operators wait for the device many times per step, however short each wait is: after each the GPU has nothing to do
/// until the host has launched the next operator.
fn many_waits(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let idle = gpu_idle_share(analysis.data).filter(|idle| *idle >= IDLE)?;
    let windows = || {
        let all = analysis.data.windows.iter();
        all.filter(|window| !window.sync_stacks.is_empty())
    };
    let steps: u64 = windows().map(|window| window.steps).sum();
    let traced_ms: f64 = windows().map(|window| window.wall_ms).sum();
    let mut lines: BTreeMap<Place, (u64, f64)> = BTreeMap::new();
    for stack in windows().flat_map(|window| &window.sync_stacks) {
        if let Some(place) = line_of(stack) {
            let (count, ms) = lines.entry(place).or_default();
            *count += stack.count;
            *ms += stack.ms;
        }
    }
    // The program's own reads of the device have a rule of their own.
    lines.retain(|place, _| !analysis.syncs.iter().any(|site| site.place == *place));
    let (place, (count, ms)) = lines.into_iter().max_by_key(|(_, (count, _))| *count)?;
    let waits = count as f64 / steps.max(1) as f64;
    if waits < WAITS {
        return None;
    }
    let name = place
        .file
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let (name, line, shown) = (name.unwrap_or_default(), place.line, waits.round());
    let idle_s = idle * window.wall_s();
    Some(
        Candidate::new(
            ID,
            severity_of(idle * GOES),
            message!(
                en: "{shown} hidden synchronizations per step at {name}:{line}",
                zh: "{name}:{line} 每步有 {shown} 次隐藏的同步"
            ),
        )
        .detail(message!(
            en: "An operator at this line needs a result from the GPU before it can continue (a boolean \
            mask, nonzero, a data-dependent shape). After each wait the GPU has nothing to do until the \
            next launch.",
            zh: "该处的算子要等 GPU 返回结果才能继续（布尔掩码、nonzero、依赖数值的形状）。每次等待之后，GPU 在下一次下发前无事可做。"
        ))
        .evidence(analysis.in_window(
            Evidence::new(message!(en: "stream synchronizations per step", zh: "每步等待 stream 的次数"), waits, "").against(WAITS),
        ))
        .evidence(analysis.in_window(
            Evidence::new(message!(en: "GPU idle", zh: "GPU 空闲"), idle * 100.0, "%").against(IDLE * 100.0),
        ))
        .place(Some(&place))
        .claims(
            Stretch::Dispatch,
            Reach::Measured,
            (ms / traced_ms.max(f64::MIN_POSITIVE) * window.wall_s()).max(idle_s * SURELY),
            idle_s * GOES,
        )
        .explains(idle_s)
        .or_in(Stretch::Sync)
        .or_in(Stretch::Other)
        .code(
            Some(&place),
            message!(
                en: "Keep shapes fixed: multiply by the mask or use torch.where instead of boolean indexing, \
                and keep counts on the GPU",
                zh: "保持形状固定：用乘以掩码或 torch.where 代替布尔索引，计数留在 GPU 上"
            ),
        ),
    )
}

/// The user's innermost line, outside of backward and the optimizer.
fn line_of(stack: &SyncStack) -> Option<Place> {
    let frames = stack
        .frames
        .iter()
        .filter_map(|text| Frame::parse(text))
        .collect();
    let span = Span::of_frames(frames);
    if in_backward(&span) || in_optimizer(&span) {
        return None;
    }
    span.line().map(Frame::place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{CostlyLine, check as run, check_empty};

    fn costly(share: f64) -> CostlyLine {
        CostlyLine::new("loss (t.py:12)", r#"if (h.abs() > LIMIT).any():"#)
            .in_operators(share)
            .syncs(24)
    }

    #[test]
    fn fires() {
        let finding = run(check, costly(0.4).build()).unwrap();
        assert_eq!(
            (finding.rule.as_str(), finding.severity),
            (ID, Severity::Critical)
        );
        assert_eq!(finding.places[0].line, 12);
        assert_eq!(finding.fixes.len(), 1);
    }

    #[test]
    fn quiet() {
        assert!(run(check, costly(0.05).build()).is_none());
        let other = CostlyLine::new("other (t.py:12)", "x = self.rows[index] + 1").between_steps(0.05);
        assert!(run(check, other.build()).is_none());
    }

    /// A traced window of ten steps in which the GPU is idle for this share and line 23 waits this often per step.
    fn waiting(idle: f64, waits: u64) -> crate::testing::Build {
        crate::testing::Build::steady(20)
            .fact("device", "cuda")
            .kernels(&[(flatout_record::KernelKind::Elementwise, 1000.0 * (1.0 - idle))])
            .waits(&["main (t.py:50)", "forward (t.py:23)"], waits * 10)
            .waits(
                &[
                    "main (t.py:60)",
                    "backward (/v/site-packages/torch/_tensor.py:600)",
                ],
                waits * 20,
            )
    }

    #[test]
    fn fires_where_a_line_waits_many_times() {
        let finding = run(check, waiting(0.45, 30)).unwrap();
        assert_eq!((finding.rule.as_str(), finding.places[0].line), (ID, 23));
        assert!(finding.title.en.starts_with("30 hidden"), "{}", finding.title.en);
        assert!(run(check, waiting(0.45, 2)).is_none());
        assert!(run(check, waiting(0.05, 30)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
