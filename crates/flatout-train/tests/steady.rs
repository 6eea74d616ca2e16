//! A steady step allocates nothing: not in the loop around the engine, and not for the record, which a thread of its own writes. (The
//! engine's threads are held to the same by its own test.)

#![allow(clippy::unwrap_used, reason = "a test may fail")]

#[path = "../../../tests/support/counting.rs"]
mod counting;

mod support;

use counting::own_allocator_calls;
use flatout_train::{Configuration, Report, Trainer};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use support::{stocks, values};

/// The training thread's calls of the allocator between two lines of progress that are so many steps apart: the fewest and the most.
fn between_lines(data: &Path, output: &Path, steps: &str, accumulation: &str) -> (u64, u64) {
    let more = [
        ("log_interval", steps),
        ("epochs", "2"),
        ("batch_size", "4"),
        ("gradient_accumulation_steps", accumulation),
        ("threads", "1"),
    ];
    let configuration = Configuration::read(None, &values(data, output, &more)).unwrap();
    let interrupted = AtomicBool::new(false);
    let (mut before, mut fewest, mut most) = (None, u64::MAX, 0);
    let mut report = |report: &Report| {
        let now = own_allocator_calls();
        match report {
            Report::Steps { line: true, .. } => {
                if let Some(before) = before {
                    fewest = fewest.min(now - before);
                    most = most.max(now - before);
                }
                before = Some(own_allocator_calls());
            }
            _ => before = None,
        }
    };
    Trainer::new(&configuration, &interrupted, &mut report)
        .unwrap()
        .run()
        .unwrap();
    assert_ne!(fewest, u64::MAX, "no two lines in one epoch");
    (fewest, most)
}

#[test]
fn more_steps_are_no_more_allocations() {
    let folder = tempfile::tempdir().unwrap();
    let (data, output) = (folder.path().join("data"), folder.path().join("out"));
    stocks(&data);
    for accumulation in ["1", "2"] {
        // A line itself is made of strings: the same for few steps as for many, and what is left is none a step.
        let (few, _) = between_lines(&data, &output, "5", accumulation);
        let (many, most) = between_lines(&data, &output, "40", accumulation);
        assert_eq!(few, many, "{few} calls for 5 steps, {many} for 40");
        // No stretch of steps has more, the record's ticks included.
        assert!(most <= few + 2, "{few} for a line, {most} for another");
    }
}
