//! `flatout diagnose` on records that are whole, cut short, of another version, or none at all.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn diagnose(home: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_flatout"))
        .args(["--lang", "en", "diagnose"])
        .args(arguments)
        .env("FLATOUT_HOME", home)
        .output()
        .unwrap()
}

/// A copy of a committed record of a training that waits for its loader.
fn record(into: &Path) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../faults/in_process_images/record");
    let folder = into.join("record");
    fs::create_dir_all(&folder).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
    }
    folder
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_whole_record_is_explained_for_people_and_for_programs() {
    let home = tempfile::tempdir().unwrap();
    let folder = record(home.path());
    let folder = folder.to_str().unwrap();
    let people = diagnose(home.path(), &[folder]);
    assert!(people.status.success());
    let said = text(&people.stdout);
    for word in [
        "loader-without-workers",
        "train.py:26",
        "flatout run --apply loader.num_workers=",
        "Where the",
    ] {
        assert!(said.contains(word), "no `{word}` in:\n{said}");
    }
    let programs = diagnose(home.path(), &[folder, "--json"]);
    let value: serde_json::Value = serde_json::from_slice(&programs.stdout).unwrap();
    assert_eq!(value["schema"], 1);
    assert_eq!(value["findings"][0]["rule"], "loader-without-workers");
    assert!(value["time"]["rows"].as_array().unwrap().len() > 2);
}

#[test]
fn diagnoses_a_torn_record_and_reports_losses() {
    let home = tempfile::tempdir().unwrap();
    let folder = record(home.path());
    let steps = folder.join("steps.jsonl");
    let mut bytes = fs::read(&steps).unwrap();
    bytes.truncate(bytes.len() - 20);
    fs::write(&steps, &bytes).unwrap();
    let facts = folder.join("facts.jsonl");
    let broken = format!("this is no JSON\n{}", fs::read_to_string(&facts).unwrap());
    fs::write(&facts, broken).unwrap();
    let output = diagnose(home.path(), &[folder.to_str().unwrap()]);
    assert!(output.status.success());
    assert!(text(&output.stdout).contains("loader-without-workers"));
    assert!(
        text(&output.stderr).contains("could not be read"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn refuses_folders_that_are_not_records() {
    let home = tempfile::tempdir().unwrap();
    let folder = record(home.path());
    fs::write(folder.join("run.json"), r#"{"schema": 9, "everything": "else"}"#).unwrap();
    let newer = diagnose(home.path(), &[folder.to_str().unwrap()]);
    let nothing = diagnose(home.path(), &["last"]);
    let stranger = diagnose(home.path(), &[home.path().to_str().unwrap()]);
    for (output, word) in [
        (newer, "newer flatout"),
        (nothing, "no run"),
        (stranger, "run.json"),
    ] {
        assert_eq!(output.status.code(), Some(2));
        let said = text(&output.stderr);
        assert!(said.contains(word) && said.contains("hint:"), "{said}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_monitors_record_shows_its_verdict() {
    let home = tempfile::tempdir().unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/recordings/h200-dips");
    let folder = folder.to_str().unwrap();
    let said = text(&diagnose(home.path(), &[folder]).stdout);
    let replayed = Command::new(env!("CARGO_BIN_EXE_flatout"))
        .args(["--lang", "en", "replay", "--plain", folder])
        .output()
        .unwrap();
    let replayed = text(&replayed.stdout);
    let at = replayed.find("Verdict after").unwrap();
    assert!(said.starts_with(&replayed[at..]), "{said}\n---\n{replayed}");
    assert!(
        said.contains("flatout run -- COMMAND") && !said.contains("exit code"),
        "{said}"
    );
    let programs = diagnose(home.path(), &[folder, "--json"]);
    let value: serde_json::Value = serde_json::from_slice(&programs.stdout).unwrap();
    assert_eq!(value["monitor"]["ticks"], 34);
    let markdown = Command::new(env!("CARGO_BIN_EXE_flatout"))
        .args(["--lang", "en", "report", folder, "--md"])
        .output()
        .unwrap();
    let page = text(&markdown.stdout);
    assert!(
        page.contains("utilization | **71.9%**") && !page.contains("exit code"),
        "{page}"
    );
}
