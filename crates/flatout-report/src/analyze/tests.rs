//! Logs of every kind, from the file to the text.

use super::*;
use flatout_core::Language;
use std::fs;

fn section(name: &str, bytes: &[u8]) -> Section {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    log(&path, &Options::default()).unwrap().section
}

fn shown(section: Section, language: Language) -> String {
    let analysis = Analysis {
        schema: SCHEMA,
        jobs: Vec::new(),
        ranks: Vec::new(),
        sections: vec![section],
        notes: Vec::new(),
    };
    text::analysis(&analysis, language, 80, false)
}

const SMI: &str = "timestamp, index, utilization.gpu [%], memory.used [MiB], power.draw [W]\n";

fn smi(rows: usize) -> String {
    let row = |second: usize| {
        format!(
            "2026/01/01 00:{:02}:{:02}.000, 0, {} %, 700 MiB, 60.00 W\n",
            second / 60,
            second % 60,
            3 + second % 2
        )
    };
    SMI.to_owned() + &(0..rows).map(row).collect::<String>()
}

#[test]
fn a_log_of_nvidia_smi_gets_statistics_and_a_chart() {
    let text = shown(
        section("gpu_utilization_52098.log", smi(120).as_bytes()),
        Language::English,
    );
    assert!(
        text.contains("nvidia-smi --query-gpu") && text.contains("mean 3.5%"),
        "{text}"
    );
    assert!(
        text.contains("GPU 0 utilization over time") && text.contains("100% │"),
        "{text}"
    );
    let chinese = shown(section("gpu.log", smi(120).as_bytes()), Language::Chinese);
    assert!(chinese.contains("GPU 0 利用率随时间变化"), "{chinese}");
}

#[test]
fn one_row_and_no_row() {
    let one = section("gpu.csv", smi(1).as_bytes());
    let verdict = one.verdict.unwrap();
    assert_eq!(
        (
            verdict.ticks,
            verdict.gpus[&0].utilisation.as_ref().unwrap().spread.mean
        ),
        (1, 0.03)
    );
    let none = section("gpu.csv", SMI.as_bytes());
    assert!(none.verdict.is_none() && none.notes[0].en.contains("no row"));
}

#[test]
fn reports_a_clock_that_jumps_back() {
    let log = smi(60) + "2025/12/31 00:00:00.000, 0, 5 %, 700 MiB, 60.00 W\n";
    let section = section("gpu.csv", log.as_bytes());
    assert!(
        section
            .notes
            .iter()
            .any(|note| note.en.contains("the clock jumped back 1 time;")),
        "{:?}",
        section.notes
    );
    assert!(section.verdict.unwrap().duration_s < 70.0);
}

#[test]
fn a_training_log_of_mixed_encodings() {
    let log = [
        &b"Epoch 1/3 | loss 0.5 | time 25.5s\n"[..],
        b"\xb5\xda2\xc2\xd6 loss nan\n",
        b"Epoch 2/3 | loss nan | time 24.5s\n",
    ]
    .concat();
    let section = section("train.log", &log);
    assert!(section.notes[0].en.contains("lines that are not UTF-8: 1"));
    let text = shown(section, Language::English);
    assert!(
        text.contains("2 epochs: mean 24.5 s without the first, from 24.5 s to 25.5 s")
            && text.contains("NaN"),
        "{text}"
    );
}

#[test]
fn missing_log_values_are_unknown() {
    let text = shown(section("train.log", b"hello"), Language::English);
    assert!(
        text.contains("unknown: the log mentions no epoch") && text.contains("none found"),
        "{text}"
    );
    let named = shown(section("train.log", b"Epoch 7 loss 0.5\n"), Language::Chinese);
    assert!(named.contains("未知") && named.contains('7'), "{named}");
}

#[test]
fn training_json_is_not_gpustat() {
    let section = section(
        "metrics.jsonl",
        b"{\"epoch\": 1, \"epoch_time\": 12.5}\n{\"epoch\": 2, \"epoch_time\": 12.0}\n",
    );
    assert_eq!(
        (section.kind, section.epochs.unwrap().seconds.count),
        ("training-log", 2)
    );
    let gpustat = br#"{"hostname": "a", "query_time": "2026-01-01T00:00:00", "gpus": [{"index": 0, "utilization.gpu": 50}]}"#;
    assert_eq!(super::tests::section("gpu.json", gpustat).kind, "gpu-log");
}

#[test]
fn time_stamps_with_a_comma_are_no_table() {
    let stamped = b"2024-05-21 10:00:00,123 INFO start\n2024-05-21 10:00:01,123 Epoch 1 took 25.5s\n";
    let section = section("train.log", stamped);
    assert_eq!(
        (section.kind, section.epochs.unwrap().seconds.mean),
        ("training-log", 25.5)
    );
}

#[test]
fn empty_missing_and_headless() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.log");
    let failure = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        log(&path, &Options::default())
            .err()
            .map(|failure| failure.message().en.clone())
            .unwrap_or_default()
    };
    assert!(failure(b" \n").contains("is empty"));
    assert!(failure(b"\x1f\x8b\x08\0\0\0\0\0").contains("is compressed"));
    let noise: Vec<u8> = (0..4096u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    assert!(failure(&noise).contains("not a text file"));
    assert!(failure(b"2026/01/01 00:00:00.000, 0, 3 %, 700 MiB\n").contains("no header"));
    assert!(log(Path::new("/no/such.log"), &Options::default()).is_err());
    assert!(named("/no/such.log", &Options::default()).is_err());
}

#[test]
fn kept_samples_stay_few_and_spread_over_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gpu.csv");
    fs::write(&path, smi(3000)).unwrap();
    let options = Options {
        keep_samples: 100,
        ..Options::default()
    };
    let data = log(&path, &options).unwrap().data.unwrap();
    assert!((50..=100).contains(&data.samples.len()), "{}", data.samples.len());
    assert!(data.samples.last().unwrap().t > 2900.0);
}

#[test]
fn what_is_shown_is_escaped_for_the_terminal() {
    let section = section("a\u{1b}[2J.log", b"ERROR \x1b[2Jgone\n");
    let text = shown(section, Language::English);
    assert!(!text.contains('\u{1b}'), "{text}");
}
