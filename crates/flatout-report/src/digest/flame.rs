//! Stacks as a tree, each node with its share of the time: for the flame graph.

use flatout_diagnose::account::frame::Frame;
use flatout_diagnose::account::{Account, Span};
use std::collections::BTreeMap;

/// A node with less of the time is not drawn.
const LEAST_SHARE: f64 = 0.004;
/// Deeper frames are not drawn.
const DEEPEST: usize = 40;

/// A function (of the user's code: a line of it) with all the time inside of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    pub function: String,
    /// `train.py:36`; of a library without the line.
    pub place: String,
    pub users: bool,
    pub share: f64,
    /// The largest first.
    pub inside: Vec<Node>,
}

/// The training thread's steady time; `None` without stacks.
pub fn of(account: &Account) -> Option<Node> {
    let spans: Vec<(&Span, &[Frame])> = account
        .spans
        .iter()
        .filter(|span| !span.frames.is_empty())
        .map(|span| (span, span.frames.as_slice()))
        .collect();
    let all: f64 = spans.iter().map(|(span, _)| span.seconds).sum();
    if all <= 0.0 {
        return None;
    }
    let mut root = Node {
        share: 1.0,
        inside: nodes(&spans, all, 0),
        ..Node::default()
    };
    // What every sample is in (the interpreter's start) says nothing, except as the only thing there is.
    while let [only] = root.inside.as_slice() {
        if only.share < 0.999 || only.inside.is_empty() {
            break;
        }
        root.inside = only.inside.clone();
    }
    Some(root)
}

fn nodes(spans: &[(&Span, &[Frame])], all: f64, depth: usize) -> Vec<Node> {
    if depth >= DEEPEST {
        return Vec::new();
    }
    type Group<'a> = Vec<(&'a Span, &'a [Frame])>;
    let mut groups: BTreeMap<(String, String, bool), Group> = BTreeMap::new();
    for (span, frames) in spans {
        let Some((first, rest)) = frames.split_first() else {
            continue;
        };
        groups.entry(key(first)).or_default().push((span, rest));
    }
    let mut nodes: Vec<Node> = groups
        .into_iter()
        .filter_map(|((function, place, users), group)| {
            let share = group.iter().map(|(span, _)| span.seconds).sum::<f64>() / all;
            (share >= LEAST_SHARE).then(|| Node {
                function,
                place,
                users,
                share,
                inside: nodes(&group, all, depth + 1),
            })
        })
        .collect();
    nodes.sort_by(|a, b| b.share.total_cmp(&a.share));
    nodes
}

/// Lines of a library are of no use to the reader: its functions are.
fn key(frame: &Frame) -> (String, String, bool) {
    let function = frame.function.clone();
    if frame.is_users() {
        return (function, format!("{}:{}", frame.file, frame.line), true);
    }
    let file = ["site-packages/", "dist-packages/"]
        .iter()
        .find_map(|mark| frame.file.split_once(mark))
        .map_or(frame.file.as_str(), |(_, rest)| rest);
    (function, file.to_owned(), false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_diagnose::account::activity::Activity;

    fn span(seconds: f64, frames: &[&str]) -> Span {
        Span {
            activity: Activity::Python,
            phase: None,
            gpu: None,
            gil: true,
            seconds,
            frames: frames.iter().filter_map(|text| Frame::parse(text)).collect(),
        }
    }

    #[test]
    fn shares_add_up_and_what_everything_is_in_is_left_out() {
        let account = Account {
            spans: vec![
                span(
                    6.0,
                    &[
                        "<module> (train.py:90)",
                        "main (train.py:80)",
                        "load (train.py:9)",
                    ],
                ),
                span(3.0, &["<module> (train.py:90)", "main (train.py:81)"]),
                span(
                    0.99,
                    &[
                        "<module> (train.py:90)",
                        "main (train.py:81)",
                        "mm (/v/site-packages/torch/x.py:3)",
                    ],
                ),
                span(
                    0.01,
                    &[
                        "<module> (train.py:90)",
                        "main (train.py:81)",
                        "rare (train.py:3)",
                    ],
                ),
            ],
            ..Account::default()
        };
        let root = of(&account).unwrap();
        let sum: f64 = root.inside.iter().map(|node| node.share).sum();
        assert!((sum - 1.0).abs() < 1e-9);
        assert_eq!(root.inside[0].place, "train.py:80");
        assert_eq!(root.inside[1].inside.len(), 1);
        assert_eq!(root.inside[1].inside[0].place, "torch/x.py");
        assert!(of(&Account::default()).is_none());
    }
}
