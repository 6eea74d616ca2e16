//! # still-warming-up
//!
//! ## What it detects
//! Training has started, but too few steps were steady to judge it.
//!
//! ## Why it is slow
//! The first steps compile, allocate memory and fill caches. Their times do not predict the rest.
//!
//! ## Evidence
//! The number of steady steps so far, and the time they took.
//!
//! ## Fix
//! Let it run longer: at least 10 steps and 3 seconds after the first step.
//!
//! ## When it is wrong
//! It makes no claim; it only withholds a verdict.
//!
//! ## References
//! The concept page "Records and findings" explains which steps count as steady.
//! See also `too-little-data` and `slow-start`.
//! <https://github.com/flatout/flatout/blob/main/docs/concepts/records-and-findings.md>
//!
//! ---
//! ## 检测什么
//! 训练已经开始，但稳定运行的步数还不足以判断。
//! ## 为什么慢
//! 最初几步要编译、分配和填充缓存；它们的耗时不能说明之后的情况。
//! ## 证据
//! 目前稳定的步数及其用时。
//! ## 怎么改
//! 让它继续运行：至少 10 步，并在第一步之后至少 3 秒。
//! ## 何时不成立
//! 不会有害：只是暂不下结论。
//! ## 参考
//! 概念页“记录与结论”说明哪些步算稳定。
//! 另见 `too-little-data`、`slow-start`。
//! <https://github.com/flatout/flatout/blob/main/docs/concepts/records-and-findings.md>

use crate::analysis::Analysis;
use crate::analysis::stacks::{HotLine, hottest_within};
use crate::analysis::window::{SECONDS_NEEDED, STEPS_NEEDED, Window};
use flatout_core::{Evidence, Finding, Kind, Severity, message};

pub const ID: &str = "still-warming-up";

/// Fewer samples name no line: one second at 20 per second.
const FEWEST_SAMPLES: u64 = 20;
/// A line with less of them is none to look at.
const LINE_SHARE: f64 = 0.2;

pub fn check(analysis: &Analysis) -> Option<Finding> {
    if analysis.window.is_some() {
        return None;
    }
    let steady = Window::so_far(analysis.data)?;
    let title = if analysis.data.info.exit.is_some() {
        message!(
            en: "The run ended with too few steady steps to judge",
            zh: "运行结束时稳定的步数太少，无法判断"
        )
    } else {
        message!(en: "Still warming up: too few steady steps to judge", zh: "仍在预热：稳定的步数太少，无法判断")
    };
    let mut finding = Finding::new(ID, Severity::Information, title);
    finding.kind = Kind::Verdict;
    finding.evidence.push(
        Evidence::new(
            message!(en: "steady steps so far", zh: "目前稳定的步数"),
            steady.steps as f64,
            "",
        )
        .against(STEPS_NEEDED as f64),
    );
    finding.evidence.push(
        Evidence::new(
            message!(en: "time these steps took", zh: "这些步的用时"),
            steady.wall_s(),
            "s",
        )
        .against(SECONDS_NEEDED),
    );
    if let Some(line) = hottest(analysis, &steady) {
        finding.evidence.push(Evidence::new(
            message!(en: "samples at this line since the first step", zh: "第一步之后停在该行的样本"),
            line.share * 100.0,
            "%",
        ));
        finding.places.push(line.place);
    }
    Some(finding)
}

/// The line that the program is at most of the time since its first step; steps of minutes are worth a line before any is steady.
fn hottest(analysis: &Analysis, steady: &Window) -> Option<HotLine> {
    let range = (steady.first_step_s, f64::INFINITY);
    let of_the_steps = |stack: &flatout_record::StackCount| !stack.worker && stack.phase.is_some();
    let (line, samples) = hottest_within(analysis.data, range, of_the_steps)?;
    (samples >= FEWEST_SAMPLES && line.share >= LINE_SHARE).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Build;
    use flatout_core::Place;
    use flatout_record::{Phase, RunData};

    #[test]
    fn fires() {
        let mut short = Build::steady(2).done();
        let said = |data: &RunData| check(&Analysis::new(data)).map(|finding| format!("{:?}", finding.title));
        assert!(said(&short).unwrap().contains("run ended"));
        short.info.exit = None;
        assert!(said(&short).unwrap().contains("warming up"));
    }

    #[test]
    fn a_run_that_is_too_short_names_its_line_too() {
        let step = &["<module> (t.py:80)", "step (t.py:9)"];
        let build = |count| Build::steady(2).stack_of(step, count, Some(Phase::Compute), false);
        let places = |count| check(&Analysis::new(&build(count).done())).unwrap().places;
        assert_eq!(places(60), [Place::new("t.py", 9)]);
        assert!(places(5).is_empty());
    }

    #[test]
    fn quiet() {
        assert!(check(&Analysis::new(&Build::steady(20).done())).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check(&Analysis::new(&RunData::default())).is_none());
    }
}
