//! The record as its readers see it: what was written comes back, whatever happened to the writer.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use flatout_record::{
    Event, EventKind, ExitInfo, GpuSample, Phase, PhaseTime, Record, RecordWriter, RunInfo, SCHEMA, Sample,
    StepTick,
};
use proptest::prelude::*;
use std::fs;
use std::path::Path;

fn info() -> RunInfo {
    RunInfo {
        schema: SCHEMA,
        id: "x".into(),
        name: "x".into(),
        kind: "monitor".into(),
        ..RunInfo::default()
    }
}

fn sample(t: f64, util: Option<f64>) -> Sample {
    let gpu = GpuSample {
        util,
        mem_used_bytes: Some(7 << 30),
        throttle: Some(vec!["idle".into()]),
        ..GpuSample::default()
    };
    Sample {
        t,
        gpus: [(0, gpu)].into(),
        ..Sample::default()
    }
}

fn write(folder: &Path, samples: &[Sample]) {
    let mut writer = RecordWriter::create(folder, info()).unwrap();
    samples.iter().for_each(|sample| writer.sample(sample));
    writer.finish(ExitInfo {
        t: 9.0,
        code: Some(0),
        signal: None,
    });
}

#[test]
fn samples_come_back_and_unchanged_fields_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let samples = [
        sample(0.0, Some(0.5)),
        sample(1.0, Some(0.5)),
        sample(2.0, None),
        sample(3.0, Some(0.9)),
    ];
    write(folder.path(), &samples);
    let record = Record::open(folder.path()).unwrap();
    assert_eq!(record.samples().collect::<Vec<_>>(), samples);
    assert_eq!(record.info.exit.unwrap().code, Some(0));
    let text = fs::read_to_string(folder.path().join("samples.jsonl")).unwrap();
    assert_eq!(text.lines().nth(1), Some(r#"{"t":1.0}"#));
    assert_eq!(
        text.lines().nth(2),
        Some(r#"{"gpus":{"0":{"util":null}},"t":2.0}"#)
    );
}

#[test]
fn steps_and_events_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = RecordWriter::create(folder.path(), info()).unwrap();
    let mut data = PhaseTime {
        ms: 600.0,
        ..PhaseTime::default()
    };
    data.hist.add_ms(6.0);
    let tick = StepTick {
        t: 1.0,
        dt: 1.0,
        steps: 100,
        phases: [(Phase::Data, data)].into(),
        ..StepTick::default()
    };
    writer.steps(&tick);
    let event = Event {
        t: 0.5,
        kind: EventKind::Epoch {
            number: 3,
            duration_ms: None,
        },
    };
    writer.event(&event);
    drop(writer);
    let loaded = Record::open(folder.path()).unwrap().load();
    assert_eq!((loaded.steps, loaded.events), (vec![tick], vec![event]));
}

#[test]
fn skips_and_reports_a_torn_line_and_keeps_unknown_events() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[sample(0.0, Some(0.5))]);
    fs::write(
        folder.path().join("events.jsonl"),
        "{\"t\":1,\"kind\":\"from-the-future\",\"x\":1}\n{\"t\":2,\"ki",
    )
    .unwrap();
    let loaded = Record::open(folder.path()).unwrap().load();
    assert_eq!(
        loaded.events,
        [Event {
            t: 1.0,
            kind: EventKind::Unknown
        }]
    );
    assert_eq!(loaded.skipped.len(), 1);
    assert!(loaded.skipped[0].torn && loaded.skipped[0].place == "events.jsonl:2");
}

#[test]
fn what_is_not_a_record_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let message = |folder: &Path| Record::open(folder).unwrap_err().to_string();
    assert!(message(folder.path()).contains("has no run.json"));
    fs::write(folder.path().join("run.json"), "[]").unwrap();
    assert!(message(folder.path()).contains("not a valid run description"));
    let newer = RunInfo {
        schema: SCHEMA + 1,
        ..info()
    };
    fs::write(
        folder.path().join("run.json"),
        serde_json::to_string(&newer).unwrap(),
    )
    .unwrap();
    assert!(message(folder.path()).contains("newer flatout"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), cut in any::<prop::sample::Index>()) {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &[sample(0.0, Some(0.5)), sample(1.0, None), sample(2.0, Some(0.1))]);
        let path = folder.path().join("samples.jsonl");
        let mut text = fs::read(&path).unwrap();
        let at = cut.index(text.len());
        text.splice(at..at, bytes.iter().copied());
        fs::write(&path, &text).unwrap();
        fs::write(folder.path().join("events.jsonl"), &bytes).unwrap();
        fs::write(folder.path().join("steps.0000.jsonl.zst"), &bytes).unwrap();
        let loaded = Record::open(folder.path()).unwrap().load();
        prop_assert!(loaded.samples.len() <= 4 + bytes.len());
    }
}
