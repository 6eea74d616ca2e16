//! A training as a user has it: it learns, it resumes to the bit, it leaves a record that others read.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod support;

use flatout_record::{EventKind, Phase, Record};
use flatout_train::data::TrainingData;
use flatout_train::{Configuration, Report, Settings, Trainer};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use support::{stocks, tensors, train, values};

#[test]
fn it_learns_and_records_itself() {
    let folder = tempfile::tempdir().unwrap();
    let (data, output) = (folder.path().join("data"), folder.path().join("out"));
    stocks(&data);
    let (outcome, reports) = train(&values(&data, &output, &[("epochs", "6")]), None).unwrap();
    let losses: Vec<f64> = reports
        .iter()
        .filter_map(|r| {
            if let Report::Epoch { loss, .. } = r {
                Some(*loss)
            } else {
                None
            }
        })
        .collect();
    assert_eq!(losses.len(), 6);
    assert!(losses[5] < 0.9 * losses[0], "{losses:?}");
    assert!(outcome.scores.unwrap().ic.unwrap() > 0.2, "{:?}", outcome.scores);
    let loaded = Record::open(&output.join("run")).unwrap().load();
    assert_eq!(loaded.info.kind, "train");
    assert_eq!(loaded.info.exit.unwrap().code, Some(0));
    assert!(loaded.steps.iter().map(|tick| tick.steps).sum::<u64>() > 50);
    assert_eq!(
        loaded
            .events
            .iter()
            .filter(|event| matches!(event.kind, EventKind::Eval { .. }))
            .count(),
        3
    );
    for tick in &loaded.steps {
        let sum: f64 = Phase::ALL.iter().map(|phase| tick.phase_ms(*phase)).sum();
        assert!(
            (sum - tick.dt * 1e3).abs() < 0.02 * tick.dt * 1e3 + 5.0,
            "{sum} of {}",
            tick.dt * 1e3
        );
    }
    assert!(output.join("best.safetensors").exists() && output.join("config.yaml").exists());
}

#[test]
fn an_interrupted_training_goes_on_to_the_bit() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    stocks(&data);
    let more = [
        ("dropout", "0.1"),
        ("num_layers", "2"),
        ("lr_schedule", "cosine"),
        ("log_interval", "1"),
    ];
    let whole = folder.path().join("whole");
    train(&values(&data, &whole, &more), None).unwrap();
    let parts = folder.path().join("parts");
    let (outcome, _) = train(&values(&data, &parts, &more), Some(5)).unwrap();
    assert!(outcome.interrupted);
    let resume = parts.display().to_string();
    let again = [&more[..], &[("resume", resume.as_str())]].concat();
    let (outcome, _) = train(&values(&data, &parts, &again), None).unwrap();
    assert!(!outcome.interrupted);
    assert!(
        tensors(&whole) == tensors(&parts),
        "the resumed training ended elsewhere"
    );
    assert!(parts.join("run-2/run.json").exists());
}

#[test]
fn accumulated_micro_batches_are_the_same_batch() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    stocks(&data);
    let loss = |more: &[(&'static str, &str)]| {
        let output = folder.path().join(format!("out{}", more.len()));
        let (_, reports) = train(&values(&data, &output, more), None).unwrap();
        reports
            .iter()
            .filter_map(|r| {
                if let Report::Epoch { loss, .. } = r {
                    Some(*loss)
                } else {
                    None
                }
            })
            .next_back()
            .unwrap()
    };
    let (one, two) = (
        loss(&[]),
        loss(&[("gradient_accumulation_steps", "2"), ("batch_size", "32")]),
    );
    assert!((one - two).abs() < 0.02 * one, "{one} against {two}");
}

#[test]
fn bad_input_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (data, output) = (folder.path().join("data"), folder.path().join("out"));
    stocks(&data);
    let message = |more: &[(&'static str, &str)]| {
        train(&values(&data, &output, more), None)
            .unwrap_err()
            .to_string()
    };
    assert!(message(&[("label", "nonexistent")]).contains("nonexistent"));
    assert!(message(&[("model_type", "mlp")]).contains("model for this kind of data"));
    assert!(
        message(&[
            ("learning_rate", "900"),
            ("clip_norm", "0"),
            ("optimizer", "sgd"),
            ("log_interval", "1")
        ])
        .contains("NaN or infinite")
    );
    train(&values(&data, &output, &[("epochs", "1")]), None).unwrap();
    let resume = output.display().to_string();
    assert!(message(&[("resume", &resume), ("hidden_size", "32")]).contains("hidden_size `16`, not `32`"));
    assert!(message(&[("resume", &resume), ("gap", "3")]).contains("gap `0`, not `3`"));
    assert!(message(&[("resume", &resume), ("min_history", "30")]).contains("min_history `0`, not `30`"));
    std::fs::write(output.join("last.safetensors"), b"cut short").unwrap();
    assert!(message(&[("resume", &resume)]).contains("damaged"));
}

#[test]
fn every_phase_has_its_own_schedule() {
    let folder = tempfile::tempdir().unwrap();
    let (data, output) = (folder.path().join("data"), folder.path().join("out"));
    stocks(&data);
    let text = "lr_schedule: linear\npretrain:\n  epochs: 2\n  batch_size: 32\nglobal:\n  epochs: 2\n";
    let mut flags = values(&data, &output, &[]);
    flags.remove("epochs");
    let configuration = Configuration::of(Path::new("phases.yaml"), text, &flags).unwrap();
    let (interrupted, mut rates, mut kept) = (AtomicBool::new(false), Vec::new(), Vec::new());
    let mut report = |report: &Report| {
        if let Report::Saved {
            best: true, phase, ..
        } = report
        {
            kept.extend(phase.clone());
        }
        if let Report::Epoch { rate, phase, .. } = report {
            rates.push((phase.clone(), *rate));
        }
    };
    Trainer::new(&configuration, &interrupted, &mut report)
        .unwrap()
        .run()
        .unwrap();
    let phases: Vec<&str> = rates.iter().map(|(phase, _)| phase.as_str()).collect();
    assert_eq!(phases, ["pretrain", "pretrain", "global", "global"]);
    // The best of a phase is told with its name.
    assert_eq!(kept.first().map(String::as_str), Some("pretrain"));
    assert_eq!(kept.last().map(String::as_str), Some("global"));
    for pair in rates.chunks_exact(2) {
        assert!(pair[0].1 > 0.45 * 0.005 && pair[1].1 < 0.1 * 0.005, "{rates:?}");
    }
}

#[test]
fn reports_the_thread_count_without_changing_results() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    stocks(&data);
    let mut ends = Vec::new();
    for (name, more) in [
        ("measured", vec![("batch_size", "4")]),
        ("one", vec![("batch_size", "4"), ("threads", "1")]),
    ] {
        let output = folder.path().join(name);
        train(
            &values(&data, &output, &[&more[..], &[("epochs", "1")]].concat()),
            None,
        )
        .unwrap();
        let loaded = Record::open(&output.join("run")).unwrap().load();
        let fact = loaded.facts.iter().find(|fact| fact.key == "threads").unwrap();
        assert!(fact.value.as_u64().unwrap() >= 1);
        ends.push(tensors(&output));
    }
    assert!(
        ends[0] == ends[1],
        "the number of threads changed what was learnt"
    );
}

#[test]
fn a_second_phase_repeats_no_note() {
    let folder = tempfile::tempdir().unwrap();
    let (data, output) = (folder.path().join("data"), folder.path().join("out"));
    stocks(&data);
    let text = "num_workers: 4\npretrain:\n  epochs: 1\nglobal:\n  epochs: 1\n";
    let mut flags = values(&data, &output, &[("threads", "1")]);
    flags.remove("epochs");
    let configuration = Configuration::of(Path::new("phases.yaml"), text, &flags).unwrap();
    let (interrupted, mut notes) = (AtomicBool::new(false), Vec::new());
    let mut report = |report: &Report| {
        if let Report::Start { notes: said, .. } = report {
            notes.push(said.len());
        }
    };
    Trainer::new(&configuration, &interrupted, &mut report)
        .unwrap()
        .run()
        .unwrap();
    assert_eq!(notes, [1, 0]);
}

#[test]
fn reports_settings_without_effect() {
    let folder = tempfile::tempdir().unwrap();
    let (data, output) = (folder.path().join("data"), folder.path().join("out"));
    stocks(&data);
    let more = [
        ("epochs", "1"),
        ("amp", "bf16"),
        ("dropout", "0.2"),
        ("channels", "3"),
        ("keep_lr", "true"),
        ("log_interval", "100000"),
        ("threads", "4096"),
    ];
    let named = |reports: &[Report]| -> Vec<String> {
        let notes = reports.iter().find_map(|report| match report {
            Report::Start { notes, .. } => Some(notes),
            _ => None,
        });
        let names = notes
            .unwrap()
            .iter()
            .map(|note| note.en.split(':').next().unwrap().to_owned());
        names.collect()
    };
    let (_, reports) = train(&values(&data, &output, &more), None).unwrap();
    let said = named(&reports);
    for (name, _) in &more[1..] {
        assert!(said.iter().any(|one| one == name), "{name} is not among {said:?}");
    }
    // Settings out of a checkpoint were told when they were given.
    let kept = std::fs::read_to_string(output.join("config.yaml")).unwrap();
    let configuration = Configuration::of(Path::new("config.yaml"), &kept, &Default::default()).unwrap();
    assert!(configuration.given.is_empty(), "{:?}", configuration.given);
    let (_, reports) = train(
        &values(&data, &folder.path().join("two"), &[("epochs", "1")]),
        None,
    )
    .unwrap();
    assert!(
        named(&reports).iter().all(|name| name.starts_with("threads")),
        "{:?}",
        named(&reports)
    );
}

#[test]
fn a_rate_that_is_given_on_resume_is_used_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let (data, output) = (folder.path().join("data"), folder.path().join("out"));
    stocks(&data);
    let mut flags = values(&data, &output, &[("epochs", "1")]);
    flags.remove("batch_size");
    flags.remove("learning_rate");
    let rate_of = |reports: &[Report]| {
        let start = reports.iter().find_map(|report| match report {
            Report::Start { learning_rate, .. } => Some(*learning_rate),
            _ => None,
        });
        start.unwrap()
    };
    let scaled = rate_of(&train(&flags, None).unwrap().1);
    assert!(
        (scaled - 0.001).abs() > 1e-5,
        "the batch is that of the default rate"
    );
    let kept = flatout_train::checkpoint::describe(&output.join("last.safetensors")).unwrap();
    let resume = |more: &[(&'static str, &str)]| {
        let mut flags: flatout_train::settings::Values = [("resume", output.display().to_string())].into();
        flags.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
        let configuration = Configuration::of(Path::new("kept"), &kept.configuration, &flags).unwrap();
        let mut reports = Vec::new();
        let mut report = |report: &Report| reports.push(report.clone());
        Trainer::new(&configuration, &AtomicBool::new(false), &mut report)
            .unwrap()
            .run()
            .unwrap();
        rate_of(&reports)
    };
    assert!((resume(&[("epochs", "2")]) - scaled).abs() < 1e-12);
    assert_eq!(resume(&[("epochs", "3"), ("learning_rate", "0.02")]), 0.02);
    assert_eq!(resume(&[("epochs", "4"), ("learning_rate", "0.001")]), 0.001);
}

#[test]
fn a_date_and_test_data_split_together() {
    let folder = tempfile::tempdir().unwrap();
    let table = |name: &str, days: std::ops::Range<u32>| {
        let mut text = "day,x,y\n".to_owned();
        for day in days {
            text += &format!("2024-01-{:02},{day},{}\n", day + 1, f64::from(day) * 0.5);
        }
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (data, test) = (table("data.csv", 0..20), table("test.csv", 20..25));
    let load = |more: &[(&'static str, &str)]| {
        let mut values: flatout_train::settings::Values = [
            ("data", data.clone()),
            ("test_data", test.clone()),
            ("label", "y".to_owned()),
            ("time", "day".to_owned()),
            ("cache", "false".to_owned()),
            ("validation_from", "2024-01-16".to_owned()),
        ]
        .into();
        values.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
        TrainingData::load(&Settings::of(&values).unwrap())
    };
    let found = load(&[]).unwrap();
    assert_eq!(
        (found.train.len(), found.validation.len(), found.test.len()),
        (15, 5, 5)
    );
    let refused = |more: &[(&'static str, &str)]| load(more).map(|_| ()).unwrap_err().to_string();
    assert!(refused(&[("test_from", "2024-01-18")]).contains("`test_from`"));
    assert!(refused(&[("validation_data", &test)]).contains("`validation_from`"));
}

#[test]
fn averaged_weights_are_evaluated_saved_and_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    stocks(&data);
    let more = [
        ("ema", "0.9"),
        ("log_interval", "1"),
        ("threads", "1"),
        ("entity_dropout", "0"),
    ];
    let whole = folder.path().join("whole");
    let (outcome, _) = train(&values(&data, &whole, &more), None).unwrap();
    let parts = folder.path().join("parts");
    train(&values(&data, &parts, &more), Some(30)).unwrap();
    let resume = parts.display().to_string();
    let again = [&more[..], &[("resume", resume.as_str())]].concat();
    let (resumed, _) = train(&values(&data, &parts, &again), None).unwrap();
    assert!(
        tensors(&whole) == tensors(&parts),
        "the resumed training ended elsewhere"
    );
    assert_eq!(outcome.scores, resumed.scores);
    let kept = tensors(&whole);
    let tensor = |name: &str| &kept.iter().find(|(known, _)| known == name).unwrap().1;
    assert_ne!(tensor("head.weight"), tensor("optimizer.current.head.weight"));
    // The parameters of the file are those that were evaluated: a training that stands still has the same score.
    let last = whole.join("last.safetensors").display().to_string();
    let still = [
        ("init", last.as_str()),
        ("learning_rate", "1e-30"),
        ("weight_decay", "0"),
        ("epochs", "1"),
        ("threads", "1"),
        ("entity_dropout", "0"),
    ];
    let (still, _) = train(&values(&data, &folder.path().join("still"), &still), None).unwrap();
    let (loss, averaged) = (still.scores.unwrap().loss, outcome.scores.unwrap().loss);
    assert!((loss - averaged).abs() < 1e-9, "{loss} {averaged}");
    // Averages do not change the training, and without them the weights are others.
    let plain = folder.path().join("plain");
    train(&values(&data, &plain, &more[1..]), None).unwrap();
    let plain = tensors(&plain);
    let weight = &plain.iter().find(|(name, _)| name == "head.weight").unwrap().1;
    assert_eq!(weight, tensor("optimizer.current.head.weight"));
    let refused = train(
        &values(&data, &parts, &[&again[..], &[("ema", "0.5")]].concat()),
        None,
    );
    assert!(refused.unwrap_err().to_string().contains("ema `0.9`, not `0.5`"));
}
