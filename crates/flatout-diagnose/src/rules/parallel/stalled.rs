//! # stalled
//!
//! ## What it detects
//! The program completed no step, fetched no batch and finished no collective for the time set with `--patience` (5 minutes by
//! default).
//!
//! ## Why it is slow
//! It hangs. With several ranks, the usual reason is one rank that is not in the collective that the others wait in: it took another
//! branch, has fewer batches, waits for something else, or has died.
//!
//! ## Example
//! ```python
//! if rank == 0:
//!     validate(model)
//!     torch.distributed.all_reduce(score)
//! ```
//!
//! ## Use instead
//! ```python
//! validate(model)
//! torch.distributed.all_reduce(score)
//! ```
//!
//! ## Evidence
//! How long nothing happened; the collective of each rank, with its line and number; and the stacks of all threads of every rank.
//! They are stored in `events.jsonl` (`stalled`).
//!
//! ## Fix
//! Check the line of the rank that is missing. Every rank must call the same collectives in the same order. If ranks have different
//! numbers of batches: `drop_last=True`, `DistributedSampler`, or DDP's `join()`.
//!
//! ## When it is wrong
//! A long evaluation, download or compilation without batches shows no progress. flatout lets the program continue unless `--on-hang
//! stop` is given; use a longer `--patience`.
//!
//! ## References
//! PyTorch's NCCL watchdog ends a program after 10 minutes in a collective, without naming the missing rank.
//! <https://docs.pytorch.org/docs/stable/distributed.html>
//!
//! ---
//! ## 检测什么
//! 程序在 `--patience` 允许的时间（5 分钟）内没有完成一步，没有取到 batch，也没有完成集合通信，之后也没有恢复。
//! ## 为什么慢
//! 程序卡住了。多个 rank 时，常见原因是有一个 rank 没有进入其他 rank 正在等待的集合通信：走了另一个分支、batch 较少、在等别的东西，或者已经退出。
//! ## 证据
//! 没有进展的时间；每个 rank 所在的集合通信及其代码行和序号；每个 rank 所有线程的调用栈。它们保存在 `events.jsonl`（`stalled`）。
//! ## 怎么改
//! 查看落后 rank 的代码行。每个 rank 必须按相同的顺序调用相同的集合通信。batch 数不等时：`drop_last=True`、`DistributedSampler`，或 DDP 的 `join()`。
//! ## 何时不成立
//! 没有 batch 的长时间评估、下载或编译看不出进展。除非给出 `--on-hang stop`，程序不会被打断；可以把 `--patience` 设长一些。
//! ## 参考
//! PyTorch 的 NCCL watchdog 在集合通信停留 10 分钟后结束程序，但不指出缺少哪个 rank。
//! <https://docs.pytorch.org/docs/stable/distributed.html>

use crate::analysis::Analysis;
use crate::analysis::collectives::op_name;
use crate::candidate::Candidate;
use crate::stall::{behind, blame, place_of};
use flatout_core::plural::counted;
use flatout_core::{Confidence, Evidence, Message, Severity, message, units};
use flatout_record::{EventKind, StalledRank};

pub const ID: &str = "stalled";
pub const WORST: Severity = Severity::Critical;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let events = &analysis.data.events;
    let (t, seconds, ranks) = events.iter().rev().find_map(|event| match &event.kind {
        EventKind::Stalled { seconds, ranks } => Some((event.t, *seconds, ranks)),
        _ => None,
    })?;
    let resumed = |kind: &EventKind| matches!(kind, EventKind::Resumed { .. });
    if events.iter().any(|event| event.t >= t && resumed(&event.kind)) {
        return None;
    }
    let late = behind(ranks);
    let culprit = late.first().copied().or(ranks.first());
    let place = culprit.and_then(place_of);
    let quiet = units::duration(seconds);
    let who = blame(ranks);
    let title = Message {
        en: format!("No progress for {quiet}: {}", who.en),
        zh: format!("{quiet} 没有进展：{}", who.zh),
    };
    let mut candidate = Candidate::new(ID, Severity::Critical, title)
        .detail(details(ranks))
        .confidence(if late.is_empty() {
            Confidence::Medium
        } else {
            Confidence::High
        })
        .evidence(
            Evidence::new(
                message!(en: "time without progress", zh: "没有进展的时间"),
                seconds,
                "s",
            )
            .over((t - seconds).max(0.0), t),
        )
        .place(place.as_ref());
    for rank in ranks {
        candidate = candidate.place(place_of(rank).as_ref());
    }
    let say = if late.is_empty() {
        message!(
            en: "Check the lines above: what does each rank wait for?",
            zh: "查看上面的代码行：每个 rank 在等什么？"
        )
    } else {
        message!(
            en: "Make every rank call the same collectives in the same order; start with this line",
            zh: "让每个 rank 按相同顺序调用相同的集合通信；先查看这一行"
        )
    };
    Some(candidate.code(place.as_ref(), say))
}

/// Where each rank is, at most a few of them.
fn details(ranks: &[StalledRank]) -> Message {
    const MOST: usize = 8;
    let mut all = Message::default();
    for rank in ranks.iter().take(MOST) {
        let number = rank.rank;
        let at = |place: Option<String>| place.map(|place| format!(" ({place})")).unwrap_or_default();
        let done = rank.collectives;
        let part = if rank.ended {
            message!(en: "Rank {number}: ended. ", zh: "rank {number}：已结束。")
        } else if let Some(inside) = &rank.inside {
            let (op, place) = (
                op_name(&inside.op),
                at(inside.place.as_ref().map(ToString::to_string)),
            );
            Message {
                en: counted(format!(
                    "Rank {number}: in {}{place} after {done} collectives. ",
                    op.en
                )),
                zh: format!(
                    "rank {number}：在 {} 中{place}，已完成 {done} 次集合通信。",
                    op.zh
                ),
            }
        } else {
            let place = at(place_of(rank).map(|place| place.to_string()));
            message!(
                en: "Rank {number}: not in a collective{place} after {done} collectives. ",
                zh: "rank {number}：不在集合通信中{place}，已完成 {done} 次集合通信。"
            )
        };
        all.en += &part.en;
        all.zh += &part.zh;
    }
    all.en.truncate(all.en.trim_end().len());
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};
    use flatout_record::{InsideCollective, ThreadStack};

    fn stalled() -> Build {
        let rank = |rank, inside: Option<&str>, line| StalledRank {
            rank,
            collectives: 40,
            inside: inside.map(|op| InsideCollective {
                op: op.into(),
                ..InsideCollective::default()
            }),
            threads: vec![ThreadStack {
                thread: None,
                frames: vec![format!("<module> (train.py:{line})")],
            }],
            ..StalledRank::default()
        };
        Build::steady(20).event(
            330.0,
            EventKind::Stalled {
                seconds: 300.0,
                ranks: vec![rank(0, Some("barrier"), 9), rank(1, None, 12)],
            },
        )
    }

    #[test]
    fn fires() {
        let finding = run(check, stalled()).unwrap();
        assert_eq!(finding.places[0].to_string(), "train.py:12");
        assert!(
            finding
                .title
                .en
                .ends_with("rank 1 is not in barrier, where rank 0 waits"),
            "{}",
            finding.title.en
        );
    }

    #[test]
    fn quiet() {
        let resumed = stalled().event(400.0, EventKind::Resumed { seconds: 370.0 });
        assert!(run(check, resumed).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
