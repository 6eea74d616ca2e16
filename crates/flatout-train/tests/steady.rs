//! A steady step allocates nothing: not in the engine, not in the loop around it.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod support;

use flatout_train::{Configuration, Report, Trainer};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use support::{stocks, values};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

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
        let now = ALLOCATIONS.load(Ordering::Relaxed);
        match report {
            Report::Steps { line: true, .. } => {
                if let Some(before) = before {
                    fewest = fewest.min(now - before);
                }
                before = Some(ALLOCATIONS.load(Ordering::Relaxed));
            }
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
