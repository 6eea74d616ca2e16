//! Which line of the user's own code was running.

use crate::account::frame::Frame;
use flatout_core::Place;
use flatout_record::{RunData, StackCount};
use std::collections::BTreeMap;

/// Frames of these are not the user's: the place sought is the innermost frame outside of them.
const NOT_THE_USERS: [&str; 6] = [
    "site-packages",
    "dist-packages",
    "/lib/python",
    "<frozen",
    "<string>",
    "_flatout_probe",
];

/// Whether a frame or file is not the user's own.
pub fn is_library(text: &str) -> bool {
    NOT_THE_USERS.iter().any(|mark| text.contains(mark))
}

/// A line of the user's code with the share of the stacks that stood in it.
#[derive(Clone, Debug)]
pub struct HotLine {
    pub place: Place,
    pub function: String,
    pub share: f64,
}

/// The user's lines by their share of all the training thread's stacks, the hottest first; `keep` chooses stacks.
pub fn hot_lines(data: &RunData, range: (f64, f64), keep: impl Fn(&StackCount) -> bool) -> Vec<HotLine> {
    let all = within(data, range)
        .filter(|stack| !stack.worker)
        .map(|stack| stack.count)
        .sum();
    lines(within(data, range).filter(|stack| keep(stack)), all)
}

/// The line with most of the stacks that `keep` chooses, and how many those are.
pub fn hottest_within(
    data: &RunData,
    range: (f64, f64),
    keep: impl Fn(&StackCount) -> bool,
) -> Option<(HotLine, u64)> {
    let kept = || within(data, range).filter(|stack| keep(stack));
    let all = kept().map(|stack| stack.count).sum();
    let hottest = lines(kept(), all).into_iter().next()?;
    Some((hottest, all))
}

/// Stacks are told up to a minute after they were seen.
fn within(data: &RunData, (start_s, end_s): (f64, f64)) -> impl Iterator<Item = &StackCount> {
    let ticks = data.stacks.iter();
    let ticks = ticks.filter(move |tick| tick.t > start_s && tick.t <= end_s + 60.0);
    ticks.flat_map(|tick| &tick.stacks)
}

fn lines<'a>(stacks: impl Iterator<Item = &'a StackCount>, all: u64) -> Vec<HotLine> {
    let mut counts: BTreeMap<(Place, String), u64> = BTreeMap::new();
    for stack in stacks {
        if let Some(found) = stack.frames.iter().rev().find_map(|frame| users_frame(frame)) {
            *counts.entry(found).or_default() += stack.count;
        }
    }
    let line = |((place, function), count): ((Place, String), u64)| HotLine {
        place,
        function,
        share: count as f64 / all.max(1) as f64,
    };
    let mut lines: Vec<HotLine> = counts.into_iter().map(line).collect();
    lines.sort_by(|a, b| b.share.total_cmp(&a.share));
    lines
}

/// The training thread's stacks that `own` chooses and that stand in the user's code, and all of them. `None` without stacks.
pub fn own_stacks(
    data: &RunData,
    range: (f64, f64),
    own: impl Fn(&StackCount) -> bool,
) -> Option<(u64, u64)> {
    let (mut chosen, mut all) = (0u64, 0u64);
    for stack in within(data, range).filter(|stack| !stack.worker) {
        all += stack.count;
        if own(stack) && stack.frames.iter().any(|frame| users_frame(frame).is_some()) {
            chosen += stack.count;
        }
    }
    (all > 0).then_some((chosen, all))
}

/// `function (file:line)` of the user's code.
fn users_frame(text: &str) -> Option<(Place, String)> {
    let frame = Frame::parse(text).filter(Frame::is_users)?;
    Some((frame.place(), frame.function))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_user_frames_become_locations() {
        assert!(users_frame("step (/venv/lib/python3.11/site-packages/torch/optim.py:3)").is_none());
        let (place, function) = users_frame("train (train.py:12)").unwrap();
        assert_eq!((place.line, function.as_str()), (12, "train"));
        assert!(users_frame("<module> (/venv/bin/accelerate:8)").is_none());
        assert!(users_frame("<module> (/home/me/bin/train.py:8)").is_some());
        assert!(users_frame("nonsense").is_none());
    }
}
