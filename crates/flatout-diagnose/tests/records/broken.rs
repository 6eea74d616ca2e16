//! Records that are not whole: any cut, any missing file, any torn or foreign line gives an answer, never a panic.

use super::{Recorded, all};
use flatout_diagnose::diagnose;
use flatout_record::Record;
use proptest::prelude::*;
use std::fs;
use std::path::Path;

fn copied(from: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(from)
        .unwrap()
        .flatten()
        .filter(|entry| entry.path().is_file())
    {
        fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    folder
}

/// What is left of a record is diagnosed, and the JSON of it is JSON.
fn answers(folder: &Path) {
    if let Ok(record) = Record::open(folder) {
        let diagnosis = diagnose(&record.load());
        assert!(!diagnosis.findings.is_empty());
        serde_json::to_string(&diagnosis).unwrap();
    }
}

const FILES: [&str; 5] = [
    "facts.jsonl",
    "samples.jsonl",
    "steps.jsonl",
    "events.jsonl",
    "run.json",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn a_file_cut_anywhere(which in 0usize..1000, file in 0usize..5, share in 0.0f64..1.0) {
        let records = all();
        let Recorded { folder, .. } = &records[which % records.len()];
        let copy = copied(folder);
        let path = copy.path().join(FILES[file]);
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..(bytes.len() as f64 * share) as usize]).unwrap();
        answers(copy.path());
    }

    #[test]
    fn bytes_changed_anywhere(which in 0usize..1000, file in 0usize..4, at in prop::collection::vec((0.0f64..1.0, any::<u8>()), 1..40)) {
        let records = all();
        let Recorded { folder, .. } = &records[which % records.len()];
        let copy = copied(folder);
        let path = copy.path().join(FILES[file]);
        let mut bytes = fs::read(&path).unwrap();
        for (share, byte) in at {
            let index = (bytes.len() as f64 * share) as usize;
            if let Some(old) = bytes.get_mut(index) {
                *old = byte;
            }
        }
        fs::write(&path, &bytes).unwrap();
        answers(copy.path());
    }
}

#[test]
fn a_record_without_one_of_its_files() {
    let records = all();
    for file in FILES {
        let copy = copied(&records[0].folder);
        fs::remove_file(copy.path().join(file)).unwrap();
        answers(copy.path());
    }
}

#[test]
fn a_record_of_a_later_version_is_refused_with_its_number() {
    let copy = copied(&all()[0].folder);
    fs::write(
        copy.path().join("run.json"),
        r#"{"schema": 7, "id": {"of": "another shape"}}"#,
    )
    .unwrap();
    let error = Record::open(copy.path()).unwrap_err().to_string();
    assert!(error.contains("newer") && error.contains('7'), "{error}");
}
