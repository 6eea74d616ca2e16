//! # too-little-data
//!
//! ## What it detects
//! The record contains no training steps: the program ended before its first step, does not train with PyTorch, or trains in a way
//! that the probe cannot see.
//!
//! ## Why it is slow
//! Unknown: without steps, no time can be attributed to them.
//!
//! ## Evidence
//! The record contains no steps; notes of the probe, if any.
//!
//! ## Fix
//! Run the program longer. If its loop does not use a `torch.optim` optimizer, `import flatout` and call `flatout.step()` once per
//! step.
//!
//! ## When it is wrong
//! It makes no claim; it only withholds a verdict.
//!
//! ## References
//! The concept page "Records and findings" describes the contents of a record.
//! See also `still-warming-up`.
//! <https://github.com/flatout/flatout/blob/main/docs/concepts/records-and-findings.md>
//!
//! ---
//! ## 检测什么
//! 记录中没有训练步骤：程序在第一步之前就结束了、不是用 PyTorch 训练，或以探针看不到的方式进行。
//! ## 为什么慢
//! 未知：没有步骤，就无法把时间归到它们上面。
//! ## 证据
//! 记录中没有步骤；以及探针所说的话（若有）。
//! ## 怎么改
//! 让它运行更久。对钩子看不到的循环：在程序中 `import flatout`，每步调用一次 `flatout.step()`。
//! ## 何时不成立
//! 不会有害：只是暂不下结论。
//! ## 参考
//! 概念页“记录与结论”说明记录包含什么。
//! 另见 `still-warming-up`。
//! <https://github.com/flatout/flatout/blob/main/docs/concepts/records-and-findings.md>

use crate::analysis::Analysis;
use flatout_core::{Evidence, Finding, Fix, Kind, Message, Severity, message};
use flatout_record::ExitInfo;

pub const ID: &str = "too-little-data";

pub fn check(analysis: &Analysis, findings: &[Finding]) -> Option<Finding> {
    let info = &analysis.data.info;
    let ended = info.exit.as_ref().and_then(ExitInfo::failure);
    // A program that failed has shown its start at least; where that is all, its end is the news.
    let seen = analysis.account.as_ref().is_some_and(|account| {
        let repeats = account.iterations.is_some();
        ended.is_none() || repeats || findings.iter().any(|finding| finding.kind == Kind::Cause)
    });
    if seen || analysis.data.steps.iter().any(|tick| tick.steps > 0) {
        return None;
    }
    let title = match &ended {
        Some(how) => Message {
            en: format!(
                "Too little data: the program ended with {} before its first training step",
                how.en
            ),
            zh: format!("数据太少：在看到训练步骤之前，程序已结束（{}）", how.zh),
        },
        None if analysis.is_from_outside() => message!(
            en: "GPU and host data only: `flatout monitor` does not see training steps",
            zh: "只有 GPU 和主机的数据：`flatout monitor` 看不到训练步骤"
        ),
        None => {
            message!(en: "Too little data: no training step was seen", zh: "数据太少：没有看到任何训练步骤")
        }
    };
    let mut finding = Finding::new(ID, Severity::Information, title);
    finding.kind = Kind::Verdict;
    let seconds = analysis.time.total_s;
    finding.evidence.push(Evidence::new(
        message!(en: "length of the record", zh: "记录时长"),
        seconds,
        "s",
    ));
    let say = if ended.is_some() {
        message!(en: "Run the command without flatout until it works", zh: "请先单独运行该命令，直到它能正常工作")
    } else if analysis.is_from_outside() {
        message!(
            en: "To see which lines of the program take the time: `flatout run -- COMMAND`",
            zh: "要知道时间花在程序的哪些行：`flatout run -- 命令`"
        )
    } else {
        message!(
            en: "If the program trains without a torch optimizer, call `flatout.step()` once per step (`import flatout`)",
            zh: "如果程序训练时不使用 torch 优化器，请在每一步调用一次 `flatout.step()`（先 `import flatout`）"
        )
    };
    finding.fixes.push(Fix::Code { place: None, say });
    Some(finding)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Build;
    use flatout_record::RunData;

    #[test]
    fn fires() {
        assert!(check(&Analysis::new(&Build::steady(0).done()), &[]).is_some());
    }

    #[test]
    fn reports_a_failed_program() {
        let mut data = Build::steady(0).done();
        data.info.exit = Some(ExitInfo {
            t: 1.0,
            code: Some(2),
            signal: None,
        });
        let finding = check(&Analysis::new(&data), &[]).unwrap();
        assert!(finding.title.en.contains("exit code 2"), "{}", finding.title.en);
        data.info.exit = Some(ExitInfo {
            t: 1.0,
            code: Some(0),
            signal: None,
        });
        let finding = check(&Analysis::new(&data), &[]).unwrap();
        assert!(!finding.title.en.contains("ended"), "{}", finding.title.en);
    }

    #[test]
    fn what_the_account_explains_is_not_too_little() {
        let mut data = Build::steady(0)
            .stack_of(&["<module> (t.py:5)", "evolve (t.py:2)"], 400, None, false)
            .done();
        data.stacks[0].t = 40.0;
        data.info.exit = Some(ExitInfo {
            t: 41.0,
            code: None,
            signal: Some(15),
        });
        let analysis = Analysis::new(&data);
        assert!(analysis.account.is_some());
        let mut cause = Finding::new("host-work-in-loop", Severity::Warning, Message::default());
        cause.kind = Kind::Cause;
        assert!(check(&analysis, &[cause]).is_none());
        assert!(check(&analysis, &[]).is_some());
    }

    #[test]
    fn a_stopped_monitor_is_not_a_failed_program() {
        let mut data = Build::steady(0).done();
        data.info.kind = "monitor".into();
        data.info.exit = Some(ExitInfo {
            t: 17.0,
            code: None,
            signal: None,
        });
        let finding = check(&Analysis::new(&data), &[]).unwrap();
        assert!(finding.title.en.contains("monitor"), "{}", finding.title.en);
        assert!(!finding.title.en.contains("exit code"), "{}", finding.title.en);
    }

    #[test]
    fn quiet() {
        assert!(check(&Analysis::new(&Build::steady(20).done()), &[]).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check(&Analysis::new(&RunData::default()), &[]).is_some());
    }
}
