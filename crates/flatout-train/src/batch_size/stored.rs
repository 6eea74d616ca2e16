//! `batch.json` in the output folder: what was measured, for a rerun that must be the same to the bit. It counts only for the same
//! settings and as many samples.

use super::Batch;
use crate::Settings;
use flatout_core::error::FileError;
use flatout_core::files::write_atomically;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const SCHEMA: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Stored {
    schema: u32,
    phases: BTreeMap<String, Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    /// What it was measured for.
    of: String,
    #[serde(flatten)]
    batch: Batch,
}

fn describe(settings: &Settings, samples: usize) -> String {
    let Settings {
        model_type,
        hidden_size,
        num_layers,
        bidirectional,
        num_heads,
        kernel_size,
        sequence_length,
        device,
        amp,
        optimizer,
        keep_lr,
        gradient_accumulation_steps: parts,
        ..
    } = settings;
    let layers = num_layers.map_or_else(|| "auto".to_owned(), |layers| layers.to_string());
    format!(
        "{model_type} {hidden_size}x{layers}, bidirectional {bidirectional}, {num_heads} heads, kernel {kernel_size}, window {sequence_length}, {samples} samples, {device}, {amp:?}, {optimizer}, keep_lr {keep_lr}, {parts} parts"
    )
}

fn read(settings: &Settings) -> Option<Stored> {
    let bytes = std::fs::read(settings.output_dir.join("batch.json")).ok()?;
    serde_json::from_slice(&bytes)
        .ok()
        .filter(|stored: &Stored| stored.schema == SCHEMA)
}

pub fn load(settings: &Settings, phase: &str, samples: usize) -> Option<Batch> {
    let entry = read(settings)?.phases.remove(phase)?;
    (entry.of == describe(settings, samples)).then_some(entry.batch)
}

pub fn save(settings: &Settings, phase: &str, samples: usize, batch: Batch) -> Result<(), FileError> {
    let mut stored = read(settings).unwrap_or(Stored {
        schema: SCHEMA,
        phases: BTreeMap::new(),
    });
    let of = describe(settings, samples);
    stored.phases.insert(phase.to_owned(), Entry { of, batch });
    let text = serde_json::to_string_pretty(&stored).unwrap_or_default() + "\n";
    write_atomically(&settings.output_dir.join("batch.json"), text.as_bytes())
}
