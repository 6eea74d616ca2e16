//! The batch that is measured and chosen, and the one that is made smaller because it does not fit.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod support;

use flatout_core::Explain;
use flatout_train::{Report, checkpoint};
use std::path::Path;
use support::{stocks, tensors, train, values};

/// Batch, micro-batch, steps per epoch, learning rate, bytes.
fn start(reports: &[Report]) -> (usize, usize, u64, f64, u64) {
    let found = reports.iter().rev().find_map(|report| match report {
        Report::Start {
            batch_size,
            micro_batch_size,
            steps_an_epoch,
            learning_rate,
            memory_bytes,
            ..
        } => Some((
            *batch_size,
            *micro_batch_size,
            *steps_an_epoch,
            *learning_rate,
            *memory_bytes,
        )),
        _ => None,
    });
    found.unwrap()
}

fn last_loss(reports: &[Report]) -> f64 {
    let loss = reports.iter().rev().find_map(|report| match report {
        Report::Epoch { loss, .. } => Some(*loss),
        _ => None,
    });
    loss.unwrap()
}

fn warnings(reports: &[Report]) -> Vec<&str> {
    let said = reports.iter().filter_map(|report| match report {
        Report::Warning { message } => Some(message.en.as_str()),
        _ => None,
    });
    said.collect()
}

const AUTO: &[(&str, &str)] = &[
    ("batch_size", "auto"),
    ("epochs", "1"),
    ("hidden_size", "8"),
    ("log_interval", "1"),
];

#[test]
fn a_measured_batch_leaves_enough_steps_and_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (data, output) = (folder.path().join("data"), folder.path().join("out"));
    stocks(&data);
    let more = [AUTO, &[("deterministic", "true"), ("keep_lr", "false")]].concat();
    let (_, reports) = train(&values(&data, &output, &more), None).unwrap();
    let (batch, micro, steps, rate, _) = start(&reports);
    assert!(
        (steps >= 200 || batch == 8) && batch == micro && batch.is_power_of_two(),
        "{batch}, {steps} steps"
    );
    assert!(
        (rate - 0.005 * (batch as f64 / 512.0).sqrt()).abs() < 1e-9,
        "{rate}"
    );
    let progress = checkpoint::describe(&output.join("last.safetensors"))
        .unwrap()
        .progress;
    assert_eq!(progress.batch.unwrap().effective, batch);

    let resolved = std::fs::read_to_string(output.join("config.yaml")).unwrap();
    assert!(resolved.contains(&format!("batch_size: {batch}\n")), "{resolved}");

    // The second deterministic run measures nothing and ends with the same bits.
    let first = tensors(&output);
    let (_, reports) = train(&values(&data, &output, &more), None).unwrap();
    assert_eq!(start(&reports).0, batch);
    assert!(first == tensors(&output), "a deterministic rerun ended elsewhere");

    let keep = [AUTO, &[("keep_lr", "true")]].concat();
    let (_, reports) = train(&values(&data, &folder.path().join("keep"), &keep), None).unwrap();
    assert!((start(&reports).3 - 0.005).abs() < 1e-12);
}

#[test]
fn a_resumed_training_keeps_its_measured_batch() {
    let folder = tempfile::tempdir().unwrap();
    let (data, output) = (folder.path().join("data"), folder.path().join("out"));
    stocks(&data);
    let (outcome, reports) = train(&values(&data, &output, AUTO), Some(20)).unwrap();
    assert!(outcome.interrupted);
    let before = start(&reports);
    let resume = output.display().to_string();
    let more = [AUTO, &[("resume", resume.as_str())]].concat();
    let (_, reports) = train(&values(&data, &output, &more), None).unwrap();
    let after = start(&reports);
    assert_eq!((before.0, before.1, before.3), (after.0, after.1, after.3));
}

#[test]
fn a_batch_that_does_not_fit_goes_in_parts_with_the_same_result() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    stocks(&data);
    let whole = folder.path().join("whole");
    let (_, reports) = train(&values(&data, &whole, &[("batch_size", "100")]), None).unwrap();
    let (_, _, steps, _, bytes) = start(&reports);
    let loss = last_loss(&reports);
    // A quarter of the memory: twice in halves at least, and 100 cannot be halved evenly for ever.
    let limit = (bytes / 4).to_string();
    let more = [("batch_size", "100"), ("memory_limit", limit.as_str())];
    let parts = folder.path().join("parts");
    let (_, reports) = train(&values(&data, &parts, &more), None).unwrap();
    let (batch, micro, steps_in_parts, _, bytes_in_parts) = start(&reports);
    assert_eq!((batch, steps_in_parts), (100, steps));
    assert!(
        micro <= 25 && bytes_in_parts <= bytes / 4,
        "{micro}, {bytes_in_parts} bytes"
    );
    assert!(warnings(&reports)[0].contains("100 samples at once do not fit"));
    let in_parts = last_loss(&reports);
    assert!((loss - in_parts).abs() < 1e-3 * loss, "{loss} against {in_parts}");
    closely(&whole, &parts);
}

/// The parameters of both ended at the same values but for the order of sums.
fn closely(one: &Path, other: &Path) {
    for ((name, one), (_, other)) in tensors(one).into_iter().zip(tensors(other)) {
        let values = |bytes: &[u8]| -> Vec<f32> {
            let chunks = bytes.chunks_exact(4);
            chunks
                .map(|four| f32::from_le_bytes(four.try_into().unwrap()))
                .collect()
        };
        for (a, b) in values(&one).into_iter().zip(values(&other)) {
            assert!((a - b).abs() < 2e-3 * (1.0 + a.abs()), "{name}: {a} against {b}");
        }
    }
}

#[test]
fn suggests_a_model_that_fits() {
    let folder = tempfile::tempdir().unwrap();
    let (data, output) = (folder.path().join("data"), folder.path().join("out"));
    stocks(&data);
    let large = [("hidden_size", "256"), ("memory_limit", "400KiB")];
    let error = train(&values(&data, &output, &large), None).unwrap_err();
    assert!(error.to_string().contains("even with one sample"), "{error}");
    let hint = error.hint().unwrap().en;
    let fits = hint.strip_prefix("this model fits: --hidden-size ").unwrap();
    let smaller = [("hidden_size", fits), ("memory_limit", "400KiB")];
    train(&values(&data, &output, &smaller), None).unwrap();
    let error = train(&values(&data, &output, &[("memory_limit", "10")]), None).unwrap_err();
    assert!(error.hint().unwrap().en.contains("--limit"));
}
