//! Stocks as teams have them: one CSV per stock, columns of text, labels that already look ahead, stocks that come later.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

#[path = "support/command.rs"]
mod command;

use command::flatout;
use serde_json::Value;
use std::path::Path;

fn random(seed: u64) -> f64 {
    let mut value = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (value >> 11) as f64 / (1u64 << 53) as f64 - 0.5
}

/// `y` of a row follows `signal` of the same row and the industry; the last rows have none yet.
fn stock(folder: &Path, number: u64, days: u64) {
    let industry = ["bank", "tech", "food"][number as usize % 3];
    let lift = (number % 3) as f64 - 1.0;
    let mut text = "trade_date,name,industry,signal,noise,y\n".to_owned();
    for day in 0..days {
        let at = |salt: u64| random(number * 100_000 + day * 10 + salt);
        let date = 20_230_101 + day / 28 * 100 + day % 28;
        let y = match day + 3 < days {
            true => format!("{:.5}", at(0) + 0.5 * lift + 0.1 * at(2)),
            false => String::new(),
        };
        text += &format!("{date},Stock {number},{industry},{:.5},{:.5},{y}\n", at(0), at(1));
    }
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join(format!("{}.csv", 600_000 + number)), text).unwrap();
}

fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    (0..9).for_each(|number| stock(&place.path().join("data"), number, 100));
    place
}

const SMALL: &str = "--label y --sequence-length 8 --hidden-size 16 --num-layers 1 --batch-size 64 --learning-rate 0.02 --device cpu --threads 1 --eval-interval 1";

fn run(folder: &Path, line: &str) -> (bool, String, String) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let output = flatout(folder, &words);
    (
        output.status.success(),
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

/// The scores of the last evaluation.
fn trained(folder: &Path, line: &str) -> Value {
    let (done, out, said) = run(folder, &format!("train --json {SMALL} {line}"));
    assert!(done, "{said}");
    let end: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    end["outcome"]["scores"].clone()
}

#[test]
fn labels_that_look_ahead_are_learned_from_their_own_row() {
    let place = place();
    let scores = trained(
        place.path(),
        "--data data --horizon 0 --epochs 8 --output-dir own",
    );
    assert!(scores["rank_ic"].as_f64().unwrap() > 0.6, "{scores}");
    assert!(scores["daily_ic"].as_f64().unwrap() > 0.6, "{scores}");
    // 100 days, the last 20 to validate on, of which the last 3 have no label.
    assert_eq!(scores["samples"], 9 * 17, "{scores}");
    // The next row's label has nothing to do with this one's signal but for the industry.
    let next = trained(
        place.path(),
        "--data data --horizon 1 --epochs 8 --output-dir next",
    );
    assert!(
        next["mae"].as_f64().unwrap() > 1.5 * scores["mae"].as_f64().unwrap(),
        "{next} {scores}"
    );
    let refused = run(
        place.path(),
        &format!("train {SMALL} --data data --horizon 0 --past-labels"),
    );
    assert!(!refused.0 && refused.2.contains("past_labels"), "{}", refused.2);
}

#[test]
fn the_industry_counts_and_the_name_does_not() {
    let place = place();
    let with = trained(
        place.path(),
        "--data data --horizon 0 --epochs 6 --stock-embedding-dim 0 --output-dir with",
    );
    let without = trained(
        place.path(),
        "--data data --horizon 0 --epochs 6 --stock-embedding-dim 0 --column-type industry=ignore --output-dir without",
    );
    let loss = |scores: &Value| scores["loss"].as_f64().unwrap();
    assert!(loss(&with) < 0.5 * loss(&without), "{with} {without}");
    let bytes = std::fs::read(place.path().join("with/last.safetensors")).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let prepared: Value =
        serde_json::from_slice(tensors.tensor("flatout.preparation").unwrap().data()).unwrap();
    assert_eq!(prepared["categories"].as_array().unwrap().len(), 1, "{prepared}");
    assert_eq!(prepared["categories"][0]["name"], "industry");
    assert_eq!(prepared["features"], serde_json::json!(["signal", "noise"]));
}

#[test]
fn stocks_that_were_not_there_are_predicted() {
    let place = place();
    trained(
        place.path(),
        "--data data --horizon 0 --epochs 4 --output-dir out",
    );
    stock(&place.path().join("new"), 1, 30);
    stock(&place.path().join("new"), 77, 30);
    let (done, out, said) = run(place.path(), "predict out new --device cpu");
    assert!(
        done && said.contains("1 of 2 entities were not in the training data"),
        "{said}"
    );
    assert_eq!(
        out.lines().filter(|line| line.starts_with("600077")).count(),
        23,
        "{out}"
    );
    trained(
        place.path(),
        "--data data --horizon 0 --epochs 1 --entity-dropout 0 --output-dir strict",
    );
    let (done, _, said) = run(place.path(), "predict strict new --device cpu");
    assert!(!done && said.contains("600077"), "{said}");
}

#[test]
fn windows_of_every_length_are_ranked_on_the_same_samples() {
    let place = place();
    let text = "data: data\nlabel: y\nhorizon: 0\nsequence_length: [4, 30, 60]\nhidden_size: 8\nnum_layers: 1\nbatch_size: 64\nepochs: 1\ndevice: cpu\nthreads: 1\noutput_dir: grid\n";
    std::fs::write(place.path().join("g.yaml"), text).unwrap();
    // A stock that came late has no window of 60 rows: nobody is scored on it.
    stock(&place.path().join("data"), 20, 100);
    let late = place.path().join("data/600020.csv");
    let text = std::fs::read_to_string(&late).unwrap();
    let mut rows: Vec<&str> = text.lines().collect();
    rows.drain(1..70);
    std::fs::write(&late, rows.join("\n")).unwrap();
    let (done, _, said) = run(place.path(), "grid g.yaml");
    assert!(done, "{said}");
    for length in ["4", "30", "60"] {
        let path = place
            .path()
            .join(format!("grid/sequence_length-{length}/result.json"));
        let result: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        assert_eq!(result["scores"]["samples"], 9 * 17, "{length}: {said}");
    }
}

#[test]
fn a_gap_keeps_labels_that_look_ahead_out_of_training() {
    let place = place();
    let samples = |line: &str| {
        let (done, out, said) = run(
            place.path(),
            &format!("train --json {SMALL} --data data --epochs 1 {line}"),
        );
        assert!(done, "{said}");
        let start = out
            .lines()
            .find(|line| line.contains("\"event\":\"start\""))
            .unwrap();
        let start: Value = serde_json::from_str(start).unwrap();
        (
            start["samples"].as_u64().unwrap(),
            start["validation_samples"].as_u64().unwrap(),
        )
    };
    let (train, validation) = samples("--horizon 0 --output-dir a");
    assert_eq!(
        samples("--horizon 0 --gap 5 --output-dir b"),
        (train - 9 * 5, validation)
    );
}
