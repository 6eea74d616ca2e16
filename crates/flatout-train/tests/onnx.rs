//! Exported models in onnxruntime: raw values in, the columns of `predict` out. Skipped, with a word, where there is no onnxruntime.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod support;

use flatout_data::formats::image::{ImageShape, write_png};
use flatout_train::predict::{self, Column, Predictions};
use flatout_train::{TrainError, export};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a model: python -c THIS MODEL.onnx INPUTS.json; inputs are [kind, shape, values] by name, outputs are printed by name.
const RUN: &str = r#"
import json, sys
import numpy as np, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1])
kinds = {"float32": np.float32, "uint8": np.uint8, "int64": np.int64, "string": object}
feed = {name: np.array(values, dtype=kinds[kind]).reshape(shape) for name, (kind, shape, values) in json.load(open(sys.argv[2])).items()}
outputs = session.run(None, feed)
print(json.dumps({port.name: output.tolist() for port, output in zip(session.get_outputs(), outputs)}))
"#;

fn python() -> Option<PathBuf> {
    flatout_testing::python_with("onnxruntime", &["onnxruntime", "numpy"])
}

fn noise(number: usize) -> f32 {
    ((number as f32 * 12.9898).sin() * 43_758.547).fract()
}

struct Trained {
    folder: tempfile::TempDir,
}

impl Trained {
    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn output(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    fn of(write: impl FnOnce(&Path), more: &[(&'static str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let trained = Self { folder };
        std::fs::create_dir(trained.data()).unwrap();
        write(&trained.data());
        let mut given = vec![("cache", "false"), ("epochs", "2"), ("batch_size", "16")];
        given.extend(more);
        let values = support::values(&trained.data(), &trained.output(), &given);
        support::train(&values, None).unwrap();
        trained
    }

    fn predictions(&self) -> Predictions {
        let flags = [("device", "cpu".to_owned())].into();
        predict::predict(&self.output(), &self.data(), &flags).unwrap()
    }

    /// The outputs of the exported model, by their names.
    fn run(&self, python: &Path, inputs: &Value) -> Value {
        let (model, file) = (
            self.folder.path().join("m.onnx"),
            self.folder.path().join("i.json"),
        );
        let exported = export::onnx(&self.output(), &model).unwrap();
        let names: Vec<&str> = exported.inputs.iter().map(|port| port.name.as_str()).collect();
        let mut given: Vec<&str> = inputs.as_object().unwrap().keys().map(String::as_str).collect();
        let mut wanted = names.clone();
        wanted.sort_unstable();
        given.sort_unstable();
        assert_eq!(wanted, given);
        std::fs::write(&file, inputs.to_string()).unwrap();
        let run = Command::new(python)
            .args(["-c", RUN])
            .args([&model, &file])
            .output()
            .unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        serde_json::from_slice(&run.stdout).unwrap()
    }
}

fn column<'a>(predictions: &'a Predictions, name: &str) -> &'a [f32] {
    let found = predictions.columns.iter().find(|(known, _)| known == name);
    match found {
        Some((_, Column::Real(values))) => values,
        _ => panic!("no column {name}"),
    }
}

/// Column `place` of an output is that column of the predictions.
fn same(outputs: &Value, output: &str, place: usize, predictions: &Predictions, name: &str) {
    let rows = outputs[output].as_array().unwrap();
    let wanted = column(predictions, name);
    assert_eq!(rows.len(), wanted.len());
    for (row, wanted) in rows.iter().zip(wanted) {
        let found = row[place].as_f64().unwrap() as f32;
        assert!(
            (found - wanted).abs() < 1e-5 * wanted.abs().max(1.0),
            "{name}: {found}, not {wanted}"
        );
    }
}

#[test]
fn rows_with_texts_and_several_labels() {
    let Some(python) = python() else { return };
    let row = |row: usize| {
        let city = ["bj", "sh", "gz"][row % 3];
        (noise(row), 50.0 + 20.0 * noise(row + 500), city)
    };
    let trained = Trained::of(
        |folder| {
            let mut text = String::from("x,z,city,click,watch,tab\n");
            for number in 0..120 {
                let (x, z, city) = row(number);
                let tab = ["feed", "home", "search"][number / 2 % 3];
                let click = u8::from(x + noise(number + 900) > 0.0);
                writeln!(text, "{x},{z},{city},{click},{},{tab}", 3.0 * x + z).unwrap();
            }
            std::fs::write(folder.join("clicks.csv"), text).unwrap();
        },
        &[("label", "click,watch,tab"), ("loss", "watch=quantile")],
    );
    let features: Vec<f32> = (0..120)
        .flat_map(|number| [row(number).0, row(number).1])
        .collect();
    let cities: Vec<&str> = (0..120).map(|number| row(number).2).collect();
    let inputs = json!({
        "features": ["float32", [120, 2], features],
        "city": ["string", [120], cities],
    });
    let (outputs, predictions) = (trained.run(&python, &inputs), trained.predictions());
    same(&outputs, "click", 0, &predictions, "p_click");
    for (place, name) in ["watch_q0.1", "watch_q0.5", "watch_q0.9"].iter().enumerate() {
        same(&outputs, "watch", place, &predictions, name);
    }
    for (place, name) in ["tab_p_feed", "tab_p_home", "tab_p_search"].iter().enumerate() {
        same(&outputs, "tab", place, &predictions, name);
    }
}

#[test]
fn windows_of_stocks() {
    let Some(python) = python() else { return };
    for model in ["lstm", "gru"] {
        let value = |stock: usize, day: usize, column: usize| noise(stock * 1000 + day * 3 + column);
        let trained = Trained::of(
            |folder| {
                for stock in 0..3 {
                    let mut text = String::from("date,a,b,y\n");
                    for day in 0..60 {
                        let (month, date) = (1 + day / 28, 1 + day % 28);
                        let (a, b) = (value(stock, day, 0), value(stock, day, 1));
                        writeln!(text, "2024-{month:02}-{date:02},{a},{b},{}", a - b).unwrap();
                    }
                    std::fs::write(folder.join(format!("S{stock}.csv")), text).unwrap();
                }
            },
            &[
                ("label", "y"),
                ("model_type", model),
                ("num_layers", "2"),
                ("horizon", "0"),
            ],
        );
        let (mut features, mut stocks) = (Vec::new(), Vec::new());
        for stock in 0..3 {
            for start in 0..=50 {
                let rows = start..start + 10;
                features.extend(rows.flat_map(|day| [value(stock, day, 0), value(stock, day, 1)]));
                stocks.push(format!("S{stock}"));
            }
        }
        let count = stocks.len();
        let inputs = json!({
            "features": ["float32", [count, 10, 2], features],
            "entity": ["string", [count], stocks],
        });
        let (outputs, predictions) = (trained.run(&python, &inputs), trained.predictions());
        same(&outputs, "prediction", 0, &predictions, "prediction");
    }
}

#[test]
fn images_with_classes_and_positions() {
    let Some(python) = python() else { return };
    let pixels = |number: usize| {
        (0..12 * 9).map(move |place| {
            if place % 12 == number % 7 {
                250u8
            } else {
                (40.0 + 30.0 * noise(number * 200 + place)) as u8
            }
        })
    };
    let write = |folder: &Path| {
        let mut table = String::from("file,x,kind\n");
        let shape = ImageShape {
            height: 9,
            width: 12,
            channels: 1,
        };
        for number in 0..60 {
            let pixels: Vec<u8> = pixels(number).collect();
            write_png(&folder.join(format!("{number:03}.png")), &pixels, shape).unwrap();
            writeln!(
                table,
                "{number:03}.png,{},{}",
                number % 7,
                ["odd", "even"][number % 2]
            )
            .unwrap();
        }
        std::fs::write(folder.join("labels.csv"), table).unwrap();
    };
    let all: Vec<u8> = (0..60).flat_map(pixels).collect();
    let inputs = json!({"pixels": ["uint8", [60, 9, 12, 1], all]});
    for (label, output, name) in [
        ("x", "prediction", "prediction"),
        ("kind", "probability", "p_even"),
    ] {
        let trained = Trained::of(write, &[("label", label), ("num_layers", "2")]);
        let (outputs, predictions) = (trained.run(&python, &inputs), trained.predictions());
        same(&outputs, output, 0, &predictions, name);
    }
}

/// The exported module on raw files: python -c THIS MODULE.py DATA; prints the outputs by label.
const MODULE: &str = r#"
import importlib.util, json, pathlib, sys
import torch
spec = importlib.util.spec_from_file_location("exported", sys.argv[1])
exported = importlib.util.module_from_spec(spec)
spec.loader.exec_module(exported)
model, preparation = exported.load()
data = pathlib.Path(sys.argv[2])
with torch.no_grad():
    if preparation["shape"]["kind"] == "pictures":
        images = [exported.image(preparation, str(path)) for path in sorted(data.glob("*.png"))]
        outputs = model(torch.stack(images))
    else:
        import pandas
        rows = pandas.read_csv(data / "clicks.csv", dtype={"city": str, "code": str}, keep_default_na=False)
        outputs = model(*exported.table(preparation, rows))
print(json.dumps({label: values.tolist() for label, values in exported.answers(preparation, outputs).items()}))
"#;

fn module(trained: &Trained, python: &Path) -> Value {
    let path = trained.folder.path().join("model.py");
    export::pytorch(&trained.output(), &path).unwrap();
    let run = Command::new(python)
        .args(["-c", MODULE])
        .args([&path, &trained.data()])
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    serde_json::from_slice(&run.stdout).unwrap()
}

#[test]
fn the_module_for_pytorch_prepares_raw_files_itself() {
    let Some(python) = flatout_testing::safetensors_python() else {
        return;
    };
    let write = |folder: &Path| {
        let mut table = String::from("file,x\n");
        let shape = ImageShape {
            height: 18,
            width: 24,
            channels: 3,
        };
        for number in 0..40 {
            let pixels: Vec<u8> = (0..shape.size_bytes())
                .map(|place| (120.0 + 100.0 * noise(number * 2000 + place)) as u8)
                .collect();
            write_png(&folder.join(format!("{number:03}.png")), &pixels, shape).unwrap();
            writeln!(table, "{number:03}.png,{}", number % 7).unwrap();
        }
        std::fs::write(folder.join("labels.csv"), table).unwrap();
    };
    // Whole ratios, a filter, larger than the files, and gray.
    for size in ["12,9", "17,11", "30,20"] {
        for channels in ["1", "3"] {
            let more = [
                ("label", "x"),
                ("num_layers", "2"),
                ("input_size", size),
                ("channels", channels),
            ];
            let trained = Trained::of(write, &more);
            same(
                &module(&trained, &python),
                "x",
                0,
                &trained.predictions(),
                "prediction",
            );
        }
    }
    let rows = |folder: &Path| {
        let mut text = String::from("x,z,city,code,click\n");
        for number in 0..120 {
            let (x, city) = (noise(number), ["bj", "上海", ""][number % 3]);
            let click = u8::from(x + noise(number + 900) > 0.0);
            writeln!(
                text,
                "{x},{},{city},0{},{click}",
                50.0 * noise(number + 500),
                number % 11
            )
            .unwrap();
        }
        std::fs::write(folder.join("clicks.csv"), text).unwrap();
    };
    for hash in ["code=4", "code=400"] {
        let more = [
            ("label", "click"),
            ("hash_size", hash),
            ("column_type", "city=category"),
        ];
        let trained = Trained::of(rows, &more);
        same(
            &module(&trained, &python),
            "click",
            0,
            &trained.predictions(),
            "probability",
        );
    }
}

#[test]
fn refuses_files_that_are_not_checkpoints() {
    let folder = tempfile::tempdir().unwrap();
    let missing = export::onnx(folder.path(), &folder.path().join("m.onnx")).unwrap_err();
    assert!(
        matches!(missing, TrainError::File(_) | TrainError::Checkpoint { .. }),
        "{missing}"
    );
    assert!(!folder.path().join("m.onnx").exists());
}
