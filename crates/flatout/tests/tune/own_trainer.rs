//! `flatout tune -- flatout train …`

use crate::trying::{Try, json, words};

fn search(settings: &str) -> (Try, std::process::Output) {
    let place = Try::new();
    let data = "data: data\ngenerate: {kind: stocks, stocks: 10, days: 120}\nmodel_type: lstm\nhidden_size: 16\nsequence_length: 10\nbatch_size: 4\ndevice: cpu\n";
    place.script("train.yaml", &format!("{data}{settings}"));
    let program = [env!("CARGO_BIN_EXE_flatout"), "train", "--config", "train.yaml"];
    let output = place.tune(&["--json", "--max-trials", "2"], &program);
    (place, output)
}

#[test]
fn a_training_of_a_second_is_long_enough() {
    let (place, output) = search("epochs: 1\n");
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

#[test]
fn its_last_phase_goes_on_whatever_its_patience() {
    let phases = "learning_rate: 1e-12\neval_interval: 1\nearly_stopping: 1\npretrain: {epochs: 1}\nglobal: {epochs: 2}\n";
    let (place, output) = search(phases);
    assert_eq!(
        json(&output)["trials"].as_array().unwrap().len(),
        2,
        "{}",
        words(&output)
    );
    let log = std::fs::read_dir(place.folder.path().join("home/tune"))
        .unwrap()
        .flatten()
        .next()
        .unwrap();
    let log = std::fs::read_to_string(log.path().join("trials/001/output.log")).unwrap();
    assert!(log.contains("pretrain 1/1") && log.contains("global 3/"), "{log}");
}
