//! A grid that is killed in the middle goes on where it was.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn flatout(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flatout"));
    command
        .current_dir(folder)
        .env("FLATOUT_HOME", folder.join("home"));
    command
}

#[test]
fn a_killed_grid_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let made = flatout(root)
        .args([
            "generate", "stocks", "--out", "data", "--size", "8", "--days", "260",
        ])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let text = "data: data\ndevice: cpu\nhidden_size: [4, 8]\nsequence_length: [5, 10]\nbatch_size: 64\nepochs: 30\nnum_layers: 1\ncheckpoint_interval: 1\neval_interval: 1\noutput_dir: out\n";
    std::fs::write(root.join("grid.yaml"), text).unwrap();
    let mut child = flatout(root)
        .args(["grid", "grid.yaml"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Into the second combination, but not through the last.
    let second = root.join("out/hidden_size-4_sequence_length-10/last.safetensors");
    let begun = Instant::now();
    while !second.exists() && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(second.exists(), "the second combination never began");

    let again = flatout(root)
        .args(["grid", "grid.yaml", "--json"])
        .output()
        .unwrap();
    assert!(
        again.status.success(),
        "{}",
        String::from_utf8_lossy(&again.stderr)
    );
    let stdout = String::from_utf8(again.stdout).unwrap();
    let events: Vec<serde_json::Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let first_end = events.iter().find(|event| event["event"] == "end").unwrap();
    assert_eq!(first_end["before"], true);
    let resumed = events.iter().find(|event| event["event"] == "begin").unwrap();
    assert_eq!(
        (&resumed["point"], &resumed["resumed"]),
        (&2.into(), &true.into())
    );
    let last = events.last().unwrap();
    assert_eq!(
        (last["event"].as_str(), last["results"].as_array().unwrap().len()),
        (Some("grid"), 4)
    );
    let csv = std::fs::read_to_string(root.join("out/grid.csv")).unwrap();
    assert_eq!(csv.lines().count(), 5);

    // The table for people, and the plot.
    let shown = flatout(root)
        .args(["grid", "grid.yaml", "--lang", "zh"])
        .output()
        .unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        shown.contains("最佳损失") && shown.matches('●').count() == 4,
        "{shown}"
    );
}
