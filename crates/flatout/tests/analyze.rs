//! `flatout analyze` and `report` of bad input, as a user meets it: clear words, partial results, never a wrong number.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn flatout(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_flatout"))
        .args(arguments)
        .current_dir(folder)
        .env("LC_ALL", "C")
        .env("FLATOUT_HOME", folder)
        // No Slurm of this machine, whether it has one or not.
        .env("PATH", folder)
        .output()
        .unwrap()
}

fn words(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn good(folder: &Path, arguments: &[&str]) -> String {
    let output = flatout(folder, arguments);
    assert!(output.status.success(), "{}", words(&output.stderr));
    words(&output.stdout)
}

/// A record of steps, each line at its time.
fn record(folder: &Path, name: &str, info: &Value, times: &[f64]) {
    let folder = folder.join("runs").join(name);
    fs::create_dir_all(&folder).unwrap();
    let mut all = json!({"schema": 1, "id": name, "name": name, "kind": "run", "started_unix_ms": 1_790_000_000_000_u64});
    all.as_object_mut()
        .unwrap()
        .extend(info.as_object().unwrap().clone());
    fs::write(folder.join("run.json"), all.to_string()).unwrap();
    let sample = |t: &f64| json!({"t": t, "gpus": {"0": {"util": 0.5, "power_w": 200.0}}}).to_string() + "\n";
    fs::write(
        folder.join("samples.jsonl"),
        times.iter().map(sample).collect::<String>(),
    )
    .unwrap();
    let step = |t: &f64| {
        let phases = json!({"compute": {"ms": 990.0}});
        json!({"t": t, "dt": 1.0, "steps": 10, "samples": 80, "phases": phases}).to_string() + "\n"
    };
    fs::write(
        folder.join("steps.jsonl"),
        times.iter().map(step).collect::<String>(),
    )
    .unwrap();
}

fn seconds(count: u32) -> Vec<f64> {
    (1..=count).map(f64::from).collect()
}

#[test]
fn a_record_whose_clock_jumps_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut times = seconds(40);
    times.extend([12.0, 13.0]);
    times.extend((41..=60).map(f64::from));
    record(folder.path(), "jumps", &json!({}), &times);
    let report: Value = serde_json::from_str(&good(folder.path(), &["report", "jumps", "--json"])).unwrap();
    assert!(
        report["defects"]
            .to_string()
            .contains("2 samples and 2 step lines"),
        "{}",
        report["defects"]
    );
    assert_eq!(report["length_s"], 60.0);
    let rate = report["figures"][0]["mean"].as_f64().unwrap();
    assert!((rate - 80.0).abs() < 1.0, "{rate}");
    let page = good(folder.path(), &["report", "jumps", "--html", "-"]);
    assert!(page.contains("the clock jumped back"));
}

#[test]
fn an_empty_run_and_a_single_sample() {
    let folder = tempfile::tempdir().unwrap();
    record(folder.path(), "empty", &json!({}), &[]);
    let text = good(folder.path(), &["report", "empty"]);
    assert!(
        text.contains("the record is empty") && !text.contains("0%"),
        "{text}"
    );
    assert!(good(folder.path(), &["analyze", "empty"]).contains("no samples"));
    record(folder.path(), "one", &json!({}), &[1.0]);
    fs::remove_file(folder.path().join("runs/one/steps.jsonl")).unwrap();
    let text = good(folder.path(), &["report", "one"]);
    assert!(text.contains("only one sample"), "{text}");
    let drawn = flatout(folder.path(), &["analyze", "empty", "--png", "x.png"]);
    assert_eq!(drawn.status.code(), Some(2));
    assert!(words(&drawn.stderr).contains("nothing to draw") && !folder.path().join("x.png").exists());
}

#[test]
fn ranks_of_two_hosts_whose_clocks_differ() {
    let folder = tempfile::tempdir().unwrap();
    for (rank, start) in [(0, 1_790_000_000_000_u64), (1, 1_790_010_800_000)] {
        let job = json!({"system": "slurm", "id": "77", "fields": {"rank": rank.to_string()}});
        let host =
            json!({"name": format!("node{rank}"), "kernel": "linux", "cpus": {"online": 4, "affinity": 4}});
        let info = json!({"job": job, "host": host, "started_unix_ms": start});
        record(
            folder.path(),
            &format!("train-job77-rank{rank}"),
            &info,
            &seconds(30),
        );
    }
    let report: Value =
        serde_json::from_str(&good(folder.path(), &["report", "--job-id", "77", "--json"])).unwrap();
    let rows = report["ranks"]["rows"].as_array().unwrap();
    let steps: Vec<(&str, u64, f64)> = rows
        .iter()
        .map(|row| {
            let host = row["host"].as_str().unwrap();
            (
                host,
                row["steps"].as_u64().unwrap(),
                row["step_ms"].as_f64().unwrap(),
            )
        })
        .collect();
    assert_eq!(steps, [("node0", 300, 100.0), ("node1", 300, 100.0)]);
    assert_eq!(report["length_s"], 30.0);
    assert!(rows.iter().all(|row| row["straggler"] == false));
    let text = good(folder.path(), &["analyze", "--job-id", "77"]);
    assert!(text.contains("3 h 00 min apart"), "{text}");
    // There is no sacct here: what it would know is unknown, the rest is shown.
    assert!(text.contains("what the job asked for is unknown"), "{text}");
}

#[test]
fn an_unknown_job_without_sacct() {
    let folder = tempfile::tempdir().unwrap();
    let output = flatout(folder.path(), &["analyze", "--job-id", "52098"]);
    let said = words(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said.contains("no information about job 52098") && said.contains("hint:"),
        "{said}"
    );
    assert!(output.stdout.is_empty());
    // A log with the number in its name is enough for a part of the answer.
    fs::write(folder.path().join("train_52098.log"), "Epoch 1/2 | time 25.5s\n").unwrap();
    let text = good(folder.path(), &["analyze", "--job-id", "52098"]);
    assert!(
        text.contains("one epoch: 25.5 s") && text.contains("asked for is unknown"),
        "{text}"
    );
}

#[test]
fn renders_a_log_of_mixed_encodings() {
    let folder = tempfile::tempdir().unwrap();
    let log = [
        "Epoch 1/3 | 损失 0.5 | time 25.5s\n".as_bytes(),
        b"\xb5\xda2\xc2\xd6 loss nan\n",
        b"Epoch 2/3 | loss nan | time 24.5s\n\x00\xff\xfe\n",
    ];
    fs::write(folder.path().join("train.log"), log.concat()).unwrap();
    let text = good(
        folder.path(),
        &[
            "analyze",
            "train.log",
            "--html",
            "train.html",
            "--png",
            "train.png",
        ],
    );
    assert!(
        text.contains("lines that are not UTF-8: 2")
            && text.contains("2 epochs: mean 24.5 s without the first"),
        "{text}"
    );
    let page = fs::read_to_string(folder.path().join("train.html")).unwrap();
    assert!(
        page.contains("lines that are not UTF-8: 2") && page.contains("2 epochs"),
        "{page}"
    );
    let picture = fs::read(folder.path().join("train.png")).unwrap();
    assert!(picture.starts_with(b"\x89PNG"));
}

#[test]
fn a_pipe_is_read_from_its_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("gpu.csv");
    let mut text = String::from("timestamp, index, utilization.gpu [%]\n");
    // More than what is looked at to find out what it is.
    for second in 0..6000 {
        text += &format!(
            "2024/05/21 {:02}:{:02}:{:02}.000, 0, 50 %\n",
            second / 3600,
            second / 60 % 60,
            second % 60
        );
    }
    fs::write(&log, text).unwrap();
    let mut cat = Command::new("cat")
        .arg(&log)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_flatout"))
        .args(["analyze", "/dev/stdin", "--json"])
        .stdin(cat.stdout.take().unwrap())
        .output()
        .unwrap();
    cat.wait().unwrap();
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["sections"][0]["verdict"]["ticks"], 6000);
}

#[test]
fn a_file_that_is_not_there_is_called_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let output = flatout(folder.path(), &["analyze", "gpu.log"]);
    let said = words(&output.stderr);
    assert!(
        output.status.code() == Some(2) && said.contains("failed to read `gpu.log`"),
        "{said}"
    );
}
