//! Several targets at once: labels of yes and no, positions; each with scores of its own.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

#[path = "support/command.rs"]
mod command;

use command::flatout;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;

fn run(folder: &Path, line: &str) -> (bool, String, String) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let output = flatout(folder, &words);
    (
        output.status.success(),
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

fn random(seed: u64) -> f64 {
    let value = (seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    ((value ^ (value >> 27)) >> 11) as f64 / (1u64 << 53) as f64
}

/// `a` follows x, `b` follows y, `c` nothing; `u` and `v` are numbers with errors of different size.
fn table(path: &Path, rows: u64) {
    let mut text = "x,y,a,b,c,u,v\n".to_owned();
    for row in 0..rows {
        let at = |salt: u64| random(row * 16 + salt);
        let (x, y) = (at(0) - 0.5, at(1) - 0.5);
        let yes = |chance: f64, salt: u64| u8::from(at(salt) < chance);
        let (a, b, c) = (yes(0.5 + 0.9 * x, 2), yes(0.5 + 0.9 * y, 3), yes(0.3, 4));
        let (u, v) = (3.0 * x + 0.02 * at(5), 2.0 * y + 2.0 * at(6));
        writeln!(text, "{x:.5},{y:.5},{a},{b},{c},{u:.5},{v:.5}").unwrap();
    }
    std::fs::write(path, text).unwrap();
}

const SMALL: &str =
    "--hidden-size 16 --batch-size 64 --lr 0.01 --epochs 6 --device cpu --threads 1 --eval-interval 1";

fn column(text: &str, name: &str) -> Vec<f64> {
    let mut lines = text.lines();
    let place = lines
        .next()
        .unwrap()
        .split(',')
        .position(|known| known == name)
        .unwrap();
    lines
        .map(|line| line.split(',').nth(place).unwrap().parse().unwrap())
        .collect()
}

/// Share of the pairs that are in order.
fn area(scores: &[f64], labels: &[f64]) -> f64 {
    let (mut ordered, mut pairs) = (0.0, 0.0);
    for (one, yes) in scores.iter().zip(labels).filter(|(_, label)| **label > 0.5) {
        for (other, _) in scores.iter().zip(labels).filter(|(_, label)| **label < 0.5) {
            let _ = yes;
            ordered += if one > other {
                1.0
            } else if one == other {
                0.5
            } else {
                0.0
            };
            pairs += 1.0;
        }
    }
    ordered / pairs
}

#[test]
fn several_labels_are_learned_together_and_scored_apart() {
    let place = tempfile::tempdir().unwrap();
    table(&place.path().join("t.csv"), 3000);
    table(&place.path().join("new.csv"), 700);
    let (done, out, said) = run(
        place.path(),
        &format!("train --json --data t.csv --label a,b,c --column-type u=ignore,v=ignore {SMALL}"),
    );
    assert!(done, "{said}");
    let end: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    let auc = |name: &str| end["outcome"]["targets"][name]["auc"].as_f64().unwrap();
    assert!(
        auc("a") > 0.68 && auc("b") > 0.68 && (auc("c") - 0.5).abs() < 0.08,
        "{end}"
    );
    let mean = (auc("a") + auc("b") + auc("c")) / 3.0;
    assert!((end["outcome"]["scores"]["auc"].as_f64().unwrap() - mean).abs() < 1e-12);
    let metrics = std::fs::read_to_string(place.path().join("out/metrics.csv")).unwrap();
    assert!((column(&metrics, "validation_auc_b").last().unwrap() - auc("b")).abs() < 1e-12);
    // Predictions are one column a label, and their scores those of the columns.
    let (done, predicted, said) = run(place.path(), "predict out new.csv --device cpu");
    assert!(done && said.contains("evaluated on 700"), "{said}");
    let new = std::fs::read_to_string(place.path().join("new.csv")).unwrap();
    let areas =
        ["a", "b", "c"].map(|name| area(&column(&predicted, &format!("p_{name}")), &column(&new, name)));
    let (_, scores, _) = run(place.path(), "evaluate out new.csv --device cpu --json");
    let scores: Value = serde_json::from_str(&scores).unwrap();
    let found = scores["auc"].as_f64().unwrap();
    assert!(
        (found - areas.iter().sum::<f64>() / 3.0).abs() < 1e-3,
        "{found} {areas:?}"
    );
    // None of them is an input of another.
    let bytes = std::fs::read(place.path().join("out/last.safetensors")).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let prepared: Value =
        serde_json::from_slice(tensors.tensor("flatout.preparation").unwrap().data()).unwrap();
    assert_eq!(prepared["features"], serde_json::json!(["x", "y"]));
}

#[test]
fn one_label_may_decide_and_every_class_is_reported() {
    let place = tempfile::tempdir().unwrap();
    table(&place.path().join("t.csv"), 1500);
    let train = |more: &str| {
        run(
            place.path(),
            &format!(
                "train --json --data t.csv --label a,b,c --column-type u=ignore,v=ignore {SMALL} {more}"
            ),
        )
    };
    let (done, out, said) = train("--select b.auc");
    assert!(done, "{said}");
    let lines: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let areas = lines.iter().filter(|event| event["event"] == "epoch");
    let best = areas
        .map(|epoch| epoch["targets"]["b"]["auc"].as_f64().unwrap())
        .fold(0.0, f64::max);
    let outcome = &lines.last().unwrap()["outcome"];
    assert_eq!(outcome["selected"], "b.auc");
    assert_eq!(outcome["best"].as_f64().unwrap(), best);
    let (done, _, said) = train("--select d.auc --output-dir no");
    assert!(!done && said.contains("b.auc") && said.contains("c.f1"), "{said}");
    let (_, scores, _) = run(place.path(), "evaluate out t.csv --device cpu --json");
    let scores: Value = serde_json::from_str(&scores).unwrap();
    let of_a = &scores["targets"]["a"];
    let matrix: Vec<Vec<u64>> = serde_json::from_value(of_a["confusion"].clone()).unwrap();
    assert_eq!(matrix.iter().flatten().sum::<u64>(), 1500);
    let accuracy = (matrix[0][0] + matrix[1][1]) as f64 / 1500.0;
    assert!((of_a["accuracy"].as_f64().unwrap() - accuracy).abs() < 1e-12);
    assert_eq!(of_a["classes"][1]["recall"], of_a["recall"]);
    let (_, text, _) = run(place.path(), "evaluate out t.csv --device cpu");
    assert!(
        text.contains("classes (a)") && text.contains("confusion matrix"),
        "{text}"
    );
}

#[test]
fn numbers_have_their_own_errors_and_another_loss() {
    let place = tempfile::tempdir().unwrap();
    table(&place.path().join("t.csv"), 2000);
    let ignored = "--column-type a=ignore,b=ignore,c=ignore";
    let train = |more: &str| {
        let (done, out, said) = run(
            place.path(),
            &format!("train --json --data t.csv --label u,v {ignored} {SMALL} {more}"),
        );
        assert!(done, "{said}");
        serde_json::from_str::<Value>(out.lines().last().unwrap()).unwrap()["outcome"].clone()
    };
    let end = train("--output-dir plain");
    let mae = |end: &Value, name: &str| end["targets"][name]["mae"].as_f64().unwrap();
    // v has noise of its own: uniform over 2, so half of it is what nobody can know.
    assert!(
        mae(&end, "u") < 0.2 && (0.4..0.7).contains(&mae(&end, "v")),
        "{end}"
    );
    let mean = (mae(&end, "u") + mae(&end, "v")) / 2.0;
    assert!((end["scores"]["mae"].as_f64().unwrap() - mean).abs() < 1e-9);
    let huber = train("--loss huber --huber-delta 0.1 --output-dir huber");
    assert_ne!(huber["scores"]["loss"], end["scores"]["loss"]);
    assert!(mae(&huber, "u") < 0.3, "{huber}");
    let (done, _, said) = run(
        place.path(),
        &format!("train --data t.csv --label u,nothing {SMALL}"),
    );
    assert!(!done && said.contains("nothing"), "{said}");
}

#[test]
fn distinguishes_gap_and_slider() {
    let place = tempfile::tempdir().unwrap();
    let (done, _, said) = run(place.path(), "generate captcha --out data --size 60");
    assert!(done, "{said}");
    let (done, _, said) = run(
        place.path(),
        "train --data data --input-size 40,20 --hidden-size 8 --num-layers 2 --batch-size 32 --epochs 1 --device cpu --threads 1 --lang en",
    );
    let labels = std::fs::read_to_string(place.path().join("data/labels.csv")).unwrap();
    let names: Vec<&str> = labels.lines().next().unwrap().split(',').skip(1).collect();
    assert!(done && names.len() > 1, "{said} {names:?}");
    for name in names {
        assert!(said.contains(&format!("; {name} MAE ")), "{name}: {said}");
    }
}
