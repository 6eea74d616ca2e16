//! # no-single-cause
//!
//! ## What it detects
//! No single cause takes a tenth of the time, although the device could do more: the GPU is busy less than 85% of the time, or,
//! without a GPU, the CPU runs operators less than half of the time.
//!
//! ## Why it is slow
//! The time is spread over many lines, or spent in a part of the program that no rule covers.
//!
//! ## Evidence
//! The time breakdown of the steady steps, and its largest line.
//!
//! ## Fix
//! Look at the lines that take most of the time. `flatout diagnose` and the report list them.
//!
//! ## When it is wrong
//! The model is too small to keep this device busy.
//!
//! ## References
//! The guide "Why was the GPU idle?" explains how time is assigned to lines.
//! See also `nothing-wrong` and `too-little-data`.
//! <https://github.com/flatout/flatout/blob/main/docs/guide/diagnose.md>
//!
//! ---
//! ## 检测什么
//! 没有任何原因占到十分之一的时间，但设备还有余力：GPU 忙碌的时间不到 85%，或没有 GPU 时主机在算子中的时间不到一半。
//! ## 为什么慢
//! 时间分散在许多行，或在没有规则认识的地方。
//! ## 证据
//! 稳定步骤的时间账，及其中最大的一行。
//! ## 怎么改
//! 查看占时间最多的那些行：`flatout diagnose` 和报告会列出它们。
//! ## 何时不成立
//! 模型太小，无法让该设备一直忙碌。
//! ## 参考
//! 指南“GPU 为什么空闲？”说明了时间如何归到各行代码。
//! 另见 `nothing-wrong`、`too-little-data`。
//! <https://github.com/flatout/flatout/blob/main/docs/guide/diagnose.md>

use crate::account::activity::Activity;
use crate::account::center::{Center, centers};
use crate::account::{Account, Row};
use crate::analysis::{Analysis, Device};
use crate::candidate::WARNING_SHARE;
use flatout_core::{Confidence, Evidence, Finding, Kind, Message, Place, Severity, message, units};

pub const ID: &str = "no-single-cause";

/// A GPU that computes most of the time; without one, a host that is in operators most of the time.
const BUSY: f64 = 0.85;
const IN_OPERATORS: f64 = 0.5;

/// Whether the device is well used, as far as anything tells. What nothing tells is not well used.
pub fn well_used(analysis: &Analysis) -> bool {
    if let Some(busy) = busy_share(analysis) {
        return busy >= BUSY;
    }
    if analysis.device() == Device::Cuda {
        return false;
    }
    let Some(account) = &analysis.account else {
        return analysis.computing_share() >= IN_OPERATORS;
    };
    let useful = [
        Activity::Operators,
        Activity::Evaluating,
        Activity::Copying,
        Activity::Synchronizing,
    ];
    let seconds: f64 = useful.iter().map(|activity| account.seconds(*activity)).sum();
    account.steps > 0 && seconds >= account.wall_s * IN_OPERATORS
}

/// How busy the GPU is; of a program whose device is unknown, what the driver tells.
fn busy_share(analysis: &Analysis) -> Option<f64> {
    let driver = || {
        let unknown = analysis.device() == Device::Unknown;
        analysis.busiest_gpu().filter(|_| unknown)?.util
    };
    analysis.device_busy_share().or_else(driver)
}

/// A part of the time that could go.
pub struct Part {
    share: f64,
    what: Message,
    place: Option<Place>,
}

/// The largest part of a tenth or more that is neither the model's nor the optimizer's work: a line aside from the step, one that prepares
/// batches, waiting, saving, collecting garbage.
pub fn avoidable(analysis: &Analysis) -> Option<Part> {
    let account = analysis.account.as_ref()?;
    let lines = &analysis.lines;
    let of_lines = lines.aside.iter().chain(&lines.in_forward).chain(&lines.data);
    let of_lines = of_lines.map(|center| part_of(account, center));
    const WAITS: [Activity; 3] = [
        Activity::WaitingForBatch,
        Activity::CollectingGarbage,
        Activity::Saving,
    ];
    let of_waits = WAITS.iter().map(|activity| {
        let found = centers(account, analysis.data, |span| span.activity == *activity);
        Part {
            share: account.seconds(*activity) / account.wall_s,
            what: activity.name(),
            place: found.first().map(|center| center.hot.place()),
        }
    });
    of_lines
        .chain(of_waits)
        .filter(|part| part.share >= WARNING_SHARE)
        .max_by(|a, b| a.share.total_cmp(&b.share))
}

fn part_of(account: &Account, center: &Center) -> Part {
    Part {
        share: center.seconds / account.wall_s,
        what: center.activity().name(),
        place: Some(center.hot.place()),
    }
}

/// The largest line of the account; what the GPU computes only where nothing else has a line.
fn largest(analysis: &Analysis) -> Option<Part> {
    let rows = || analysis.account.iter().flat_map(|account| &account.rows);
    let lined = |row: &&Row| row.place.is_some();
    let row = rows()
        .filter(lined)
        .find(|row| !row.activity.on_gpu())
        .or_else(|| rows().find(lined))?;
    Some(Part {
        share: row.share,
        what: row.activity.name(),
        place: row.place.clone(),
    })
}

/// No rule names a cause, but the device could do more: where the time goes.
pub fn finding(analysis: &Analysis) -> Finding {
    let part = avoidable(analysis).or_else(|| largest(analysis));
    let title = match &part {
        Some(part) => {
            let shown = units::percent(part.share);
            let place = part
                .place
                .as_ref()
                .map(|place| format!("{place}: "))
                .unwrap_or_default();
            let zh_place = part
                .place
                .as_ref()
                .map(|place| format!("{place}："))
                .unwrap_or_default();
            let what = &part.what;
            Message {
                en: format!(
                    "No single cause; the largest part is {place}{shown} of the time, {}",
                    what.en
                ),
                zh: format!(
                    "没有单一原因；最大的一项是 {zh_place}占 {shown} 的时间，{}",
                    what.zh
                ),
            }
        }
        None if analysis.account.is_none() => message!(
            en: "No cause was found; there are no samples, so the lines are unknown",
            zh: "没有找到原因；没有采样，因此不知道时间花在哪些行"
        ),
        None => message!(en: "No single cause was found", zh: "没有找到单一原因"),
    };
    let mut finding = Finding::new(ID, Severity::Information, title);
    finding.kind = Kind::Verdict;
    finding.confidence = Confidence::Medium;
    finding.places.extend(part.and_then(|part| part.place));
    if let Some(busy) = busy_share(analysis) {
        finding.evidence.push(analysis.in_window(Evidence::new(
            message!(en: "GPU busy", zh: "GPU 忙碌"),
            busy * 100.0,
            "%",
        )));
    }
    finding
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Build;
    use flatout_record::Phase;

    fn verdict(busy: f64) -> Finding {
        let data = Build::steady(20)
            .gpu(|gpu| gpu.util = Some(busy))
            .stack_of(&["<module> (t.py:9)"], 100, Some(Phase::Compute), false)
            .done();
        crate::diagnose(&data).findings.pop().unwrap()
    }

    #[test]
    fn names_the_largest_line_of_a_gpu_that_could_do_more() {
        let finding = verdict(0.78);
        assert_eq!((finding.rule.as_str(), finding.places[0].line), (ID, 9));
    }

    #[test]
    fn a_gpu_that_nobody_measured_is_not_fine() {
        let unknown = Build::steady(20).fact("device", "cuda").stack_of(
            &["<module> (t.py:9)"],
            100,
            Some(Phase::Compute),
            false,
        );
        let finding = crate::diagnose(&unknown.done()).findings.pop().unwrap();
        assert_eq!((finding.rule.as_str(), finding.places[0].line), (ID, 9));
    }

    #[test]
    fn nothing_is_fine_without_phases_and_samples() {
        let data = Build::steady(20).phase(Phase::Compute, 0.2).done();
        let finding = crate::diagnose(&data).findings.pop().unwrap();
        assert_eq!(finding.rule, ID);
        assert!(finding.title.en.contains("no samples"), "{}", finding.title.en);
    }

    #[test]
    fn names_the_line_that_could_go_even_if_the_cpus_compute() {
        let step = &[
            "<module> (t.py:9)",
            "linear (/site-packages/torch/nn/functional.py:3)",
        ];
        let save = &["<module> (t.py:5)", "save (t.py:2)"];
        let last = |share: f64| {
            let build = Build::steady(20)
                .fact("device", "cpu")
                .phase(Phase::Checkpoint, share)
                .phase(Phase::Compute, 1.0 - share)
                .stack_of(step, 80, Some(Phase::Compute), false)
                .stack_of(save, 20, Some(Phase::Checkpoint), false);
            crate::diagnose(&build.done()).findings.pop().unwrap()
        };
        let finding = last(0.18);
        assert_eq!((finding.rule.as_str(), finding.places[0].line), (ID, 2));
        assert_eq!(last(0.05).rule, super::super::nothing_wrong::ID);
    }

    #[test]
    fn a_busy_gpu_is_fine() {
        assert_eq!(verdict(0.95).rule, super::super::nothing_wrong::ID);
    }
}
