//! `flatout train` on data that its configuration makes, and `flatout predict`, as a user runs them.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use command::flatout;
use std::fs;
use std::process::Output;

#[path = "support/command.rs"]
mod command;

const CONFIGURATION: &str = "\
data: data/stocks
generate:
  kind: stocks
  stocks: 4
  days: 160
hidden_size: 8
num_layers: 1
sequence_length: 5
batch_size: 64
epochs: 1
device: cpu
output_dir: out
";

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn trained() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("small.yaml"), CONFIGURATION).unwrap();
    let output = flatout(folder.path(), &["train", "--config", "small.yaml"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(
        said.contains("best score any model can reach") && said.contains("ic "),
        "{said}"
    );
    assert!(said.contains("lstm with"), "{said}");
    let best = "best so far, epoch 1: out/best.safetensors";
    assert!(said.contains(best), "{said}");
    folder
}

#[test]
fn predictions_go_to_stdout_or_whole_into_a_file() {
    let folder = trained();
    let output = flatout(
        folder.path(),
        &["predict", "out", "data/stocks", "--device", "cpu"],
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "entity,time,prediction");
    assert!(lines.len() > 400, "{}", lines.len());
    assert_eq!(lines[1].split(',').count(), 3);
    let written = flatout(
        folder.path(),
        &[
            "predict",
            "out/last.safetensors",
            "data/stocks",
            "--out",
            "p.parquet",
            "--device",
            "cpu",
        ],
    );
    assert!(stderr(&written).contains(&format!("wrote {} predictions to p.parquet", lines.len() - 1)));
    assert!(folder.path().join("p.parquet").metadata().unwrap().len() > 1000);
    let nowhere = flatout(
        folder.path(),
        &[
            "predict",
            "out",
            "data/stocks",
            "--out",
            "missing/p.csv",
            "--device",
            "cpu",
        ],
    );
    assert_eq!(nowhere.status.code(), Some(2));
}

#[test]
fn reports_unusable_input() {
    let folder = trained();
    let failure = |arguments: &[&str]| {
        let output = flatout(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        stderr(&output)
    };
    assert!(failure(&["predict", "nowhere", "data/stocks"]).contains("nowhere"));
    fs::write(folder.path().join("rows.csv"), "a,b\n1,2\n").unwrap();
    let other = failure(&["predict", "out", "rows.csv"]);
    assert!(other.contains("rows.csv"), "{other}");
    let whole = fs::read(folder.path().join("out/best.safetensors")).unwrap();
    fs::write(
        folder.path().join("out/best.safetensors"),
        &whole[..whole.len() / 2],
    )
    .unwrap();
    let cut = failure(&["predict", "out", "data/stocks"]);
    assert!(cut.contains("damaged"), "{cut}");
    assert!(failure(&["train", "--config", "small.yaml", "--hidden-size", "-4"]).contains("hidden_size"));
    assert!(failure(&["train", "--config", "small.yaml", "--label", "profit"]).contains("profit"));
    let wider = failure(&["train", "--resume", "out", "--hidden-size", "16", "--epochs", "2"]);
    assert!(wider.contains("hidden_size `8`, not `16`"), "{wider}");
    fs::write(
        folder.path().join("wrong.yaml"),
        "generate:\n  kind: stocks\n  dayz: 3\n",
    )
    .unwrap();
    let wrong = failure(&["train", "--config", "wrong.yaml"]);
    assert!(
        wrong.contains("wrong.yaml:3") && wrong.contains("days"),
        "{wrong}"
    );
}
