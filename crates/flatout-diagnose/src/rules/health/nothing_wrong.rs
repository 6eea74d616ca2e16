//! # nothing-wrong
//!
//! ## What it detects
//! The run has enough steady steps, no cause takes a tenth of the time, and the device is well used: the GPU is busy at least 85% of
//! the time, or, without a GPU, the CPU runs operators at least half of the time. Otherwise the verdict is `no-single-cause`, with
//! the line that takes most of the time.
//!
//! ## Why it is slow
//! As far as the record shows, it is not slow.
//!
//! ## Evidence
//! The steady part of the run, its steps, and how their time was spent.
//!
//! ## Fix
//! Nothing needs fixing. To go faster still, look at the model itself, or let `flatout tune` try larger batches.
//!
//! ## When it is wrong
//! The cause leaves no trace in the record: another machine, a job queue, or a model that is slow by design.
//!
//! ## References
//! The concept page "Records and findings" explains which steps count as steady.
//! See also `no-single-cause`.
//! <https://github.com/flatout/flatout/blob/main/docs/concepts/records-and-findings.md>
//!
//! ---
//! ## 检测什么
//! 有足够多的稳定步骤，没有任何原因占到十分之一的时间，并且设备得到充分利用：GPU 至少有 85% 的时间在忙，没有 GPU 时主机至少有一半时间在算子中。
//! 否则结论是 `no-single-cause`，并给出占时间最多的那一行。
//! ## 为什么慢
//! 就记录所示，它并不慢。
//! ## 证据
//! 稳定阶段、其步数，以及时间的去向。
//! ## 怎么改
//! 无。若还想更快，看模型本身，或让 `flatout tune` 尝试更大的步骤。
//! ## 何时不成立
//! 耗时的东西在记录中没有痕迹：另一台机器、作业队列、本来就慢的模型。
//! ## 参考
//! 概念页“记录与结论”说明哪些步算稳定。
//! 另见 `no-single-cause`。
//! <https://github.com/flatout/flatout/blob/main/docs/concepts/records-and-findings.md>

use super::no_single_cause;
use crate::analysis::Analysis;
use flatout_core::{Evidence, Finding, Kind, Severity, message};

pub const ID: &str = "nothing-wrong";

pub fn check(analysis: &Analysis, findings: &[Finding]) -> Option<Finding> {
    let window = analysis.window.as_ref()?;
    let guilty = |finding: &Finding| finding.kind == Kind::Cause && finding.severity >= Severity::Warning;
    if findings.iter().any(guilty) {
        return None;
    }
    if !no_single_cause::well_used(analysis) || no_single_cause::avoidable(analysis).is_some() {
        return Some(no_single_cause::finding(analysis));
    }
    let mut finding = Finding::new(
        ID,
        Severity::Information,
        message!(en: "No problem found: nothing holds the training steps back", zh: "没有问题：训练步骤没有被拖慢"),
    );
    finding.kind = Kind::Verdict;
    let computing = analysis.computing_share() * 100.0;
    finding.evidence = vec![
        analysis.in_window(Evidence::new(
            message!(en: "time computing or waiting for the GPU", zh: "计算或等待设备的时间"),
            computing,
            "%",
        )),
        analysis.in_window(Evidence::new(
            message!(en: "steps measured", zh: "统计的步数"),
            window.steps as f64,
            "",
        )),
    ];
    Some(finding)
}

#[cfg(test)]
mod tests {
    use crate::testing::Build;
    use flatout_record::{Phase, RunData};
    use serde_json::json;

    fn last(data: &RunData) -> String {
        crate::diagnose(data).findings.last().unwrap().rule.clone()
    }

    #[test]
    fn fires() {
        assert_eq!(last(&Build::steady(20).done()), super::ID);
    }

    #[test]
    fn quiet() {
        let build = Build::steady(20)
            .phase(Phase::Data, 0.7)
            .phase(Phase::Compute, 0.3);
        assert_ne!(
            last(&build.cpus(4).loader(0, json!({"num_workers": 0})).done()),
            super::ID
        );
    }

    #[test]
    fn no_data() {
        assert_ne!(last(&RunData::default()), super::ID);
    }
}
