//! Every kind of bad input gets a clear word, and no process is left behind.

use crate::support::plain_python;
use crate::trying::{STEPS, Try, kept, words};
use std::time::{Duration, Instant};

/// Runs a script under `tune`; what it said, and its exit code.
fn said(script: &str, options: &[&str], arguments: &[&str]) -> Option<(String, Option<i32>)> {
    let python = plain_python()?;
    let place = Try::new();
    place.script("program.py", script);
    let program: Vec<&str> = [python.to_str().unwrap(), "program.py"]
        .into_iter()
        .chain(arguments.iter().copied())
        .collect();
    let output = place.tune(options, &program);
    assert!(place.left_behind().is_empty(), "{:?}", place.left_behind());
    Some((words(&output), output.status.code()))
}

#[test]
fn a_command_that_does_not_train() {
    let Some((text, code)) = said("print('hello')", &[], &[]) else {
        return;
    };
    assert_eq!(code, Some(2));
    assert!(
        text.contains("ended without a training step") && text.contains("hello") && text.contains("hint:"),
        "{text}"
    );
}

#[test]
fn a_command_that_fails_at_once() {
    let Some((text, code)) = said("raise SystemExit('no such data set')", &[], &[]) else {
        return;
    };
    assert_eq!(code, Some(2));
    assert!(
        text.contains("fails on its own: exit code 1") && text.contains("no such data set"),
        "{text}"
    );
    let place = Try::new();
    let output = place.tune(&[], &["/no/such/program"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(words(&output).contains("failed to start"), "{}", words(&output));
}

#[test]
fn a_command_that_fails_from_the_third_trial_on() {
    let script = format!(
        "import os\nruns = len(os.listdir('seen')) if os.path.isdir('seen') else 0\nos.makedirs('seen/%d' % runs)\nassert runs < 2, 'broken'\n{STEPS}"
    );
    let Some((text, code)) = said(&script, &["--max-trials", "8"], &["{batch_size=8}"]) else {
        return;
    };
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("rejected: exit code 1: AssertionError: broken") && text.contains("kept"),
        "{text}"
    );
    // Every trial that began is told, that of the smaller batch at the end as well.
    let begun = text.matches("of at most").count();
    let told = text.matches("AssertionError: broken").count();
    // Once when it ended, once in the table.
    assert!(begun > 3 && told == 2 * (begun - 2), "{text}");
}

#[test]
fn reports_a_command_that_ignores_its_placeholder() {
    let script = STEPS.replace("int(sys.argv[1])", "8");
    let Some((text, code)) = said(&script, &["--max-trials", "4"], &["{batch_size=8}"]) else {
        return;
    };
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("the program was given 32 but used 8") && kept(&text),
        "{text}"
    );
}

#[test]
fn stops_a_hanging_command_and_its_children() {
    let script = "import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\ntime.sleep(600)\n";
    let began = Instant::now();
    let Some((text, code)) = said(script, &["--patience", "2"], &[]) else {
        return;
    };
    assert_eq!(code, Some(2));
    assert!(text.contains("no training step for 2 s"), "{text}");
    assert!(began.elapsed() < Duration::from_secs(300));
}

#[test]
fn refuses_invalid_knobs_ranges_and_placeholders() {
    let cases = [
        (
            &["--knobs", "batch_size=-5"][..],
            "not a valid range for batch_size",
        ),
        (&["--knobs", "colour"], "unknown knob: `colour`"),
        (&["--objective", "joy"], "unknown objective: `joy`"),
        (&["--objective", "cost"], "--objective cost needs a price"),
        (&["--set", "train.batch_size"], "--set needs a configuration file"),
        (&["--config", "no.yaml"], "failed to read `no.yaml`"),
    ];
    for (options, expected) in cases {
        let place = Try::new();
        let output = place.tune(options, &["true"]);
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        assert!(
            words(&output).contains(expected),
            "{options:?}: {}",
            words(&output)
        );
    }
    let place = Try::new();
    let output = place.tune(&[], &["true", "{colour}"]);
    assert!(
        words(&output).contains("not a setting that can be tuned"),
        "{}",
        words(&output)
    );
}

#[test]
fn two_at_once_and_an_interrupt() {
    let Some(python) = plain_python() else { return };
    let place = Try::new();
    place.script("steps.py", STEPS);
    let program = [
        "tune",
        "--trial-seconds",
        "2",
        "--",
        python.to_str().unwrap(),
        "steps.py",
        "{batch_size=8}",
    ];
    let first = place
        .command(&program)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let trials = place.folder.path().join("home/tune");
    let begun = Instant::now();
    // The second trial has begun: the first one's result is on disk.
    let second_trial = || {
        let folders = std::fs::read_dir(&trials).into_iter().flatten().flatten();
        folders
            .into_iter()
            .any(|folder| folder.path().join("trials/002").exists())
    };
    while !second_trial() && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let second = place.tune(&[], &["true"]);
    assert_eq!(second.status.code(), Some(2));
    assert!(
        words(&second).contains("another `flatout tune` is running"),
        "{}",
        words(&second)
    );
    // SAFETY: sends a signal to the child that this test has started and not waited for.
    unsafe { libc::kill(first.id() as libc::pid_t, libc::SIGINT) };
    let output = first.wait_with_output().unwrap();
    assert!(
        words(&output).contains("Interrupted; this is the best so far"),
        "{}",
        words(&output)
    );
    assert!(place.left_behind().is_empty(), "{:?}", place.left_behind());
}
