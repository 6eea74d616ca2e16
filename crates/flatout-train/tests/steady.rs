//! A steady step allocates nothing: not in the engine, not in the loop around it.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

#[path = "../../../tests/support/counting.rs"]
mod counting;

mod support;

use counting::allocator_calls;
use flatout_train::{Configuration, Report, Trainer};
use std::sync::atomic::AtomicBool;
use support::{stocks, values};

/// The fewest allocations between two lines of progress that are so many steps apart. The fewest, since once a second the record
/// is written, and a line itself is made of strings.
fn between_lines(data: &std::path::Path, output: &std::path::Path, steps: &str, accumulation: &str) -> u64 {
    let more = [
        ("log_interval", steps),
        ("epochs", "2"),
        ("batch_size", "4"),
        ("gradient_accumulation_steps", accumulation),
    ];
    let configuration = Configuration::read(None, &values(data, output, &more)).unwrap();
    let interrupted = AtomicBool::new(false);
    let (mut before, mut fewest) = (None, u64::MAX);
    let mut report = |report: &Report| {
        let now = allocator_calls();
        match report {
            Report::Steps { line: true, .. } => {
                if let Some(before) = before {
                    fewest = fewest.min(now - before);
                }
                before = Some(allocator_calls());
            }
            // A slow machine reports between two lines, too.
            Report::Steps { .. } => {}
            _ => before = None,
        }
    };
    Trainer::new(&configuration, &interrupted, &mut report)
        .unwrap()
        .run()
        .unwrap();
    assert_ne!(fewest, u64::MAX, "no two lines in one epoch");
    fewest
}

#[test]
fn more_steps_are_no_more_allocations() {
    let folder = tempfile::tempdir().unwrap();
    let (data, output) = (folder.path().join("data"), folder.path().join("out"));
    stocks(&data);
    for accumulation in ["1", "2"] {
        let few = between_lines(&data, &output, "5", accumulation);
        let many = between_lines(&data, &output, "40", accumulation);
        // A busy machine may write the record between any two lines: less than one a step is none a step.
        assert!(many < few + 35, "{few} allocations for 5 steps, {many} for 40");
    }
}
