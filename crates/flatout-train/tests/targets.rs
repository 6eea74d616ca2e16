//! Labels of several kinds, their losses and their weights against PyTorch: the model does not move, so its predictions tell what the loss
//! of the training part must have been. Skipped, with a word, where there is no PyTorch.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod support;

use flatout_data::formats::image::{ImageShape, write_png};
use flatout_train::{Configuration, Report, predict};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROWS: usize = 1200;

fn python() -> Option<PathBuf> {
    flatout_testing::python_with("torch", &["torch", "numpy"])
}

/// Clicks, rare likes, watch times, tabs and weights, the newest rows last.
fn write(path: &Path) {
    let mut text = String::from("time,x,z,city,click,like,watch,tab,weight\n");
    let noise = |row: usize, salt: usize| {
        ((row * 9 + salt) as u64)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(31)
            .wrapping_mul(0xD1B5_4A32_D192_ED03) as f64
            / u64::MAX as f64
    };
    for row in 0..ROWS {
        let (x, z) = (noise(row, 0) * 2.0 - 1.0, noise(row, 1) * 2.0 - 1.0);
        let click = u8::from(noise(row, 2) < 0.5 + 0.4 * x);
        let like = u8::from(noise(row, 3) < 0.08 + 0.05 * z);
        let watch = 20.0 + 9.0 * x + 4.0 * noise(row, 4);
        let tab = ["feed", "home", "search"][(noise(row, 5) * 2.2 + 0.8 * noise(row, 6)) as usize % 3];
        let city = ["a", "b"][row % 2];
        let weight = 0.25 + noise(row, 7);
        writeln!(
            text,
            "{},{x:.6},{z:.6},{city},{click},{like},{watch:.6},{tab},{weight:.6}",
            1_700_000_000 + 60 * row
        )
        .unwrap();
    }
    std::fs::write(path, text).unwrap();
}

/// What the engine says: the loss of the training part, and the scores of each label.
fn trained(data: &Path, folder: &Path, more: &[(&'static str, &str)]) -> (f64, Value) {
    let mut given = vec![
        ("label", "click,like,watch,tab"),
        ("time", "time"),
        ("cache", "false"),
        ("learning_rate", "0"),
        ("epochs", "1"),
        ("batch_size", "96"),
        ("sample_weight", "weight"),
        // The predictions see every city.
        ("entity_dropout", "0"),
    ];
    given.extend(more);
    let values = support::values(data, folder, &given);
    let (_, reports) = support::train(&values, None).unwrap();
    let epoch = reports.iter().find_map(|report| match report {
        Report::Epoch { loss, targets, .. } => Some((*loss, serde_json::to_value(targets).unwrap())),
        _ => None,
    });
    epoch.unwrap()
}

#[test]
fn losses_and_scores_are_those_of_pytorch() {
    let Some(python) = python() else { return };
    let cases = [
        (
            vec![],
            json!({"smoothing": 0.0, "focal": "", "watch": "mse", "balanced": false, "weighted": true, "label_weight": {}}),
        ),
        (
            vec![
                ("loss", "watch=quantile,like=focal"),
                ("class_weight", "balanced"),
                ("label_weight", "like=3,watch=0.5"),
            ],
            json!({"smoothing": 0.0, "focal": "like", "watch": "quantile", "balanced": true, "weighted": true, "label_weight": {"like": 3.0, "watch": 0.5}}),
        ),
        (
            vec![("loss", "mae"), ("label_smoothing", "0.1")],
            json!({"smoothing": 0.1, "focal": "", "watch": "mae", "balanced": false, "weighted": true, "label_weight": {}}),
        ),
    ];
    for (more, mut job) in cases {
        let folder = tempfile::tempdir().unwrap();
        let (data, output) = (folder.path().join("clicks.csv"), folder.path().join("out"));
        write(&data);
        let (loss, scores) = trained(&data, &output, &more);
        let flags = [("device", "cpu".to_owned())].into();
        let predictions = predict::predict(&output, &data, &flags).unwrap();
        let csv = folder.path().join("predictions.csv");
        predictions.write(&csv).unwrap();
        job["training"] = json!(ROWS * 4 / 5);
        let file = folder.path().join("job.json");
        std::fs::write(&file, job.to_string()).unwrap();
        let run = Command::new(&python)
            .args(["-c", include_str!("targets/expected.py")])
            .args([&data, &csv, &file])
            .output()
            .unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let expected: Value = serde_json::from_slice(&run.stdout).unwrap();
        let near = |what: &str, found: f64, wanted: &Value, tolerance: f64| {
            let wanted = wanted.as_f64().unwrap();
            let error = (found - wanted).abs() / wanted.abs().max(1e-3);
            assert!(error < tolerance, "{more:?}: {what} is {found}, not {wanted}");
        };
        near("the training loss", loss, &expected["loss"], 1e-4);
        for (label, figures) in expected["scores"].as_object().unwrap() {
            for (name, wanted) in figures.as_object().unwrap() {
                let found = scores[label][name].as_f64().unwrap();
                // Probabilities are written in f32; the AUC of the engine has bins.
                near(&format!("{name} of {label}"), found, wanted, 2e-3);
            }
        }
    }
}

#[test]
fn weights_that_cannot_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("clicks.csv");
    write(&data);
    let message = |more: &[(&'static str, &str)]| {
        let mut given = vec![("label", "tab"), ("cache", "false")];
        given.extend(more);
        let values = support::values(&data, &folder.path().join("out"), &given);
        support::train(&values, None).map(|_| ()).unwrap_err().to_string()
    };
    let unknown = message(&[("class_weight", "hoem=2")]);
    assert!(unknown.contains("hoem") && unknown.contains("home"), "{unknown}");
    assert!(message(&[("label", "watch"), ("class_weight", "balanced")]).contains("the label is numeric"));
    let negative = message(&[("sample_weight", "x")]);
    assert!(negative.contains("sample_weight"), "{negative}");
    assert!(message(&[("label", "click,watch"), ("loss", "tab=mae")]).contains("click, watch"));
    let values = support::values(&data, folder.path(), &[("quantiles", "0.9,0.1")]);
    assert!(Configuration::read(None, &values).is_err());
}

/// Positions, yes or no, and a class in one table of pictures.
#[test]
fn images_have_labels_of_several_kinds() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("pictures");
    std::fs::create_dir(&data).unwrap();
    let mut table = String::from("file,x,dark,kind\n");
    for number in 0..80u32 {
        let (x, dark, kind) = (number % 9, number % 2, ["cat", "dog", "owl"][number as usize % 3]);
        let pixel = |place: u32| {
            if place % 12 == x {
                255
            } else {
                40 + 90 * dark as u8
            }
        };
        let name = format!("{number}.png");
        let pixels: Vec<u8> = (0..12 * 8).map(pixel).collect();
        let shape = ImageShape {
            height: 8,
            width: 12,
            channels: 1,
        };
        write_png(&data.join(&name), &pixels, shape).unwrap();
        writeln!(table, "{name},{x},{dark},{kind}").unwrap();
    }
    std::fs::write(data.join("labels.csv"), table).unwrap();
    let given = [
        ("label", "x,dark,kind"),
        ("cache", "false"),
        ("epochs", "2"),
        ("eval_interval", "1"),
        ("batch_size", "16"),
    ];
    let values = support::values(&data, &folder.path().join("out"), &given);
    let (outcome, _) = support::train(&values, None).unwrap();
    assert_eq!(outcome.targets.keys().collect::<Vec<_>>(), ["dark", "kind", "x"]);
    assert!(outcome.targets["x"].mae.is_some() && outcome.targets["dark"].auc.is_some());
    let predictions = predict::predict(
        &folder.path().join("out"),
        &data,
        &[("device", "cpu".to_owned())].into(),
    )
    .unwrap();
    let names: Vec<&str> = predictions
        .columns
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "file",
            "x",
            "p_dark",
            "kind_class",
            "kind_p_cat",
            "kind_p_dog",
            "kind_p_owl"
        ]
    );
}

/// The newest rows are neither trained nor validated on; the best checkpoint is scored on them at the end.
#[test]
fn the_test_part_is_scored_with_the_best_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let (data, output) = (folder.path().join("clicks.csv"), folder.path().join("out"));
    write(&data);
    let given = [
        ("label", "click,watch"),
        ("time", "time"),
        ("cache", "false"),
        ("eval_interval", "1"),
        ("test_ratio", "0.1"),
    ];
    let (outcome, _) = support::train(&support::values(&data, &output, &given), None).unwrap();
    let text = std::fs::read_to_string(&data).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.drain(1..=ROWS * 9 / 10);
    let newest = folder.path().join("newest.csv");
    std::fs::write(&newest, lines.join("\n") + "\n").unwrap();
    let flags = [("device", "cpu".to_owned())].into();
    let predictions = predict::predict(&output, &newest, &flags).unwrap();
    let (scored, tested) = (predictions.scores.unwrap(), outcome.test_scores.unwrap());
    assert_eq!((tested.samples, scored.samples), (120, 120));
    assert!((tested.loss - scored.loss).abs() < 1e-5, "{tested:?} {scored:?}");
    assert_eq!(tested.auc, scored.auc);
    let kept: Value = serde_json::from_slice(&std::fs::read(output.join("test.json")).unwrap()).unwrap();
    assert!(
        (kept["targets"]["watch"]["mae"].as_f64().unwrap() - predictions.targets[1].1.mae.unwrap()).abs()
            < 1e-4
    );
}
