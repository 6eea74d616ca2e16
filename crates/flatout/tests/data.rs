//! What a person says about reading data, on the command line and in a file: `train` and `data inspect`, as a user runs them.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use command::flatout;
use std::fs;
use std::path::Path;
use std::process::Command;

#[path = "support/command.rs"]
mod command;

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A missing value in line 3, an infinite one in line 4, a short line 5, text in line 6, then numbers.
fn table(folder: &Path) {
    let mut lines = String::from(
        "date,hour,price,city,y\n2024-01-01,1,1,a,1\n2024-01-01,2,,b,2\n2024-01-01,3,inf,a,3\n2024-01-01,4\n2024-01-01,5,cheap,b,5\n",
    );
    for row in 6..120 {
        lines += &format!(
            "2024-{:02}-01,{},{row},{},{row}\n",
            row / 10 + 1,
            row % 24,
            ["a", "b"][row % 2]
        );
    }
    fs::write(folder.join("t.csv"), lines).unwrap();
}

const SMALL: &[&str] = &[
    "--epochs",
    "1",
    "--hidden-size",
    "8",
    "--batch-size",
    "16",
    "--device",
    "cpu",
    "--plain",
];

/// A small training of `y` by a table: its exit code and what it said.
fn train(folder: &Path, table: &str, more: &[&str]) -> (Option<i32>, String) {
    let output = flatout(
        folder,
        &[&["train", "--data", table, "--label", "y"], SMALL, more].concat(),
    );
    (output.status.code(), text(&output.stderr))
}

#[test]
fn training_reports_unreadable_rows_and_a_fix() {
    let folder = tempfile::tempdir().unwrap();
    table(folder.path());
    let train = |more: &[&str]| train(folder.path(), "t.csv", more);
    let (code, said) = train(&[]);
    assert_eq!(code, Some(2));
    assert!(
        said.contains("line 3") && said.contains("--missing price=mean"),
        "{said}"
    );
    let (code, said) = train(&["--missing", "mean", "--missing", "price=zero"]);
    assert_eq!(code, Some(2));
    assert!(
        said.contains("line 4") && said.contains("--infinite missing"),
        "{said}"
    );
    let all = [
        "--missing",
        "mean",
        "--infinite",
        "missing",
        "--bad-rows",
        "skip",
        "--column-type",
        "hour=category",
    ];
    let (code, said) = train(&all);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("skipped 2 rows that cannot be read; the first: line 5"),
        "{said}"
    );
    // The prepared data know how many rows they lack.
    let (code, said) = train(&all);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("skipped 2 rows that cannot be read"), "{said}");
    let (code, said) = train(&["--missing", "price=average"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("`missing` is `price=average`"), "{said}");
    let (code, said) = train(&["--column-type", "prise=real"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("no column `prise`"), "{said}");
}

#[test]
fn configuration_files_equal_flags() {
    let folder = tempfile::tempdir().unwrap();
    table(folder.path());
    let settings = "data: t.csv\nlabel: y\nepochs: 1\nhidden_size: 8\nbatch_size: 16\ndevice: cpu\nmissing: [mean, price=drop]\nbad_rows: skip\ninfinite: missing\ncolumn_type: [hour=category, city=ignore]\ntime: date\nvalidation_from: 2024-10-01\n";
    fs::write(folder.path().join("c.yaml"), settings).unwrap();
    let output = flatout(folder.path(), &["train", "--config", "c.yaml", "--plain"]);
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("dropped 2 rows with missing values"), "{said}");
    // Rows 90 to 119 are from October on.
    assert!(said.contains("(30 for validation)"), "{said}");
    let early = ["train", "--config", "c.yaml", "--validation-from", "1990-01-01"];
    let output = flatout(folder.path(), &early);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("no samples are left for training"));
    // What was resolved can be trained with again, word for word.
    let again = flatout(
        folder.path(),
        &[
            "train",
            "--config",
            "out/config.yaml",
            "--output-dir",
            "again",
            "--plain",
        ],
    );
    assert!(again.status.success(), "{}", text(&again.stderr));
}

#[test]
fn inspecting_takes_the_same_words() {
    let folder = tempfile::tempdir().unwrap();
    table(folder.path());
    let inspect = |more: &[&str]| {
        let output = flatout(folder.path(), &[&["data", "inspect", "t.csv"], more].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let plain = inspect(&[]);
    assert!(
        plain.contains(
            "3 rows cannot be read; training stops at the first one unless you pass --bad-rows skip"
        ),
        "{plain}"
    );
    assert!(
        plain.contains("1 missing (error)") && plain.contains("--missing price=mean"),
        "{plain}"
    );
    let said = inspect(&[
        "--missing",
        "price=drop",
        "--infinite",
        "missing",
        "--bad-rows",
        "skip",
        "--column-type",
        "hour=category",
    ]);
    assert!(said.contains("skipped 2 rows that cannot be read"), "{said}");
    assert!(said.contains("dropped 2 rows with missing values"), "{said}");
    let json: serde_json::Value =
        serde_json::from_str(&inspect(&["--json", "--column-type", "hour=category"])).unwrap();
    assert_eq!(json["columns"][1]["type"], "category");
    let wrong = flatout(folder.path(), &["data", "inspect", "t.csv", "--bad-rows", "drop"]);
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn finds_labels_next_to_an_array() {
    let folder = tempfile::tempdir().unwrap();
    let npy = |name: &str, shape: &str, values: Vec<f32>| {
        let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
        while (10 + header.len() + 1) % 64 != 0 {
            header.push(' ');
        }
        header.push('\n');
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
        fs::write(folder.path().join(name), bytes).unwrap();
    };
    npy("x.npy", "(200, 3)", (0..600).map(|value| value as f32).collect());
    npy(
        "labels.npy",
        "(200,)",
        (0..200).map(|value| value as f32).collect(),
    );
    let train = [&["train", "--data", "x.npy"], SMALL].concat();
    let output = flatout(folder.path(), &train);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn globs_and_columns_with_commas_and_empty_ones() {
    let folder = tempfile::tempdir().unwrap();
    let generated = flatout(
        folder.path(),
        &["generate", "stocks", "--out", "stocks", "--size", "3"],
    );
    assert_eq!(generated.status.code(), Some(0));
    let more = ["--sequence-length", "5", "--limit", "2"];
    let panel = ["train", "--data", "stocks/*[0-9].parquet"];
    let output = flatout(folder.path(), &[&panel[..], SMALL, &more].concat());
    let said = text(&output.stderr);
    assert!(
        output.status.success() && said.contains("lstm"),
        "files of one entity each: {said}"
    );
    let output = flatout(folder.path(), &["data", "inspect", "stocks/{6,7*.parquet"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("`{` is not closed"),
        "{}",
        text(&output.stderr)
    );

    let rows: String = (0..60)
        .map(|row| format!("{},{row},,{row}\n", if row % 5 == 0 { "" } else { "1" }))
        .collect();
    fs::write(
        folder.path().join("c.csv"),
        format!("\"price, EUR\",b,none,y\n{rows}"),
    )
    .unwrap();
    let train = |more: &[&str]| train(folder.path(), "c.csv", more);
    let (code, said) = train(&[]);
    assert!(
        code == Some(2) && said.contains("`--missing '\"price, EUR\"=mean'`"),
        "{said}"
    );
    let (code, said) = train(&["--missing", "\"price, EUR\"=zero", "--missing", "none=mean"]);
    assert!(code == Some(0) && said.contains("no values in: none;"), "{said}");
    fs::write(
        folder.path().join("c.yaml"),
        "missing:\n  price, EUR: drop\n  none: zero\n",
    )
    .unwrap();
    let (code, said) = train(&["--config", "c.yaml"]);
    assert!(
        code == Some(0) && said.contains("dropped 12 rows with missing values"),
        "{said}"
    );
}

#[test]
fn shows_image_sizes_width_first() {
    let folder = tempfile::tempdir().unwrap();
    let generated = flatout(
        folder.path(),
        &["generate", "captcha", "--out", "captcha", "--size", "3"],
    );
    assert_eq!(generated.status.code(), Some(0));
    let said = text(&flatout(folder.path(), &["data", "inspect", "captcha"]).stdout);
    assert!(said.contains("images: 320 wide × 160 high"), "{said}");
}

/// What a file is called, and what its header says, is for the eye, not for the terminal.
#[test]
fn no_control_character_of_a_name_reaches_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let evil = "x\u{1b}]0;pwn\u{7}\u{1b}[8m";
    let csv = folder.path().join(format!("{evil}.csv"));
    std::fs::write(&csv, format!("{evil},label\n1,{evil}\n2,b\n3,{evil}\n")).unwrap();
    let yaml = folder.path().join("a.yaml");
    std::fs::write(&yaml, "\"x\\e]0;pwn\\a\": 1\n").unwrap();
    let (csv, yaml) = (csv.to_str().unwrap(), yaml.to_str().unwrap());
    let missing = format!("{}/{evil}", folder.path().display());
    for arguments in [
        vec!["data", "inspect", csv],
        vec!["data", "inspect", &missing],
        vec!["train", "--data", csv, "--label", "nothing"],
        vec!["train", "--config", yaml],
        vec!["run", "--", evil],
        // Refused by clap.
        vec![evil],
        vec!["data", evil],
        vec!["train", "--\u{1b}[31mpwn\u{7}"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_flatout"))
            .args(["--lang", "en"])
            .args(&arguments)
            .current_dir(folder.path())
            .env("FLATOUT_HOME", folder.path().join("home"))
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&said);
        assert!(
            !said.contains(&0x1b) && !said.contains(&7),
            "{arguments:?}: {text:?}"
        );
        assert!(text.contains("pwn"), "{arguments:?}: {text:?}");
    }
}
