//! # slow-rank
//!
//! ## What it detects
//! One rank takes longer for its own work than the others, which wait for it in every collective.
//!
//! ## Why it is slow
//! `all_reduce` and DistributedDataParallel's gradient synchronization finish when the last rank arrives, so all ranks run at the
//! speed of the slowest.
//!
//! ## Example
//! ```python
//! for step, (x, y) in enumerate(loader):
//!     train_step(x, y)
//!     if rank == 0:
//!         log_images(x)
//! ```
//!
//! ## Use instead
//! ```python
//! for step, (x, y) in enumerate(loader):
//!     train_step(x, y)
//!     if rank == 0 and step % 1000 == 0:
//!         log_images(x)
//! ```
//!
//! ## Evidence
//! When each rank arrives at each collective, from the probe in each process: a rank waits from its own arrival until the last one. A
//! rank's own work is its step without collectives. flatout reports the line on which the slow rank spends more time than the others.
//!
//! ## Fix
//! Fix what the slow rank spends more time on. Move work that only one rank does (saving, logging, evaluating) out of the steps or
//! into another thread, or do it less often.
//!
//! ## When it is wrong
//! Pipeline stages differ on purpose. If collectives run on the GPU, the CPU only launches them: ranks are then compared by launch
//! time, and a rank whose GPU alone is slow does not show.
//!
//! ## References
//! TraceML reports stragglers from 10%.
//! See also `unequal-shards` and `gpus-unbalanced`.
//! <https://github.com/flatout/flatout/blob/main/docs/guide/ranks.md>
//! <https://docs.pytorch.org/docs/stable/distributed.html>
//!
//! ---
//! ## 检测什么
//! 多个 rank 中有一个自身的工作比其他的慢，其他 rank 在每次集合通信时都要等它。
//! ## 为什么慢
//! `all_reduce` 和 DistributedDataParallel 的梯度同步要等最后一个 rank 到达才结束，所以所有 rank 都按最慢的速度前进。
//! ## 证据
//! 每个进程中的探针记录各 rank 到达每次集合通信的时刻：从自己到达，到最后一个 rank 到达，都是等待。一个 rank 自身的工作，是一步中去掉集合通信的部分。
//! 慢 rank 的时间账目中比其他 rank 多得最多的一项，连同代码行一起给出。
//! ## 怎么改
//! 改掉慢 rank 多花时间的地方。只需一个 rank 做的事（保存、写日志、评估）应放到步骤之外、放到另一个线程，或者少做几次。
//! ## 何时不成立
//! 流水线各段本来就不同。集合通信在 GPU 上进行时，主机只负责下发：此时按下发时刻比较，只有 GPU 慢的 rank 看不出来。
//! ## 参考
//! TraceML 从 10% 起报告落后的 rank。
//! 另见 `unequal-shards`、`gpus-unbalanced`。
//! <https://github.com/flatout/flatout/blob/main/docs/guide/ranks.md>
//! <https://docs.pytorch.org/docs/stable/distributed.html>

use crate::account::activity::Activity;
use crate::analysis::Analysis;
use crate::candidate::{Candidate, Reach, Stretch, severity_of};
use crate::ranks::Slow;
use flatout_core::{Confidence, Evidence, Finding, Fix, Kind, Message, Severity, message, units};

pub const ID: &str = "slow-rank";
pub const WORST: Severity = Severity::Critical;

/// With less than this share of it, the others do not do it at all.
const NONE: f64 = 0.02;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let slow = analysis.ranks.as_ref()?.slow.as_ref()?;
    // Larger batches explain it: another rule's.
    if slow.samples.is_some() {
        return None;
    }
    let (rank, share) = (slow.rank, units::percent(slow.late_share));
    let candidate = Candidate::new(
        ID,
        severity_of(slow.late_share),
        message!(
            en: "Rank {rank} is slow: the other ranks wait for it {share} of each step",
            zh: "rank {rank} 偏慢：其他 rank 每步有 {share} 的时间在等它"
        ),
    )
    .detail(detail(slow));
    let candidate = with_evidence(analysis, candidate, slow);
    let candidate = match &slow.cause {
        Some(cause) => candidate.place(cause.place.as_ref()),
        None => candidate.confidence(Confidence::Medium),
    };
    Some(claiming(analysis, candidate, slow))
}

/// The seconds that the slow rank keeps the others waiting are seconds of its own work.
pub(super) fn claiming(analysis: &Analysis, candidate: Candidate, slow: &Slow) -> Candidate {
    let steps = analysis.window.as_ref().map_or(0, |window| window.steps);
    let seconds = slow.late_ms / 1e3 * steps as f64;
    // On the other ranks they are seconds of waiting.
    let waits = analysis
        .ranks
        .as_ref()
        .is_some_and(|ranks| ranks.shown != slow.rank);
    let stretch = match &slow.cause {
        _ if waits => Stretch::Communication,
        Some(cause) => cause.stretch(),
        None => Stretch::Dispatch,
    };
    let mut candidate = candidate.claims(stretch, Reach::Compared, seconds * 0.7, seconds);
    for other in [
        Stretch::Dispatch,
        Stretch::Other,
        Stretch::Data,
        Stretch::Checkpoint,
        Stretch::Sync,
        Stretch::Communication,
    ] {
        if other != stretch {
            candidate = candidate.or_in(other);
        }
    }
    candidate
}

pub(super) fn with_evidence(analysis: &Analysis, candidate: Candidate, slow: &Slow) -> Candidate {
    let rank = slow.rank;
    let mut candidate = candidate.evidence(
        analysis.in_window(
            Evidence::new(
                message!(en: "time the others wait for rank {rank}", zh: "其他 rank 等待 rank {rank}"),
                slow.late_share * 100.0,
                "%",
            )
            .against(10.0),
        ),
    );
    if let Some((own, others)) = slow.own_ms {
        let what = message!(en: "own work of rank {rank}, per step", zh: "rank {rank} 每步自身的工作");
        let median = message!(en: "own work of the other ranks, per step (median)", zh: "其他 rank 每步自身的工作（中位数）");
        candidate = candidate
            .evidence(analysis.in_window(Evidence::new(what, own, "ms")))
            .evidence(analysis.in_window(Evidence::new(median, others, "ms")));
    }
    candidate
}

fn detail(slow: &Slow) -> Message {
    let Some(cause) = &slow.cause else {
        return Message::default();
    };
    let rank = slow.rank;
    let time = |ms: f64| units::duration(ms / 1e3);
    let (own, others) = (time(cause.ms), time(cause.others_ms));
    let what = cause.activity.name();
    let (en, zh) = (what.en, what.zh);
    let at = cause
        .place
        .as_ref()
        .map(|place| format!(" ({place})"))
        .unwrap_or_default();
    if cause.others_ms < cause.ms * NONE {
        return Message {
            en: format!("Only rank {rank} spends time here: {en}{at}, {own} per step."),
            zh: format!("只有 rank {rank} 花时间在：{zh}{at}，每步 {own}。"),
        };
    }
    Message {
        en: format!("Rank {rank} spends more time here: {en}{at}, {own} per step; the others {others}."),
        zh: format!("rank {rank} 多花时间在：{zh}{at}，每步 {own}；其他 rank {others}。"),
    }
}

/// What other rules know of the slow rank's line is how to fix it.
pub fn adopt(analysis: &Analysis, findings: &mut [Finding]) {
    let slow = analysis.ranks.as_ref().and_then(|ranks| ranks.slow.as_ref());
    let (Some(slow), Some(at)) = (slow, findings.iter().position(|finding| finding.rule == ID)) else {
        return;
    };
    let rank = slow.rank;
    let mut fixes = Vec::new();
    if let Some(cause) = &slow.cause {
        let knows = |finding: &&Finding| {
            finding.rule != ID
                && finding.kind != Kind::Verdict
                && (cause
                    .place
                    .as_ref()
                    .is_some_and(|place| finding.places.contains(place))
                    || rules_of(cause.activity).contains(&finding.rule.as_str()))
        };
        let known = findings.iter().find(knows);
        fixes = known.map(|finding| finding.fixes.clone()).unwrap_or_default();
    }
    // A search for settings would run on all ranks alike.
    fixes.retain(|fix| !matches!(fix, Fix::Command { .. }));
    if fixes.is_empty() {
        fixes.push(Fix::Code {
            place: slow.cause.as_ref().and_then(|cause| cause.place.clone()),
            say: message!(
                en: "Make rank {rank} do the same work as the others; move its extra work out of the steps",
                zh: "让 rank {rank} 和其他 rank 做同样的事；把只有它做的工作移到步骤之外"
            ),
        });
    }
    findings[at].fixes = fixes;
}

/// Rules that speak of an activity wherever it is.
fn rules_of(activity: Activity) -> &'static [&'static str] {
    match activity {
        Activity::Saving => &["checkpoint-too-often"],
        Activity::Evaluating => &["evaluation-too-often"],
        Activity::PreparingBatch => &["loader-without-workers"],
        Activity::WaitingForBatch => &["too-few-workers", "loader-starved"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check_empty};
    use flatout_record::{Phase, RunData};

    const LOOP: &str = "<module> (train.py:80)";

    /// Rank 1 needs so much of a step for its batches; rank 0 waits for it meanwhile.
    fn pair(data_share: f64) -> RunData {
        let backward = "backward (/site-packages/torch/autograd/__init__.py:3)";
        let slow = Build::steady(20)
            .phase(Phase::Data, data_share)
            .phase(Phase::Compute, 1.0 - data_share)
            .stack_of(
                &[LOOP, "__getitem__ (data.py:12)"],
                (data_share * 200.0) as u64,
                Some(Phase::Data),
                false,
            )
            .stack_of(&[LOOP, backward], 100, Some(Phase::Compute), false)
            .collective(0.0, 20.0, data_share * 1000.0);
        Build::steady(20)
            .stack_of(&[LOOP, backward], 200, Some(Phase::Compute), false)
            .collective(data_share * 1000.0, 20.0, 0.0)
            .rank(1, slow.done())
            .done()
    }

    #[test]
    fn fires() {
        let diagnosis = crate::diagnose(&pair(0.6));
        let first = &diagnosis.findings[0];
        assert_eq!(first.rule, ID, "{:?}", diagnosis.findings);
        assert!(first.title.en.starts_with("Rank 1 is slow"));
        assert_eq!(first.places[0].to_string(), "data.py:12");
        let gain = first.gain.unwrap();
        assert!(gain.high > 2.0 && gain.high < 2.7, "{gain:?}");
        let ranks = diagnosis.ranks.unwrap();
        assert_eq!((ranks.shown, ranks.rows.len()), (1, 2));
        let waiting = ranks.rows[0].wait_ms.unwrap();
        assert!((waiting - 6.0).abs() < 0.4, "{waiting}");
    }

    #[test]
    fn another_rank_shows_its_own_account_and_waits_for_the_slow_one() {
        let data = pair(0.6);
        let diagnosis = crate::ranks::diagnose_rank(&data, 0).unwrap();
        let first = &diagnosis.findings[0];
        assert!(first.title.en.starts_with("Rank 1 is slow"), "{first:?}");
        let ranks = diagnosis.ranks.unwrap();
        assert_eq!((ranks.shown, ranks.slow.unwrap().rank), (0, 1));
        let account = diagnosis.account.unwrap();
        assert_eq!(account.rank, Some(0));
        assert!(
            account.rows.iter().all(|row| row
                .place
                .as_ref()
                .is_none_or(|place| place.file.as_os_str() != "data.py")),
            "{:?}",
            account.rows
        );
        assert!(crate::ranks::diagnose_rank(&data, 2).is_none());
    }

    #[test]
    fn quiet() {
        let diagnosis = crate::diagnose(&pair(0.03));
        assert!(diagnosis.findings.iter().all(|finding| finding.rule != ID));
        assert_eq!(diagnosis.ranks.unwrap().shown, 0);
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
