//! What a training leaves for other programs to plot, read by those programs.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod support;

use std::path::Path;
use std::process::Command;
use support::{stocks, train, values};

const READ: &str = "
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1])
events.Reload()
print(json.dumps({tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in events.Tags()['scalars']}))
";

fn scalars(python: &Path, folder: &Path) -> serde_json::Value {
    let output = Command::new(python)
        .args(["-c", READ])
        .arg(folder)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn tensorboard_csv_and_json_lines_agree_also_after_a_resume() {
    let folder = tempfile::tempdir().unwrap();
    let (data, output) = (folder.path().join("data"), folder.path().join("out"));
    stocks(&data);
    let more = [("log_interval", "5"), ("eval_interval", "2")];
    // Interrupted in the third epoch, so that the resumed part begins in the middle of one.
    let (outcome, _) = train(&values(&data, &output, &more), Some(55)).unwrap();
    assert!(outcome.interrupted);
    let resume = output.display().to_string();
    let again = [&more[..], &[("resume", resume.as_str())]].concat();
    train(&values(&data, &output, &again), None).unwrap();

    let text = std::fs::read_to_string(output.join("metrics.jsonl")).unwrap();
    let rows: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let epochs: Vec<u64> = rows.iter().map(|row| row["epoch"].as_u64().unwrap()).collect();
    assert_eq!(epochs, [1, 2, 3, 4]);
    let csv = std::fs::read_to_string(output.join("metrics.csv")).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 5);
    assert!(
        lines[0].starts_with("phase,epoch,step,loss,rate,samples_s,seconds"),
        "{}",
        lines[0]
    );
    assert!(lines[0].contains("validation_loss"));

    let Some(python) = flatout_testing::tensorboard_python() else {
        return;
    };
    let scalars = scalars(&python, &output.join("tensorboard"));
    let points = |tag: &str| scalars[tag].as_array().unwrap().clone();
    let close = |point: &serde_json::Value, row: &serde_json::Value, value: &serde_json::Value| {
        assert_eq!(point[0], row["step"]);
        assert!((point[1].as_f64().unwrap() - value.as_f64().unwrap()).abs() < 1e-6);
    };
    assert_eq!(points("train/loss").len(), 4);
    for (point, row) in points("train/loss").iter().zip(&rows) {
        close(point, row, &row["loss"]);
    }
    assert_eq!(points("validation/loss").len(), 2);
    close(
        &points("validation/loss")[1],
        &rows[3],
        &rows[3]["scores"]["loss"],
    );
    let steps: Vec<u64> = points("steps/loss")
        .iter()
        .map(|point| point[0].as_u64().unwrap())
        .collect();
    assert!(steps.is_sorted_by(|a, b| a < b), "{steps:?}");
}
