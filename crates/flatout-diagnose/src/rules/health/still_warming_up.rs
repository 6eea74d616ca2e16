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

use crate::analysis::Analysis;
use crate::analysis::window::{SECONDS_NEEDED, STEPS_NEEDED, Window};
use flatout_core::{Evidence, Finding, Kind, Severity, message};

pub const ID: &str = "still-warming-up";

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
    Some(finding)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Build;
    use flatout_record::RunData;

    #[test]
    fn fires() {
        let mut short = Build::steady(2).done();
        let said = |data: &RunData| check(&Analysis::new(data)).map(|finding| format!("{:?}", finding.title));
        assert!(said(&short).unwrap().contains("run ended"));
        short.info.exit = None;
        assert!(said(&short).unwrap().contains("warming up"));
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
