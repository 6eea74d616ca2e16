//! What is told of loaders and their workers.

use crate::programs::{TRAIN, fact, steps};
use crate::support::{Place, torch_python};
use flatout_record::{EventKind, Phase};
use serde_json::Value;

/// Whole batches of both sizes by each number of workers, none of batches that would take too long, and nothing left switched off.
#[test]
fn workers_are_asked_for_batches_alone() {
    let Some(python) = torch_python() else { return };
    let place = Place::new();
    place.script("supplied.py", include_str!("programs/supplied.py"));
    let (output, _) = place.run(&python, &["--quiet"], &["supplied.py"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    let told: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{errors}"));
    let asked = |name: &str| -> Vec<(u64, u64)> {
        let all = told[name].as_array().unwrap().iter();
        all.map(|one| (one["workers"].as_u64().unwrap(), one["samples"].as_u64().unwrap()))
            .collect()
    };
    assert_eq!(asked("own"), [(2, 2), (3, 2)], "{told}");
    let asked = asked("supply");
    assert_eq!(asked, [(2, 10), (2, 40), (1, 10), (1, 40)], "{told}");
    for ((workers, samples), one) in asked.iter().zip(told["supply"].as_array().unwrap()) {
        // They sleep for each sample, all of them all the time; of small batches some may be ready after a pause of this process.
        let least_s = *samples as f64 * 0.5e-3 / *workers as f64;
        let share = if *samples > 20 { 0.8 } else { 0.5 };
        assert!(one["batch_s"].as_f64().unwrap() > least_s * share, "{one}");
        assert!(one["host_s"].as_f64().unwrap() > 0.0, "{one}");
    }
    for none in ["dear", "broken", "larger"] {
        assert_eq!(told[none], serde_json::json!([]), "{none}");
    }
    assert_eq!(told["made"], serde_json::json!([8, 30]));
    assert_eq!(told["frozen"], serde_json::json!([0, 1]));
    assert_eq!(told["off"], serde_json::json!(false));
}

/// How workers begin is the program's word, for one loader or for all; asking for it settles nothing.
#[test]
fn workers_use_the_programs_start_method() {
    let Some(python) = torch_python() else { return };
    let place = Place::new();
    let script = |wish: &str| {
        format!(
            "import multiprocessing\nfrom torch.utils.data import DataLoader\n{wish}\n\
             DataLoader([1, 2])\nprint(multiprocessing.get_start_method(allow_none=True))"
        )
    };
    for (wish, told, settled) in [
        ("", Value::Null, "None"),
        (
            "multiprocessing.set_start_method('spawn')",
            Value::from("spawn"),
            "spawn",
        ),
    ] {
        place.script("begins.py", &script(wish));
        let (output, data) = place.run(&python, &["--quiet"], &["begins.py"]);
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), settled);
        assert_eq!(
            *fact(&data, "loader.multiprocessing_context", Some("loader.0")),
            told
        );
    }
}

/// A model that is copied to a device long before the first batch: that is no waiting for data, and later waits are told in full.
#[test]
fn nothing_waits_for_data_before_there_is_a_loop() {
    let Some(python) = torch_python() else { return };
    let place = Place::new();
    place.script("late.py", include_str!("programs/begins_late.py"));
    let (output, data) = place.run(&python, &["--quiet"], &["late.py"]);
    assert!(output.status.success());
    let spent = |phase: Phase| -> f64 { data.steps.iter().map(|tick| tick.phase_ms(phase)).sum() };
    let waited: f64 = data
        .events
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::LoaderUse { wait_ms, .. } => Some(wait_ms),
            _ => None,
        })
        .sum();
    assert!(waited > 400.0, "{waited}");
    assert!(
        (spent(Phase::Data) / waited - 1.0).abs() < 0.2,
        "{}",
        spent(Phase::Data)
    );
    assert!(spent(Phase::Other) > 1900.0);
}

#[test]
fn measures_forked_and_spawned_workers() {
    let Some(python) = torch_python() else { return };
    for (context, workers) in [("fork", "2"), ("spawn", "1")] {
        let place = Place::new();
        place.script("train.py", TRAIN);
        let (output, data) = place.run(&python, &[], &["train.py", workers, context]);
        assert_eq!(
            output.stdout,
            b"done\n",
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let (batches, fetch) = data
            .events
            .iter()
            .filter_map(|event| match event.kind {
                EventKind::Workers {
                    loader: 0,
                    batches,
                    fetch_ms,
                    garbage_ms,
                    ..
                } => {
                    assert!(garbage_ms.is_some(), "{context}");
                    Some((batches, fetch_ms))
                }
                _ => None,
            })
            .fold((0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        assert_eq!(batches, 16, "{context}");
        assert!(fetch >= 256.0, "{context}: {fetch}");
        assert_eq!(steps(&data), 16);
    }
}
