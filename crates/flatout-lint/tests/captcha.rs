//! The project that flatout's lint was first made for: the faults its owners found by hand, found before the run.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use flatout_lint::{Settings, lint};
use std::path::PathBuf;

fn found() -> Vec<(String, String, u32)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/captcha");
    let outcome = lint(std::slice::from_ref(&root), &Settings::default()).unwrap();
    let place = |one: &flatout_lint::report::Reported| {
        let place = one.place();
        let file = place.file.strip_prefix(&root).unwrap().display().to_string();
        (one.finding.rule.clone(), file, place.line)
    };
    outcome.found.iter().map(place).collect()
}

#[test]
fn the_faults_of_the_seed_are_found() {
    let found = found();
    let yaml = "config/training_config.yaml";
    let engine = "src/training/training_engine.py";
    for expected in [
        ("config-value-never-matches", yaml, 5),
        ("config-key-never-read", yaml, 10),
        ("config-key-never-read", yaml, 11),
        ("workers-beyond-usable-cpus", yaml, 7),
        ("optimization-never-called", "src/config_manager.py", 14),
        ("item-in-step", engine, 36),
        ("item-in-step", engine, 35),
        ("optimizer-unfused", engine, 16),
    ] {
        let expected = (expected.0.to_owned(), expected.1.to_owned(), expected.2);
        assert!(found.contains(&expected), "{expected:?} is not in {found:#?}");
    }
    // Behind the logging interval nothing is said.
    assert!(!found.contains(&("item-in-step".to_owned(), engine.to_owned(), 38)));
}
