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

/// The driver's two GPUs are those of a recording; the trainings themselves run on the CPU.
#[test]
fn auto_spreads_a_grid_over_all_gpus() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let made = flatout(root)
        .args([
            "generate", "stocks", "--out", "data", "--size", "8", "--days", "200",
        ])
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let text = "data: data\nhidden_size: [4, 8]\nlearning_rate: [0.01, 0.001]\nsequence_length: 5\nbatch_size: 64\nthreads: 1\nepochs: 3\nnum_layers: 1\noutput_dir: out\n";
    std::fs::write(root.join("grid.yaml"), text).unwrap();
    // The stand-in driver is next to the test, because it is a dev-dependency.
    let library = std::env::current_exe()
        .unwrap()
        .with_file_name("libflatout_fake_nvml.so");
    assert!(library.exists(), "{} is missing", library.display());
    let run = |arguments: &[&str], visible: Option<&str>| {
        let mut command = flatout(root);
        command.args(["grid", "grid.yaml"]).args(arguments);
        command
            .env("FLATOUT_NVML_LIB", &library)
            .env("FLATOUT_FAKE_NVML_GPUS", "2");
        match visible {
            Some(gpus) => command.env("CUDA_VISIBLE_DEVICES", gpus),
            None => command.env_remove("CUDA_VISIBLE_DEVICES"),
        };
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let gpus = |out: &str| -> std::collections::BTreeMap<String, usize> {
        let mut found = std::collections::BTreeMap::new();
        for number in 1..=4 {
            let log =
                std::fs::read_to_string(root.join(out).join(format!("tasks/logs/{number}.log"))).unwrap();
            let gpu = log
                .lines()
                .next()
                .unwrap()
                .strip_prefix("CUDA_VISIBLE_DEVICES=")
                .unwrap();
            *found.entry(gpu.to_owned()).or_default() += 1;
        }
        found
    };
    run(&["--jobs", "auto"], None);
    let used = gpus("out");
    assert_eq!(used.len(), 2, "{used:?}");
    assert!(used.keys().all(|gpu| gpu.starts_with("GPU-")), "{used:?}");
    run(&["--jobs", "auto", "--output-dir", "some"], Some("5,7,9"));
    let used = gpus("some");
    assert!(
        used.keys().all(|gpu| ["5", "7", "9"].contains(&gpu.as_str())) && used.len() >= 2,
        "{used:?}"
    );
    // The same figures as one after the other.
    let best = |out: &str| -> Vec<(String, f64)> {
        let csv = std::fs::read_to_string(root.join(out).join("grid.csv")).unwrap();
        let rows = csv.lines().skip(1).map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            (cells[..2].join(","), cells[2].parse().unwrap())
        });
        rows.collect()
    };
    run(&["--jobs", "1", "--output-dir", "alone"], None);
    let (spread, alone) = (best("out"), best("alone"));
    assert_eq!((spread.len(), alone.len()), (4, 4));
    for (spread, alone) in spread.iter().zip(&alone) {
        let near = (spread.1 - alone.1).abs() <= alone.1.abs() * 1e-9;
        assert!(spread.0 == alone.0 && near, "{spread:?} {alone:?}");
    }
}
