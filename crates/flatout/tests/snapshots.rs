//! What users see, as files: the main outputs in English and Chinese, from records and sources that are part of the repository. A change
//! of a text is a difference in `tests/snapshots`. Write them with
//!
//!     UPDATE_SNAPSHOTS=1 cargo test -p flatout --test snapshots
//!
//! The help of every command is `docs/reference/commands.md`, which its own test holds current.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use flatout_core::Language;
use flatout_record::Record;
use flatout_report::text;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const LANGUAGES: [(&str, Language); 2] = [("en", Language::English), ("zh-CN", Language::Chinese)];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What a command prints: its exit code, stdout and stderr.
fn printed(language: &str, arguments: &[&str]) -> String {
    let home = tempfile::tempdir().unwrap();
    printed_in(&root(), home.path(), language, arguments)
}

fn printed_in(folder: &Path, home: &Path, language: &str, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_flatout"))
        // Before the command: after its `--` it would be the program's.
        .args(["--lang", language])
        .args(arguments)
        .current_dir(folder)
        .env("FLATOUT_HOME", home)
        .env("FLATOUT_CACHE", home.join("cache"))
        .env("COLUMNS", "80")
        .env("NO_COLOR", "1")
        .env_remove("FORCE_COLOR")
        .output()
        .unwrap();
    let mut text = format!("$ flatout {}\n", arguments.join(" "));
    text += &String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    if !errors.is_empty() {
        let _ = write!(text, "--- stderr\n{errors}");
    }
    let _ = writeln!(text, "--- exit code {}", output.status.code().unwrap());
    text.replace(&home.display().to_string(), "HOME")
}

/// Compares with the file, or writes it.
fn assert_snapshot(language: &str, name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/snapshots")
        .join(language)
        .join(format!("{name}.txt"));
    // Lines end without blanks, in the file and in an editor.
    let text: String = text
        .lines()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect();
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &text).unwrap();
        return;
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    if written != text {
        let shown = difference(&written, &text);
        panic!(
            "{} differs (-: file, +: printed):\n{shown}\nIf that is meant: UPDATE_SNAPSHOTS=1 cargo test -p flatout --test snapshots",
            path.display()
        );
    }
}

/// The lines around which two texts differ.
fn difference(before: &str, after: &str) -> String {
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
    let rest = before.len().min(after.len()) - same;
    let tail = before
        .iter()
        .rev()
        .zip(after.iter().rev())
        .take(rest)
        .take_while(|(a, b)| a == b)
        .count();
    let old = before[same..before.len() - tail]
        .iter()
        .map(|line| format!("-{line}\n"));
    let new = after[same..after.len() - tail]
        .iter()
        .map(|line| format!("+{line}\n"));
    old.chain(new).collect()
}

/// A snapshot of a command in both languages.
fn command(name: &str, arguments: &[&str]) {
    for (language, _) in LANGUAGES {
        assert_snapshot(language, name, &printed(language, arguments));
    }
}

#[test]
fn first_page() {
    command("flatout", &[]);
    command("help", &["--help"]);
}

#[test]
fn mistakes() {
    command("unknown-command", &["monitr"]);
    command("unknown-argument", &["run", "--aply", "amp=bf16"]);
    command("missing-argument", &["compare", "a"]);
    command("unknown-run", &["diagnose", "no-such-run"]);
    command("unknown-rule", &["explain", "item-in-stepp"]);
    command(
        "unknown-setting",
        &["run", "--apply", "loader.worker=2", "--", "true"],
    );
}

/// The records that are shown: a common cause, a framework, GPU causes, nothing wrong, and a record without a program.
const RECORDS: &[(&str, &str)] = &[
    ("loader", "faults/in_process_images/record"),
    ("hugging-face", "faults/lines/hf_eval_often/record"),
    ("lightning", "faults/lines/pl_datamodule_pandas/record"),
    ("gpu", "faults/gpu_waits_for_python_items/record"),
    ("nothing-wrong", "faults/lines/clean_hf/record"),
    ("monitor", "tests/data/recordings/h200-dips"),
];

#[test]
fn diagnose() {
    for (name, record) in RECORDS {
        command(&format!("diagnose-{name}"), &["diagnose", record]);
    }
}

/// What `flatout run` prints at its end, on a terminal of 40 rows.
#[test]
fn run() {
    for (name, folder) in RECORDS.iter().filter(|(name, _)| *name != "monitor") {
        let data = Record::open(&root().join(folder)).unwrap().load();
        let diagnosis = flatout_diagnose::diagnose(&data);
        for (tag, language) in LANGUAGES {
            let summary = text::summary(&diagnosis, "last", language, 80, Some(40), false);
            let next = text::next_command(&diagnosis, "last");
            let shown = format!("{summary}{}\n", next.get(language));
            assert_snapshot(tag, &format!("run-{name}"), &shown);
        }
    }
}

#[test]
fn lint() {
    command("lint", &["lint", "examples/slow_train.py"]);
    command(
        "lint-project",
        &["lint", "crates/flatout-lint/tests/fixtures/captcha"],
    );
    command(
        "lint-diff",
        &[
            "lint",
            "--diff",
            "--unsafe",
            "crates/flatout-lint/tests/fixtures/captcha",
        ],
    );
}

#[test]
fn compare() {
    let runs = ["faults/in_process_images/record", "faults/heavy_items/record"];
    command("compare", &["compare", runs[0], runs[1]]);
    command(
        "compare-fails",
        &["compare", runs[0], runs[1], "--fail-unless", "faster=900%"],
    );
}

#[test]
fn report_analyze_and_check() {
    command("report", &["report", RECORDS[0].1, "--md"]);
    command("analyze", &["analyze", RECORDS[5].1]);
    command("check", &["check", RECORDS[3].1]);
}

#[test]
fn advise_and_tune() {
    command(
        "advise",
        &[
            "advise",
            "--model",
            "lstm",
            "--samples",
            "750000",
            "--gpu",
            "A100",
            "--gpus",
            "4",
            "--cpus",
            "64",
        ],
    );
    command("tune-fails", &["tune", "--", "false"]);
}

#[test]
fn explain() {
    command("explain", &["explain", "loader-without-workers"]);
}

/// A small training on one thread, without its measurements.
#[test]
fn train() {
    for (language, _) in LANGUAGES {
        let folder = tempfile::tempdir().unwrap();
        let run =
            |arguments: &[&str]| printed_in(folder.path(), &folder.path().join("home"), language, arguments);
        let generated = run(&["generate", "interactions", "--out", "clicks", "--size", "400"]);
        let trained = run(&[
            "train",
            "--data",
            "clicks",
            "--epochs",
            "2",
            "--batch-size",
            "32",
            "--hidden-size",
            "8",
            "--device",
            "cpu",
            "--threads",
            "1",
            "--output-dir",
            "out",
            "--plain",
        ]);
        let evaluated = run(&["evaluate", "out", "clicks", "--device", "cpu"]);
        let predicted = run(&[
            "predict",
            "out",
            "clicks",
            "--device",
            "cpu",
            "--out",
            "predictions.csv",
        ]);
        let text = [generated, trained, evaluated, predicted].join("\n");
        assert_snapshot(language, "train", &without_counts(&without_measurements(&text)));
    }
}

/// Rows of a confusion matrix depend on the machine as well: a probability next to one half falls to either side.
fn without_counts(text: &str) -> String {
    let is_row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.len() > 2 && words.iter().all(|word| word.parse::<u64>().is_ok())
    };
    let lines = text.lines().map(|line| if is_row(line) { "#" } else { line });
    lines.map(|line| format!("{line}\n")).collect()
}

/// Fractions, numbers with a unit and the processor's instructions depend on the machine: they become `#`.
fn without_measurements(text: &str) -> String {
    let text = text.replace("AVX-512", "#").replace("AVX2", "#");
    let mut result = String::new();
    let mut rest = text.as_str();
    while let Some(first) = rest.chars().next() {
        let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let mut length = digits(rest);
        let mut measured = false;
        if length > 0 {
            if rest[length..].starts_with('.') && digits(&rest[length + 1..]) > 0 {
                length += 1 + digits(&rest[length + 1..]);
                measured = true;
            }
            if rest[length..].starts_with(['k', 'M']) {
                length += 1;
                measured = true;
            }
            measured |= has_unit(rest[length..].trim_start_matches(' '));
        }
        if measured {
            // Columns are as wide as their numbers.
            while result.ends_with("  ") {
                result.pop();
            }
            result.push('#');
        } else {
            length = length.max(first.len_utf8());
            result.push_str(&rest[..length]);
        }
        rest = &rest[length..];
    }
    result
}

fn has_unit(text: &str) -> bool {
    [
        "samples/s",
        "样本/秒",
        "ms",
        "s",
        "min",
        "GiB",
        "MiB",
        "KiB",
        "B",
        "thread",
    ]
    .iter()
    .any(|unit| {
        let after = text.strip_prefix(unit).and_then(|after| after.chars().next());
        text.starts_with(unit) && !after.is_some_and(|next| next.is_ascii_alphanumeric())
    })
}
