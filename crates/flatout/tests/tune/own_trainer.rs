//! `flatout tune -- flatout train …`

use crate::trying::{Try, json, words};

#[test]
fn a_training_of_a_second_is_long_enough() {
    let place = Try::new();
    place.script(
        "train.yaml",
        "data: data\ngenerate: {kind: stocks, stocks: 10, days: 120}\nmodel_type: lstm\nhidden_size: 16\nsequence_length: 10\nepochs: 1\nbatch_size: 4\ndevice: cpu\n",
    );
    let program = [env!("CARGO_BIN_EXE_flatout"), "train", "--config", "train.yaml"];
    let output = place.tune(&["--json", "--max-trials", "2"], &program);
    let found = json(&output);
    let trials = found["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 2, "{}", words(&output));
    assert!(trials[0]["score"]["mean"].as_f64().unwrap() > 0.0);
    // What a trial needs is no part of what the user is told to run.
    let command = found["best"]["command"].to_string();
    assert!(
        command.contains("train.yaml") && !command.contains("epochs"),
        "{command}"
    );
    assert!(!place.folder.path().join("out").exists());
    assert!(place.left_behind().is_empty());
}
