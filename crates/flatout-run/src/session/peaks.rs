//! The GPU's peaks, for the model's FLOPs utilization: the vendor's figures, and those that `flatout bench` measured here.

use flatout_record::{Fact, RunInfo};
use flatout_tune::gpus;
use serde_json::Value;
use std::path::{Path, PathBuf};

const PRECISIONS: [&str; 4] = ["f32", "tf32", "bf16", "f16"];

/// A fact for each known peak, in TFLOP/s; none where the GPUs differ or are not known.
pub fn facts(info: &RunInfo, t: f64) -> Vec<Fact> {
    let mut names = info.gpus.values().map(|gpu| gpu.name.as_deref());
    let Some(name) = names.next().flatten() else {
        return Vec::new();
    };
    if names.any(|other| other != Some(name)) {
        return Vec::new();
    }
    let measured = measured(&home().join("machine.json"), name);
    let known = PRECISIONS.iter().flat_map(|precision| {
        let vendor = vendor(name, precision).map(|value| (format!("peak.vendor.{precision}"), value));
        let here = measured
            .iter()
            .find(|(id, _)| id == precision)
            .map(|(_, value)| (format!("peak.measured.{precision}"), *value));
        vendor.into_iter().chain(here)
    });
    let fact = |(key, value): (String, f64)| Fact {
        t,
        key,
        value: Value::from(value),
        scope: None,
        place: None,
    };
    known.map(fact).collect()
}

fn vendor(name: &str, precision: &str) -> Option<f64> {
    let figures = gpus::find(name)?;
    match precision {
        "f32" => figures.f32,
        "tf32" => figures.tf32,
        "bf16" => figures.bf16,
        _ => figures.f16,
    }
}

/// Where `flatout bench` keeps its result.
fn home() -> PathBuf {
    std::env::var_os("FLATOUT_HOME").map_or_else(|| PathBuf::from(".flatout"), PathBuf::from)
}

/// The first GPU's matmul rates, where the file is about a GPU of this name.
fn measured(path: &Path, name: &str) -> Vec<(String, f64)> {
    let read = || -> Option<Vec<(String, f64)>> {
        let text = std::fs::read_to_string(path).ok()?;
        let whole: Value = serde_json::from_str(&text).ok()?;
        let same = whole.get("gpus")?.to_string().contains(name);
        let rows = whole.get("ceilings")?.as_array().filter(|_| same)?;
        let one = |row: &Value| {
            let id = row.get("id")?.as_str()?.strip_prefix("gpu.0.")?.to_owned();
            Some((id, row.get("value")?.as_f64()?))
        };
        Some(rows.iter().filter_map(one).collect())
    };
    read().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_record::GpuInfo;

    fn machine(names: &[&str]) -> RunInfo {
        let gpu = |name: &&str| GpuInfo {
            name: Some((*name).to_owned()),
            ..GpuInfo::default()
        };
        RunInfo {
            gpus: (0..).zip(names.iter().map(gpu)).collect(),
            ..RunInfo::default()
        }
    }

    #[test]
    fn the_vendors_peaks_of_a_known_gpu() {
        let known = facts(&machine(&["NVIDIA H200"]), 1.0);
        assert!(
            known
                .iter()
                .any(|fact| fact.key == "peak.vendor.bf16" && fact.value.as_f64() > Some(500.0))
        );
        assert!(facts(&machine(&["Voodoo 2"]), 1.0).is_empty());
        assert!(facts(&machine(&["NVIDIA H200", "NVIDIA L4"]), 1.0).is_empty());
        assert!(facts(&machine(&[]), 1.0).is_empty());
    }

    #[test]
    fn the_measured_peaks_of_this_gpu() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("machine.json");
        let text = r#"{"gpus": ["NVIDIA H200"], "ceilings": [
            {"id": "cpu.f32", "value": 3.0}, {"id": "gpu.0.bf16", "value": 771.0}, {"id": "gpu.1.bf16", "value": 1.0}]}"#;
        std::fs::write(&path, text).unwrap();
        assert_eq!(measured(&path, "NVIDIA H200"), [("bf16".to_owned(), 771.0)]);
        assert!(measured(&path, "NVIDIA L4").is_empty());
        std::fs::write(&path, "not JSON").unwrap();
        assert!(measured(&path, "NVIDIA H200").is_empty());
    }
}
