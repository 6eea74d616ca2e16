//! What "better" may mean: energy by the GPUs' counters, and money.

use crate::support::plain_python;
use crate::trying::{STEPS, Try, json, words};
use std::process::Command;

fn tuned(place: &Try, options: &[&str]) -> Option<Command> {
    let python = plain_python()?;
    place.script("steps.py", STEPS);
    let tune = ["tune", "--trial-seconds", "0.6", "--max-trials", "3"];
    let program = ["--", python.to_str().unwrap(), "steps.py", "{batch_size=8}"];
    Some(place.command(&[&tune[..], options, &program].concat()))
}

/// The stand-in driver counts the energy of two GPUs, by a trace that is known: 2 GPUs of less than 700 W each.
#[test]
fn energy_by_the_counters_of_the_gpus() {
    let place = Try::new();
    let Some(mut command) = tuned(&place, &["--objective", "energy", "--json"]) else {
        return;
    };
    let library = std::env::current_exe()
        .unwrap()
        .with_file_name("libflatout_fake_nvml.so");
    let output = command.env("FLATOUT_NVML_LIB", library).output().unwrap();
    assert!(output.status.success(), "{}", words(&output));
    let found = json(&output);
    assert_eq!(found["unit"], "samples/J");
    let trials = found["trials"].as_array().unwrap();
    for trial in trials {
        let number = |key: &str| trial[key].as_f64().unwrap();
        let power_w = number("power_w");
        assert!((50.0..1400.0).contains(&power_w), "{}", words(&output));
        // A joule's samples are a second's samples by the joules of a second.
        let rate = number("samples") / number("seconds");
        let score = trial["score"]["mean"].as_f64().unwrap();
        assert!((score * power_w / rate - 1.0).abs() < 0.01, "{}", words(&output));
    }
    // Four times the samples in hardly more time is plainly better, whatever the counters say meanwhile.
    assert!(found["changed"].as_bool().unwrap(), "{}", words(&output));
    assert!(place.left_behind().is_empty(), "{:?}", place.left_behind());
}

#[test]
fn without_a_counter_energy_is_refused_with_a_hint() {
    let place = Try::new();
    let Some(mut command) = tuned(&place, &["--objective", "energy"]) else {
        return;
    };
    let output = command
        .env("FLATOUT_NVML_LIB", "/nonexistent/libnvidia-ml.so.1")
        .output()
        .unwrap();
    let text = words(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(
        text.contains("energy cannot be measured") && text.contains("hint:"),
        "{text}"
    );
}

/// Money is time at a price.
#[test]
fn cost_at_a_price_an_hour() {
    let place = Try::new();
    let Some(mut command) = tuned(&place, &["--objective", "cost", "--price", "2.5", "--json"]) else {
        return;
    };
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", words(&output));
    let found = json(&output);
    assert_eq!(found["unit"], "samples per unit of money");
    for trial in found["trials"].as_array().unwrap() {
        let rate = trial["samples"].as_f64().unwrap() / trial["seconds"].as_f64().unwrap();
        let score = trial["score"]["mean"].as_f64().unwrap();
        assert!(
            (score / (rate * 3600.0 / 2.5) - 1.0).abs() < 0.01,
            "{}",
            words(&output)
        );
    }
    assert!(found["changed"].as_bool().unwrap(), "{}", words(&output));
}
