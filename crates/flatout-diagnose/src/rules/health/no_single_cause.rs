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

use crate::account::activity::Activity;
use crate::analysis::Analysis;
use flatout_core::{Confidence, Evidence, Finding, Kind, Severity, message, units};

pub const ID: &str = "no-single-cause";

/// A GPU that computes most of the time; without one, a host that is in operators most of the time.
const BUSY: f64 = 0.85;
const IN_OPERATORS: f64 = 0.5;

pub fn well_used(analysis: &Analysis) -> bool {
    let Some(account) = &analysis.account else {
        return true;
    };
    if let Some(busy) = analysis.device_busy_share() {
        return busy >= BUSY;
    }
    let useful = [
        Activity::Operators,
        Activity::Evaluating,
        Activity::Copying,
        Activity::Synchronizing,
    ];
    let seconds: f64 = useful.iter().map(|activity| account.seconds(*activity)).sum();
    account.steps > 0 && seconds >= account.wall_s * IN_OPERATORS
}

/// No rule names a cause, but the device could do more: where the time goes.
pub fn finding(analysis: &Analysis) -> Finding {
    let row = analysis
        .account
        .iter()
        .flat_map(|account| &account.rows)
        .find(|row| row.place.is_some());
    let title = match row {
        Some(row) => {
            let shown = units::percent(row.share);
            let place = row.place.as_ref().map(ToString::to_string).unwrap_or_default();
            let what = row.activity.name();
            flatout_core::Message {
                en: format!(
                    "No single cause; the largest part is {place}: {shown} of the time, {}",
                    what.en
                ),
                zh: format!(
                    "没有单一原因；最大的一项是 {place}：占 {shown} 的时间，{}",
                    what.zh
                ),
            }
        }
        None => message!(en: "No single cause was found", zh: "没有找到单一原因"),
    };
    let mut finding = Finding::new(ID, Severity::Information, title);
    finding.kind = Kind::Verdict;
    finding.confidence = Confidence::Medium;
    finding.places.extend(row.and_then(|row| row.place.clone()));
    if let Some(busy) = analysis.device_busy_share() {
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
    fn a_busy_gpu_is_fine() {
        assert_eq!(verdict(0.95).rule, super::super::nothing_wrong::ID);
    }
}
