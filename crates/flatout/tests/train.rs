//! What can happen to a training from outside: Ctrl-C, and a disk without room.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

fn flatout(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flatout"));
    command
        .current_dir(folder)
        .env("FLATOUT_HOME", folder.join("home"))
        .args(arguments);
    command
}

fn folder_with_data() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let generate = [
        "generate", "stocks", "--out", "data", "--size", "8", "--days", "260",
    ];
    let made = flatout(folder.path(), &generate).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    folder
}

const TRAIN: &[&str] = &[
    "train",
    "--data",
    "data",
    "--device",
    "cpu",
    "--hidden-size",
    "16",
    "--num-layers",
    "1",
    "--sequence-length",
    "5",
    "--batch-size",
    "64",
    "--output-dir",
    "out",
];

#[test]
fn ctrl_c_saves_and_prints_how_to_resume() {
    let folder = folder_with_data();
    let more = ["--epochs", "10000", "--log-interval", "1", "--json"];
    let mut child = flatout(folder.path(), &[TRAIN, &more].concat())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let steps = lines.find(|line| line.as_ref().unwrap().contains("\"event\":\"steps\""));
    let line: Value = serde_json::from_str(&steps.unwrap().unwrap()).unwrap();
    for key in [
        "samples_s",
        "loss",
        "busy_ratio",
        "peak_ratio",
        "memory_bytes",
        "power_w",
        "seconds_left",
    ] {
        assert!(line.get(key).is_some(), "{key} is missing in {line}");
    }
    // SAFETY: a signal to a child of our own.
    unsafe { libc::kill(i32::try_from(child.id()).unwrap(), libc::SIGINT) };
    let last = lines.map(|line| line.unwrap()).last().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let last: Value = serde_json::from_str(&last).unwrap();
    assert_eq!(
        (&last["event"], &last["outcome"]["interrupted"]),
        (&"end".into(), &true.into())
    );
    let resumed = flatout(folder.path(), &["train", "--resume", "out", "--epochs", "1"])
        .output()
        .unwrap();
    assert!(
        resumed.status.success(),
        "{}",
        String::from_utf8_lossy(&resumed.stderr)
    );
}

#[test]
fn a_disk_without_room_costs_no_checkpoint_and_no_training() {
    let folder = folder_with_data();
    let every = ["--epochs", "1", "--checkpoint-interval", "1"];
    assert!(
        flatout(folder.path(), &[TRAIN, &every].concat())
            .output()
            .unwrap()
            .status
            .success()
    );
    let checkpoint = folder.path().join("out/last.safetensors");
    let before = std::fs::read(&checkpoint).unwrap();
    // A limit on the size of files is a full disk that needs no privileges; the signal that comes with it is ignored.
    let limited = "trap '' XFSZ; ulimit -f 16; exec \"$0\" \"$@\"";
    let output = Command::new("sh")
        .args(["-c", limited, env!("CARGO_BIN_EXE_flatout")])
        .args([
            "train",
            "--resume",
            "out",
            "--epochs",
            "3",
            "--checkpoint-interval",
            "1",
            "--lang",
            "en",
        ])
        .current_dir(folder.path())
        .env("FLATOUT_HOME", folder.path().join("home"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("warning: failed to write `out/last.safetensors`"),
        "{said}"
    );
    assert!(
        said.contains("train 3/3") && said.contains("no space left"),
        "{said}"
    );
    assert!(
        before == std::fs::read(&checkpoint).unwrap(),
        "the checkpoint before was touched"
    );
    let left = std::fs::read_dir(folder.path().join("out")).unwrap();
    let left = left.filter(|entry| {
        entry
            .as_ref()
            .unwrap()
            .file_name()
            .to_string_lossy()
            .contains("flatout-tmp")
    });
    assert_eq!(left.count(), 0, "half a file was left behind");
    let resumed = flatout(folder.path(), &["train", "--resume", "out", "--epochs", "3"])
        .output()
        .unwrap();
    assert!(
        resumed.status.success(),
        "{}",
        String::from_utf8_lossy(&resumed.stderr)
    );
}

fn said(folder: &Path, arguments: &[&str]) -> (bool, String) {
    let done = flatout(folder, arguments).env("LANG", "C").output().unwrap();
    (
        done.status.success(),
        String::from_utf8_lossy(&done.stderr).into_owned(),
    )
}

#[test]
fn files_of_two_trainings_never_mix() {
    let folder = folder_with_data();
    let at = |name: &str| folder.path().join("out").join(name);
    let (done, text) = said(folder.path(), &[TRAIN, &["--epochs", "1"]].concat());
    assert!(done && !text.contains("another training"), "{text}");
    let first = std::fs::read(at("best.safetensors")).unwrap();
    let other: Vec<&str> = TRAIN
        .iter()
        .map(|word| if *word == "16" { "8" } else { *word })
        .collect();
    let (done, text) = said(folder.path(), &[&other[..], &["--epochs", "1"]].concat());
    assert!(done && text.contains("out contained another training"), "{text}");
    assert_eq!(std::fs::read(at("before/best.safetensors")).unwrap(), first);
    assert!(at("before/run/run.json").exists() && at("before/metrics.csv").exists());
    assert_ne!(std::fs::read(at("best.safetensors")).unwrap(), first);
    // What is put aside stays: the next one has a folder of its own.
    let (done, text) = said(folder.path(), &[TRAIN, &["--epochs", "1"]].concat());
    assert!(done && text.contains("out/before-2"), "{text}");
    assert_eq!(std::fs::read(at("before/best.safetensors")).unwrap(), first);
    // And the one put aside can go on.
    let (done, text) = said(
        folder.path(),
        &["train", "--resume", "out/before", "--epochs", "2"],
    );
    assert!(done && text.contains("out/before"), "{text}");
}

#[test]
fn a_folder_that_was_moved_goes_on_where_it_is_and_a_refusal_changes_nothing() {
    let folder = folder_with_data();
    assert!(said(folder.path(), &[TRAIN, &["--epochs", "1"]].concat()).0);
    std::fs::rename(folder.path().join("out"), folder.path().join("moved")).unwrap();
    let (done, text) = said(folder.path(), &["train", "--resume", "moved", "--epochs", "2"]);
    assert!(done && !folder.path().join("out").exists(), "{text}");
    let metrics = std::fs::read_to_string(folder.path().join("moved/metrics.csv")).unwrap();
    assert_eq!(metrics.lines().count(), 3, "{metrics}");
    let config = || std::fs::read_to_string(folder.path().join("moved/config.yaml")).unwrap();
    let before = config();
    let (done, text) = said(
        folder.path(),
        &[
            "train",
            "--resume",
            "moved",
            "--hidden-size",
            "64",
            "--epochs",
            "5",
        ],
    );
    assert!(!done && text.contains("hidden_size `16`, not `64`"), "{text}");
    assert_eq!(config(), before);
}
