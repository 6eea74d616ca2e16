//! Which rank the others wait for in a program that makes no progress.

use crate::account::frame::Frame;
use crate::analysis::collectives::op_name;
use flatout_core::{Message, Place, message};
use flatout_record::StalledRank;

/// The line of the user's code that a rank is in; else the innermost line of all.
pub fn place_of(rank: &StalledRank) -> Option<Place> {
    let frames: Vec<Frame> = rank
        .threads
        .first()?
        .frames
        .iter()
        .filter_map(|text| Frame::parse(text))
        .collect();
    let own = frames.iter().rfind(|frame| frame.is_users());
    own.or(frames.last()).map(Frame::place)
}

/// The ranks that the others wait for: gone, not in a collective, or in an earlier one. Empty where nobody is behind.
pub fn behind(ranks: &[StalledRank]) -> Vec<&StalledRank> {
    if ranks.iter().all(|rank| rank.inside.is_none()) {
        return Vec::new();
    }
    let gone: Vec<&StalledRank> = ranks.iter().filter(|rank| rank.ended).collect();
    if !gone.is_empty() {
        return gone;
    }
    let outside: Vec<&StalledRank> = ranks.iter().filter(|rank| rank.inside.is_none()).collect();
    if !outside.is_empty() {
        return outside;
    }
    let most = ranks.iter().map(|rank| rank.collectives).max().unwrap_or(0);
    ranks.iter().filter(|rank| rank.collectives < most).collect()
}

/// One sentence: who is where.
pub fn blame(ranks: &[StalledRank]) -> Message {
    let waiting: Vec<&StalledRank> = ranks.iter().filter(|rank| rank.inside.is_some()).collect();
    let op = |rank: &StalledRank| {
        let inside = rank.inside.as_ref();
        inside.map(|inside| op_name(&inside.op)).unwrap_or_default()
    };
    let behind = behind(ranks);
    let Some(first) = waiting.first() else {
        return match (ranks, ranks.first().and_then(place_of)) {
            ([_], Some(place)) => {
                message!(en: "the training thread is at {place}", zh: "训练线程在 {place}")
            }
            _ => message!(en: "no rank is in a collective", zh: "没有 rank 处在集合通信中"),
        };
    };
    let Message {
        en: name_en,
        zh: name_zh,
    } = op(first);
    if let [late, ..] = behind.as_slice() {
        let who = numbers(&behind);
        if late.ended {
            return Message {
                en: format!("rank {who} has ended; the others wait for it in {name_en}"),
                zh: format!("rank {who} 已经结束；其他 rank 在 {name_zh} 中等它"),
            };
        }
        if late.inside.is_none() {
            let waiting = numbers(&waiting);
            return Message {
                en: format!("rank {who} is not in {name_en}, where rank {waiting} waits"),
                zh: format!("rank {who} 没有进入 {name_zh}，rank {waiting} 在其中等待"),
            };
        }
    }
    let unlike = |rank: &&&StalledRank| op(rank) != op(first) || place(rank) != place(first);
    match waiting.iter().find(unlike) {
        Some(other) => {
            let (a, b) = (first.rank, other.rank);
            let other = op(other);
            Message {
                en: format!(
                    "ranks are in different collectives: rank {a} in {name_en}, rank {b} in {}",
                    other.en
                ),
                zh: format!(
                    "各 rank 处在不同的集合通信中：rank {a} 在 {name_zh}，rank {b} 在 {}",
                    other.zh
                ),
            }
        }
        None => Message {
            en: format!(
                "all ranks seen are in {name_en}: either it does not complete, or ranks on other machines \
                are missing"
            ),
            zh: format!("看到的 rank 都在 {name_zh} 中：它没有完成，或者其他机器上的 rank 没有到达"),
        },
    }
}

fn place(rank: &StalledRank) -> Option<&Place> {
    rank.inside.as_ref()?.place.as_ref()
}

/// `0, 2, 5`; many of them are counted.
fn numbers(ranks: &[&StalledRank]) -> String {
    const MOST: usize = 6;
    let mut named: Vec<String> = ranks
        .iter()
        .take(MOST)
        .map(|rank| rank.rank.to_string())
        .collect();
    if ranks.len() > MOST {
        named.push(format!("… ({})", ranks.len()));
    }
    named.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_record::{InsideCollective, ThreadStack};

    fn rank(number: u32, op: Option<&str>, collectives: u64) -> StalledRank {
        StalledRank {
            rank: number,
            collectives,
            inside: op.map(|op| InsideCollective {
                op: op.into(),
                ..InsideCollective::default()
            }),
            ..StalledRank::default()
        }
    }

    #[test]
    fn names_the_rank_outside_of_the_collective() {
        let ranks = [
            rank(0, Some("barrier"), 7),
            rank(1, None, 7),
            rank(2, Some("barrier"), 7),
        ];
        assert_eq!(behind(&ranks)[0].rank, 1);
        assert_eq!(
            blame(&ranks).en,
            "rank 1 is not in barrier, where rank 0, 2 waits"
        );
    }

    #[test]
    fn names_a_rank_that_ended_and_one_that_is_elsewhere() {
        let mut ranks = [rank(0, Some("all_reduce"), 7), rank(1, None, 5)];
        ranks[1].ended = true;
        assert!(blame(&ranks).en.starts_with("rank 1 has ended"));
        let ranks = [rank(0, Some("all_reduce"), 7), rank(1, Some("barrier"), 7)];
        assert!(behind(&ranks).is_empty());
        assert!(
            blame(&ranks)
                .en
                .contains("rank 0 in all_reduce, rank 1 in barrier")
        );
        let ranks = [rank(0, Some("all_reduce"), 8), rank(1, Some("all_reduce"), 7)];
        assert_eq!(behind(&ranks)[0].rank, 1);
    }

    #[test]
    fn blames_nobody_without_a_collective() {
        assert!(behind(&[rank(0, None, 0)]).is_empty());
        assert_eq!(blame(&[]).en, "no rank is in a collective");
    }

    #[test]
    fn finds_the_users_line() {
        let mut stuck = rank(0, None, 0);
        let frames = [
            "<module> (train.py:3)",
            "wait (/v/lib/python3.12/site-packages/torch/a.py:9)",
        ];
        stuck.threads.push(ThreadStack {
            thread: None,
            frames: frames.iter().map(|frame| (*frame).to_owned()).collect(),
        });
        assert_eq!(place_of(&stuck).unwrap().to_string(), "train.py:3");
        assert!(place_of(&rank(0, None, 0)).is_none());
        assert_eq!(blame(&[stuck]).en, "the training thread is at train.py:3");
    }
}
