//! # gpu-idle
//!
//! ## What it detects
//! The GPU is idle for a large part of the time, and no more specific rule explains why.
//!
//! ## Why it is slow
//! The CPU launches too little work, too late: it runs Python code or small operators, or does something else entirely.
//!
//! ## Example
//! ```python
//! for x, y in loader:
//!     loss = train_step(x, y)
//!     history.append(summarize(x.tolist()))
//! ```
//!
//! ## Use instead
//! ```python
//! for x, y in loader:
//!     loss = train_step(x, y)
//! ```
//!
//! ## Evidence
//! CUPTI records of short windows, or the driver's utilization without them; stack samples of the training thread at the moments when
//! the GPU was idle, and the line that accounts for most of them.
//!
//! ## Fix
//! Check that line: do it less often, on whole tensors, or in another thread. Larger batches and CUDA graphs give the GPU more work
//! per launch.
//!
//! ## When it is wrong
//! The workload is too small for any GPU, or another process sets the pace of training.
//!
//! ## References
//! The guide "Why was the GPU idle?" explains how time is assigned to lines.
//! See also `host-bound-dispatch` and `loader-starved`.
//! <https://github.com/flatout/flatout/blob/main/docs/guide/gpu-at-3-percent.md>
//!
//! ---
//! ## 检测什么
//! GPU 在很大一部分时间里无事可做，且没有更具体的规则能说明原因。
//! ## 为什么慢
//! 主机下发的工作太少、太晚：它在运行 Python、很小的算子，或在做别的事。
//! ## 证据
//! 短窗口内的 CUPTI 记录；没有时用驱动的利用率；以及 GPU 空闲时刻训练线程的采样，和占比最多的那一行。
//! ## 怎么改
//! 看那一行：减少次数、对整个 tensor 操作，或放到另一个线程；更大的 batch 和 CUDA graph 能让每次下发的工作更多。
//! ## 何时不成立
//! 工作量对 GPU 来说太小，或训练由另一个进程控制节奏。
//! ## 参考
//! 指南“GPU 为什么空闲？”说明了时间如何归到各行代码。
//! 另见 `host-bound-dispatch`、`loader-starved`。
//! <https://github.com/flatout/flatout/blob/main/docs/guide/gpu-at-3-percent.md>

use crate::account::center::{Center, centers};
use crate::analysis::{Analysis, Device};
use crate::candidate::{Candidate, Reach, Stretch, severity_of};
use flatout_core::{Confidence, Evidence, Finding, Kind, Severity, message, units};
use flatout_record::GpuState;

pub const ID: &str = "gpu-idle";
pub const WORST: Severity = Severity::Critical;

/// TraceML calls utilization up to 70% moderate; SageMaker calls it low.
const IDLE: f64 = 0.30;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let idle = 1.0 - analysis.device_busy_share()?;
    if analysis.device() != Device::Cuda || idle < IDLE {
        return None;
    }
    let shown = units::percent(idle);
    let line = idle_line(analysis);
    let title = match &line {
        Some(center) => {
            let at = center.described();
            message!(
                en: "The GPU is idle {shown} of the time, mostly while the CPU runs {at}",
                zh: "GPU 有 {shown} 的时间空闲，其间 CPU 大多在执行 {at}"
            )
        }
        None => message!(en: "The GPU is idle {shown} of the time", zh: "GPU 有 {shown} 的时间空闲"),
    };
    let place = line.as_ref().map(|center| center.hot.place());
    let idle_s = idle * window.wall_s();
    let candidate = Candidate::new(ID, severity_of(idle), title)
        .confidence(Confidence::Medium)
        .evidence(
            analysis.in_window(
                Evidence::new(message!(en: "GPU idle", zh: "GPU 空闲"), idle * 100.0, "%")
                    .against(IDLE * 100.0),
            ),
        )
        .place(place.as_ref())
        .claims(Stretch::Dispatch, Reach::General, 0.0, idle_s)
        .or_in(Stretch::Other)
        .or_in(Stretch::Data)
        .or_in(Stretch::Sync)
        .or_in(Stretch::Transfer)
        .code(
            place.as_ref(),
            message!(
                en: "Give the GPU more work per launch here (a larger batch, torch.compile, whole tensors), \
                or move this code out of the loop",
                zh: "让此处每次下发的工作更多（更大的 batch、torch.compile、整个 tensor），或把这项工作移出循环"
            ),
        );
    Some(candidate)
}

/// Where another finding names a cause, that the GPU is idle is its symptom.
pub fn give_way(findings: &mut [Finding]) {
    let names_one = |finding: &Finding| {
        finding.rule != ID && finding.kind == Kind::Cause && finding.severity >= Severity::Warning
    };
    if !findings.iter().any(names_one) {
        return;
    }
    for finding in findings.iter_mut().filter(|finding| finding.rule == ID) {
        finding.kind = Kind::Symptom;
        finding.severity = Severity::Information;
        finding.gain = None;
    }
    findings.sort_by_key(|finding| finding.kind != Kind::Cause);
}

/// The line at which the host is for most of the GPU's idle time.
fn idle_line(analysis: &Analysis) -> Option<Center> {
    let account = analysis.account.as_ref()?;
    let traced = account.spans.iter().any(|span| span.gpu.is_some());
    let idle = centers(account, analysis.data, |span| {
        if traced {
            span.gpu == Some(GpuState::Idle)
        } else {
            !span.frames.is_empty()
        }
    });
    idle.into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};

    fn busy(share: f64) -> Build {
        Build::steady(20).gpu(|gpu| gpu.util = Some(share)).stack_of(
            &["<module> (t.py:9)"],
            100,
            Some(flatout_record::Phase::Compute),
            false,
        )
    }

    #[test]
    fn fires() {
        let finding = run(check, busy(0.2)).unwrap();
        assert_eq!(
            (finding.severity, finding.places[0].line),
            (Severity::Critical, 9)
        );
        let causes = crate::testing::causes(busy(0.2));
        assert!(!causes.is_empty(), "a GPU at 20% is never without a cause");
    }

    #[test]
    fn quiet() {
        assert!(run(check, busy(0.8)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
