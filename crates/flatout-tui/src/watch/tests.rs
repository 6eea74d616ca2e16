use super::*;
use crate::lines::{Csv, Format, Json, Plain};
use flatout_core::Language;
use flatout_record::{Event, EventKind, GpuInfo, GpuSample, Record, RecordWriter, SCHEMA, Sample};
use std::path::Path;

fn write_record(folder: &Path, ticks: u32) {
    let gpu = GpuInfo {
        name: Some("NVIDIA H200".into()),
        mem_total_bytes: Some(141 << 30),
        ..GpuInfo::default()
    };
    let info = RunInfo {
        schema: SCHEMA,
        interval_s: Some(1.0),
        gpus: [(0, gpu)].into(),
        ..RunInfo::default()
    };
    let mut writer = RecordWriter::create(folder, info).unwrap();
    for tick in 1..=ticks {
        let gpu = GpuSample {
            util: Some(0.9),
            power_w: Some(598.4),
            power_limit_w: Some(700.0),
            mem_used_bytes: Some(61 << 30),
            ..GpuSample::default()
        };
        writer.sample(&Sample {
            t: f64::from(tick),
            gpus: [(0, gpu)].into(),
            ..Sample::default()
        });
    }
    writer.event(&Event {
        t: 2.5,
        kind: EventKind::Note {
            source: "test".into(),
            text: "half".into(),
        },
    });
}

/// A view that keeps what it was shown.
struct Kept<F> {
    format: F,
    text: String,
    quit_after: usize,
    shown: usize,
}

impl<F: Format> View for Kept<F> {
    fn show(&mut self, moment: &Moment) {
        self.text += &self.format.tick(moment);
        self.shown += 1;
    }

    fn wait(&mut self, _: Duration) -> Wish {
        if self.shown >= self.quit_after {
            Wish::Quit
        } else {
            Wish::GoOn
        }
    }
}

fn replayed<F: Format>(folder: &Path, format: F, speed: Speed, quit_after: usize) -> (Outcome, String) {
    let mut replay = Replay::new(&Record::open(folder).unwrap(), speed);
    let mut view = Kept {
        format,
        text: String::new(),
        quit_after,
        shown: 0,
    };
    let outcome = watch(&mut replay, &mut view, &mut [], None);
    (outcome, view.text)
}

#[test]
fn a_replay_ends_with_the_verdict_of_its_samples() {
    let folder = tempfile::tempdir().unwrap();
    write_record(folder.path(), 20);
    let (outcome, text) = replayed(
        folder.path(),
        Plain {
            language: Language::English,
        },
        Speed::Fastest,
        1000,
    );
    let record = Record::open(folder.path()).unwrap();
    assert_eq!(outcome.verdict, Verdict::of(&record.info, &record.load().samples));
    assert_eq!(outcome.end, End::Over);
    assert!(
        text.starts_with("    1.0 s  GPU 0   90%     61/141 GiB   598/700W   85%      –        –\n"),
        "{text}"
    );
    assert!(text.contains("    3.0 s  test: half\n"), "{text}");
}

#[test]
fn json_and_csv_lines_can_be_read_by_programs() {
    let folder = tempfile::tempdir().unwrap();
    write_record(folder.path(), 3);
    let (outcome, text) = replayed(folder.path(), Json, Speed::Fastest, 1000);
    let kinds: Vec<String> = (text + &crate::lines::verdict_line(&outcome.verdict))
        .lines()
        .map(|line| {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(value["schema"], 1, "{line}");
            value["kind"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(kinds, ["run", "sample", "sample", "event", "sample", "verdict"]);
    let (_, text) = replayed(folder.path(), Csv::default(), Speed::Fastest, 1000);
    assert_eq!(text.lines().count(), 4);
}

#[test]
fn a_person_may_quit_and_a_pause_stops_the_replay() {
    let folder = tempfile::tempdir().unwrap();
    write_record(folder.path(), 20);
    let (outcome, _) = replayed(folder.path(), Csv::default(), Speed::Times(1000.0), 3);
    assert_eq!(outcome.end, End::Quit);
    let mut replay = Replay::new(&Record::open(folder.path()).unwrap(), Speed::Fastest);
    replay.pause(true);
    assert!(
        replay.poll().is_some(),
        "the sample at the clock's own time is due"
    );
    assert!(replay.poll().is_none() && !replay.is_over());
    replay.pause(false);
    assert!(replay.poll().is_some());
}

#[test]
fn what_is_watched_is_recorded_and_a_record_is_never_overwritten() {
    let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write_record(source.path(), 7);
    let folder = target.path().join("copy");
    let mut replay = Replay::new(&Record::open(source.path()).unwrap(), Speed::Fastest);
    let info = RunInfo {
        name: "copy".into(),
        ..replay.info().clone()
    };
    let log = target.path().join("log.csv");
    let mut sinks: Vec<Box<dyn Sink>> = vec![
        Box::new(RecordSink::create(&folder, info.clone(), Language::English).unwrap()),
        Box::new(CsvLog::create(&log, &info).unwrap()),
    ];
    let mut view = Kept {
        format: Csv::default(),
        text: String::new(),
        quit_after: 1000,
        shown: 0,
    };
    let outcome = watch(&mut replay, &mut view, &mut sinks, None);
    let copy = Record::open(&folder).unwrap();
    assert_eq!(
        copy.load().samples,
        Record::open(source.path()).unwrap().load().samples
    );
    assert_eq!(
        (copy.info.name.as_str(), copy.info.exit.unwrap().t),
        ("copy", 7.0)
    );
    assert_eq!(std::fs::read_to_string(log).unwrap(), view.text);
    assert_eq!(outcome.verdict.ticks, 7);
    assert!(matches!(
        RecordSink::create(&folder, info, Language::English),
        Err(SinkError::Taken { .. })
    ));
}
