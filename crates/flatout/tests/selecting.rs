//! Which model is kept, and how the learning rate gets there: what a user typed wins, and any score may decide.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

#[path = "support/command.rs"]
mod command;

use command::flatout;
use serde_json::Value;
use std::path::Path;

const SMALL: &str =
    "train --json --data data --device cpu --hidden-size 8 --num-layers 1 --sequence-length 5 --threads 1";

fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    run(place.path(), "generate stocks --out data --size 6 --days 120");
    place
}

fn try_run(folder: &Path, line: &str) -> (bool, String, String) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let output = flatout(folder, &words);
    (
        output.status.success(),
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

fn run(folder: &Path, line: &str) -> String {
    let (done, out, said) = try_run(folder, line);
    assert!(done, "{line}: {said}");
    out
}

fn events(text: &str, kind: &str) -> Vec<Value> {
    let all = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|event| event["event"] == kind).collect()
}

#[test]
fn uses_an_explicit_learning_rate_unchanged() {
    let place = place();
    let rate = |more: &str| {
        let text = run(place.path(), &format!("{SMALL} --epochs 1 {more}"));
        let start = events(&text, "start").remove(0);
        (
            start["learning_rate"].as_f64().unwrap(),
            start["batch_size"].as_u64().unwrap(),
        )
    };
    assert_eq!(rate("--lr 0.004 --output-dir a").0, 0.004);
    let (scaled, batch) = rate("--output-dir b");
    let wanted = 0.001 * (batch as f64 / 512.0).sqrt();
    assert!((scaled - wanted).abs() < 1e-12, "{scaled} for {batch}");
    let (scaled, batch) = rate("--lr 0.004 --keep-lr false --output-dir c");
    assert!(
        (scaled - 0.004 * (batch as f64 / 512.0).sqrt()).abs() < 1e-12,
        "{scaled}"
    );
}

#[test]
fn any_score_decides_what_is_best() {
    let place = place();
    let base = format!("{SMALL} --batch-size 32 --lr 0.05 --epochs 8 --eval-interval 1");
    for (score, higher) in [("rank_ic", true), ("mae", false), ("loss", false)] {
        let text = run(
            place.path(),
            &format!("{base} --select {score} --output-dir {score}"),
        );
        let all = events(&text, "epoch");
        let values = all.iter().map(|epoch| epoch["scores"][score].as_f64().unwrap());
        let best = values
            .clone()
            .reduce(|a, b| if (a > b) == higher { a } else { b })
            .unwrap();
        let end = events(&text, "end").remove(0);
        assert_eq!(end["outcome"]["best"].as_f64().unwrap(), best, "{score}");
        assert_eq!(
            end["outcome"]["best_scores"][score].as_f64().unwrap(),
            best,
            "{score}"
        );
        // And it is the checkpoint that was kept.
        let number = 1 + values.clone().position(|value| value == best).unwrap() as u64;
        let kept = events(&text, "saved")
            .into_iter()
            .rfind(|saved| saved["best"] == true)
            .unwrap();
        assert_eq!(kept["epoch"], number, "{score}");
    }
    let (done, _, said) = try_run(place.path(), &format!("{base} --select auc --output-dir no"));
    assert!(
        !done && said.contains("a score of this task: loss, mae"),
        "{said}"
    );
    // Early stopping looks every epoch unless told otherwise.
    let text = run(
        place.path(),
        &format!("{SMALL} --batch-size 32 --lr 0.5 --epochs 50 --early-stopping 2 --output-dir early"),
    );
    let evaluated = events(&text, "epoch")
        .iter()
        .filter(|epoch| !epoch["scores"].is_null())
        .count();
    assert_eq!(evaluated, events(&text, "epoch").len());
    assert!(evaluated < 50);
}

#[test]
fn schedules_and_optimizers_take_their_numbers() {
    let place = place();
    let base = format!("{SMALL} --batch-size 64 --lr 0.01 --epochs 6");
    let rates = |more: &str| {
        let text = run(place.path(), &format!("{base} {more}"));
        let all = events(&text, "epoch");
        all.iter()
            .map(|epoch| epoch["rate"].as_f64().unwrap())
            .collect::<Vec<f64>>()
    };
    let steps = rates("--lr-schedule step --lr-step-size 2 --lr-gamma 0.5 --output-dir step");
    let wanted = [0.01, 0.01, 0.005, 0.005, 0.0025, 0.0025];
    assert!(
        steps.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12),
        "{steps:?}"
    );
    let cycle = rates("--scheduler onecycle --output-dir cycle");
    let top = cycle.iter().copied().fold(0.0, f64::max);
    assert!(top > 0.008 && *cycle.last().unwrap() < 1e-6, "{cycle:?}");
    // A rate so small that nothing ever gets better.
    let flat = rates("--lr-schedule plateau --lr-patience 0 --lr-gamma 0.1 --lr 1e-30 --output-dir flat");
    assert!(flat.last().unwrap() < &1e-33, "{flat:?}");
    let weights = |more: &str, out: &str| {
        run(place.path(), &format!("{base} {more} --output-dir {out}"));
        std::fs::read(place.path().join(out).join("last.safetensors")).unwrap()
    };
    assert_ne!(
        weights("--betas 0.8,0.99", "b1"),
        weights("--betas 0.9,0.999", "b2")
    );
    assert_ne!(
        weights("--optimizer sgd --momentum 0", "m1"),
        weights("--optimizer sgd", "m2")
    );
    let (done, _, said) = try_run(place.path(), &format!("{base} --betas 0.9"));
    assert!(!done && said.contains("two numbers from 0 to 1"), "{said}");
    std::fs::write(
        place.path().join("c.yaml"),
        "optimizer: {name: adam, lr: 0.002, betas: [0.8, 0.9], eps: 1e-6, weight_decay: 0.1}\n",
    )
    .unwrap();
    run(
        place.path(),
        &format!("{SMALL} --batch-size 64 --epochs 1 --config c.yaml --output-dir yaml"),
    );
    let resolved = std::fs::read_to_string(place.path().join("yaml/config.yaml")).unwrap();
    assert!(
        resolved.contains("betas: \"0.8,0.9\"") && resolved.contains("eps: 1e-6"),
        "{resolved}"
    );
}

#[test]
fn a_training_begins_with_the_weights_of_another() {
    let place = place();
    let base = format!("{SMALL} --batch-size 64 --lr 1e-30 --weight-decay 0 --epochs 1 --entity-dropout 0");
    run(
        place.path(),
        &format!("{SMALL} --batch-size 64 --lr 0.01 --epochs 4 --entity-dropout 0 --output-dir first"),
    );
    let loss = |text: &str| events(text, "epoch")[0]["scores"]["loss"].as_f64().unwrap();
    let trained = loss(&run(
        place.path(),
        &format!("{base} --init first/last.safetensors --output-dir second"),
    ));
    let scores = run(
        place.path(),
        "evaluate first/last.safetensors data --device cpu --json",
    );
    let scores: Value = serde_json::from_str(&scores).unwrap();
    assert!(
        scores["samples"].as_u64().unwrap() > 0 && scores["rank_ic"].is_number(),
        "{scores}"
    );
    let anew = loss(&run(place.path(), &format!("{base} --output-dir third")));
    let metrics = std::fs::read_to_string(place.path().join("first/metrics.jsonl")).unwrap();
    let last: Value = serde_json::from_str(metrics.lines().last().unwrap()).unwrap();
    let before = last["scores"]["loss"].as_f64().unwrap();
    assert!(
        (trained - before).abs() < 1e-6 * before && (anew - before).abs() > 1e-4 * before,
        "{trained} {before} {anew}"
    );
    // Another width: nothing fits but the head's offset and the embedding.
    let (done, _, said) = try_run(
        place.path(),
        "train --data data --device cpu --hidden-size 16 --num-layers 1 --sequence-length 5 --threads 1 --batch-size 64 --epochs 1 --entity-dropout 0 --init first --output-dir wide",
    );
    assert!(
        done && said.contains("except for") && said.contains("lstm.weight_ih_l0"),
        "{said}"
    );
}

#[test]
fn scores_come_with_predictions_and_seeds_are_averaged() {
    let place = place();
    run(
        place.path(),
        &format!("{SMALL} --batch-size 64 --epochs 2 --output-dir out"),
    );
    let (done, _, said) = try_run(place.path(), "predict out data --device cpu --out p.csv");
    assert!(done && said.contains("labeled samples: loss"), "{said}");
    let text = "data: data\nhidden_size: [4, 8]\nseed: [1, 2, 3]\nnum_layers: 1\nsequence_length: 5\nbatch_size: 64\nepochs: 1\ndevice: cpu\nthreads: 1\nselect: rank_ic\noutput_dir: grid\n";
    std::fs::write(place.path().join("g.yaml"), text).unwrap();
    let table = run(place.path(), "grid g.yaml --lang en");
    assert!(table.contains("mean ± standard deviation over seeds"), "{table}");
    let mut found = Vec::new();
    for seed in 1..=3 {
        let path = place
            .path()
            .join(format!("grid/hidden_size-8_seed-{seed}/result.json"));
        let result: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        assert_eq!(result["selected"], "rank_ic");
        found.push(result["best"].as_f64().unwrap());
    }
    let mean = found.iter().sum::<f64>() / 3.0;
    let deviation = (found.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 2.0).sqrt();
    assert!(table.contains(&format!("{mean:.4} ± {deviation:.4}")), "{table}");
}
