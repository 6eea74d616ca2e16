//! `flatout train`: what it has written can be resumed, and then ends in the same weights and the same metrics.

use crate::Kills;
use crate::process::{completes, killed, leftovers};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const TRAIN: [&str; 20] = [
    "train",
    "--data",
    "data",
    "--hidden-size",
    "8",
    "--sequence-length",
    "6",
    "--batch-size",
    "16",
    "--threads",
    "1",
    "--device",
    "cpu",
    "--epochs",
    "5",
    "--eval-interval",
    "1",
    "--checkpoint-interval",
    "1",
    "--deterministic",
];

#[test]
fn train() {
    let mut kills = Kills::of("train");
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    completes(
        at,
        &[
            "generate", "stocks", "--out", "data", "--size", "6", "--days", "80",
        ],
    );
    let with = |more: &[&'static str]| [&TRAIN[..], more].concat();
    completes(at, &with(&["--output-dir", "whole"]));
    let whole = result(&at.join("whole"));
    fs::remove_dir_all(at.join("whole")).unwrap();
    let longest = completes(at, &with(&["--output-dir", "whole"]));
    assert_eq!(result(&at.join("whole")), whole, "two whole runs differ");
    while let Some(moment) = kills.next(longest.mul_f64(1.1)) {
        let out = at.join("out");
        let _ = fs::remove_dir_all(&out);
        let running = killed(at, &with(&["--output-dir", "out"]), moment);
        if !out.join("last.safetensors").exists() {
            kills.saw("killed before its first checkpoint");
            continue;
        }
        for entry in fs::read_dir(&out).unwrap().flatten() {
            if entry
                .path()
                .extension()
                .is_some_and(|ending| ending == "safetensors")
            {
                flatout_train::checkpoint::describe(&entry.path()).unwrap();
            }
        }
        completes(at, &with(&["--output-dir", "out", "--resume", "out"]));
        assert_eq!(result(&out), whole, "resumed after {moment:?}");
        assert_eq!(leftovers(&out), Vec::<PathBuf>::new());
        kills.saw(if running { "resumed exactly" } else { "had ended" });
    }
}

/// The weights, and by epoch every number that does not depend on the machine's speed.
fn result(folder: &Path) -> (Vec<u8>, BTreeMap<u64, BTreeMap<String, String>>) {
    let checkpoint = fs::read(folder.join("last.safetensors")).unwrap();
    let header = u64::from_le_bytes(checkpoint[..8].try_into().unwrap()) as usize;
    let mut epochs = BTreeMap::new();
    for line in fs::read_to_string(folder.join("metrics.jsonl")).unwrap().lines() {
        let values: Value = serde_json::from_str(line).unwrap();
        let epoch = values["epoch"].as_u64().unwrap();
        let mut numbers = BTreeMap::new();
        collect("", &values, &mut numbers);
        assert!(
            numbers.keys().any(|name| name.starts_with(".scores.")),
            "epoch {epoch} has no scores: {line}"
        );
        assert_eq!(epochs.insert(epoch, numbers), None, "epoch {epoch} twice");
    }
    (checkpoint[8 + header..].to_vec(), epochs)
}

const OF_THE_MACHINE: [&str; 2] = [".samples_s", ".seconds"];

fn collect(name: &str, value: &Value, numbers: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                collect(&format!("{name}.{field}"), value, numbers);
            }
        }
        Value::Array(entries) => {
            for (index, value) in entries.iter().enumerate() {
                collect(&format!("{name}.{index}"), value, numbers);
            }
        }
        _ if OF_THE_MACHINE.contains(&name) => {}
        _ => drop(numbers.insert(name.to_owned(), value.to_string())),
    }
}
