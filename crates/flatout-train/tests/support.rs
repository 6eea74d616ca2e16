//! A small data set and a small training over it.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test file uses its part, and a test may fail"
)]

use flatout_data::generate;
use flatout_train::settings::Values;
use flatout_train::{Configuration, Outcome, Report, TrainError, Trainer};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

pub fn stocks(folder: &Path) {
    let stocks = generate::stocks::Stocks {
        stocks: 8,
        days: 260,
        seed: 7,
        ..Default::default()
    };
    generate::Recipe::Stocks(stocks)
        .generate(folder, Some(2))
        .unwrap();
}

pub fn values(data: &Path, output: &Path, more: &[(&'static str, &str)]) -> Values {
    let mut values: Values = [
        ("data", data.display().to_string()),
        ("output_dir", output.display().to_string()),
        ("device", "cpu".to_owned()),
        ("hidden_size", "16".to_owned()),
        ("num_layers", "1".to_owned()),
        ("entity_embedding_dim", "4".to_owned()),
        ("sequence_length", "10".to_owned()),
        ("batch_size", "64".to_owned()),
        ("epochs", "4".to_owned()),
        ("eval_interval", "2".to_owned()),
        ("checkpoint_interval", "2".to_owned()),
        ("learning_rate", "0.005".to_owned()),
    ]
    .into();
    values.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
    values
}

pub fn train(
    values: &Values,
    interrupt_after_steps: Option<u64>,
) -> Result<(Outcome, Vec<Report>), TrainError> {
    let configuration = Configuration::read(None, values)?;
    let interrupted = AtomicBool::new(false);
    let mut reports = Vec::new();
    let mut report = |report: &Report| {
        if let (Report::Steps { epoch, step, of, .. }, Some(limit)) = (report, interrupt_after_steps)
            && (epoch - 1) * of + step >= limit
        {
            interrupted.store(true, Ordering::Relaxed);
        }
        reports.push(report.clone());
    };
    let outcome = Trainer::new(&configuration, &interrupted, &mut report)?.run()?;
    Ok((outcome, reports))
}

/// Everything in the last checkpoint, by name.
pub fn tensors(output: &Path) -> Vec<(String, Vec<u8>)> {
    let bytes = std::fs::read(output.join("last.safetensors")).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let views = tensors.tensors().into_iter();
    let mut all: Vec<(String, Vec<u8>)> = views.map(|(name, view)| (name, view.data().to_vec())).collect();
    all.sort();
    all
}
