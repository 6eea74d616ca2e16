//! Tables in other formats: JSON lines are read, what is no text is refused by its first bytes with a way to convert it.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

#[path = "support/command.rs"]
mod command;

use command::flatout;
use serde_json::Value;
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

const TRAIN: &str =
    "train --json --label y --hidden-size 8 --batch-size 32 --epochs 2 --device cpu --threads 1";

#[test]
fn json_lines_are_a_table() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let (mut csv, mut json) = ("color,x,y\n".to_owned(), String::new());
    for row in 0..400u32 {
        let (x, color) = (
            f64::from(row * 7919 % 1000) / 1000.0,
            ["red", "a \"b\", c", "绿"][row as usize % 3],
        );
        let y = x * 2.0 + f64::from(row % 3);
        csv += &format!("\"{}\",{x},{y}\n", color.replace('"', "\"\""));
        json += &format!("{}\n", serde_json::json!({"y": y, "x": x, "color": color}));
    }
    std::fs::write(at("t.csv"), csv).unwrap();
    std::fs::write(at("t.jsonl"), &json).unwrap();
    let loss = |file: &str, more: &str| {
        let (done, out, said) = run(place.path(), &format!("{TRAIN} --data {file} {more}"));
        assert!(done, "{said}");
        let start = out
            .lines()
            .find(|line| line.contains("\"event\":\"start\""))
            .unwrap();
        let start: Value = serde_json::from_str(start).unwrap();
        let end: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
        let samples = start["samples"].as_u64().unwrap() + start["validation_samples"].as_u64().unwrap();
        (end["outcome"]["scores"]["loss"].as_f64().unwrap(), samples)
    };
    let (plain, samples) = loss("t.csv", "--output-dir a");
    assert_eq!((plain, samples), loss("t.jsonl", "--output-dir b"));
    assert_eq!(samples, 400);
    // The first rows only.
    assert_eq!(loss("t.jsonl", "--limit-rows 100 --output-dir c").1, 100);
    std::fs::write(at("bad.jsonl"), json + "[1, 2]\n").unwrap();
    let (done, _, said) = run(place.path(), &format!("{TRAIN} --data bad.jsonl"));
    assert!(!done && said.contains("line 401: not a JSON object"), "{said}");
}

#[test]
fn refuses_files_that_are_not_text() {
    let place = tempfile::tempdir().unwrap();
    let files: [(&str, &[u8], &str); 4] = [
        ("t.feather", b"FEA1\0\0\0\0", "Feather version 1"),
        ("t.pkl", b"\x80\x04\x95\x10", "pickle"),
        ("t.h5", b"\x89HDF\r\n\x1a\n", "HDF5"),
        // By what it is, not by what it is called.
        ("t.csv", b"PAR1\x15\x04", "Parquet"),
    ];
    for (name, bytes, format) in files {
        std::fs::write(place.path().join(name), bytes).unwrap();
        let (done, _, said) = run(place.path(), &format!("{TRAIN} --data {name}"));
        assert!(
            !done && said.contains(format) && said.contains("python -c"),
            "{name}: {said}"
        );
        let (done, _, said) = run(place.path(), &format!("data inspect {name}"));
        assert!(!done && said.contains(format), "{name}: {said}");
    }
}

#[test]
fn feather_and_other_encodings_are_read() {
    let place = tempfile::tempdir().unwrap();
    let feather = Path::new(env!("CARGO_MANIFEST_DIR")).join("../flatout-data/tests/formats/all_lz4.feather");
    std::fs::copy(feather, place.path().join("t.feather")).unwrap();
    let (done, out, said) = run(place.path(), "data inspect t.feather");
    assert!(done && out.contains("Arrow IPC"), "{out}{said}");
    std::fs::write(place.path().join("cut.feather"), b"ARROW1\0\0\xff\xff\xff\xff").unwrap();
    let (done, _, said) = run(place.path(), "data inspect cut.feather");
    assert!(!done && said.contains("cut.feather"), "{said}");
    // Columns 价 and 标 in GBK.
    let mut gbk = b"\xBC\xDB,\xB1\xEA\n".to_vec();
    gbk.extend((0..60).flat_map(|row| format!("{row},{}\n", row * 2).into_bytes()));
    std::fs::write(place.path().join("g.csv"), gbk).unwrap();
    let train = TRAIN.replace("--label y", "--label 标");
    let (done, _, said) = run(place.path(), &format!("{train} --data g.csv"));
    assert!(!done && said.contains("--encoding gbk"), "{said}");
    let (done, _, said) = run(place.path(), &format!("{train} --data g.csv --encoding gbk"));
    assert!(done, "{said}");
    let (done, _, said) = run(place.path(), &format!("{train} --data g.csv --encoding klingon"));
    assert!(!done && said.contains("klingon"), "{said}");
}

/// A grey picture as PNG: a dark or a bright square.
fn picture(path: &Path, side: u32, bright: bool) {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, side, side);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::Eight);
    let pixels = vec![if bright { 200u8 } else { 30 }; (side * side) as usize];
    encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn images_of_several_sizes_and_broken_ones() {
    let place = tempfile::tempdir().unwrap();
    for (class, bright) in [("dark", false), ("bright", true)] {
        std::fs::create_dir_all(place.path().join("images").join(class)).unwrap();
        for number in 0..20u32 {
            let path = place
                .path()
                .join("images")
                .join(class)
                .join(format!("{number}.png"));
            picture(&path, 12 + 4 * (number % 3), bright);
        }
    }
    let train = "train --data images --hidden-size 8 --num-layers 2 --batch-size 8 --epochs 1 --device cpu --threads 1 --lang en";
    let (done, _, said) = run(place.path(), train);
    assert!(done, "{said}");
    assert!(
        said.contains("from 12×12 to 20×20; all are resized to 16×16"),
        "{said}"
    );
    let (done, _, said) = run(place.path(), &format!("{train} --input-size 24"));
    assert!(done && !said.contains("vary in size"), "{said}");
    std::fs::write(
        place.path().join("images/dark/broken.png"),
        b"\x89PNG\r\n\x1a\nhalf",
    )
    .unwrap();
    std::fs::write(place.path().join("images/bright/0000.png"), b"").unwrap();
    let (done, _, said) = run(place.path(), train);
    assert!(!done && said.contains(".png"), "{said}");
    for _ in 0..2 {
        // The second time out of the cache.
        let (done, _, said) = run(place.path(), &format!("{train} --bad-rows skip"));
        assert!(
            done && said.contains("skipped 2 images that cannot be read"),
            "{said}"
        );
        assert!(said.contains("32 training samples (8 for validation)"), "{said}");
    }
}
