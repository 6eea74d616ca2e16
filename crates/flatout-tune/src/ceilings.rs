//! Measured ceilings held against the vendor's figures, and the card's state while it was under load.

use crate::gpus::Figures;
use flatout_core::{Message, message, units};
use flatout_record::Sample;
use flatout_telemetry::{Sampler, SamplerOptions};
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// What a healthy card reaches of its vendor's figures: products lose to power and clocks, copies count both ways.
const PRODUCTS: f64 = 0.6;
const MEMORY: f64 = 0.75;

/// A measured number beside the vendor's.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    pub vendor: f64,
    pub share: f64,
    /// Below what a healthy card reaches.
    pub slow: bool,
}

/// `what` is the end of a ceiling's id: `f32`, `tf32`, `bf16`, `f16`, `memory`. Values in TFLOP/s and GB/s.
pub fn compare(figures: &Figures, what: &str, value: f64) -> Option<Compared> {
    let (vendor, healthy) = match what {
        "f32" => (figures.f32?, PRODUCTS),
        "tf32" => (figures.tf32?, PRODUCTS),
        "bf16" => (figures.bf16?, PRODUCTS),
        "f16" => (figures.f16?, PRODUCTS),
        "memory" => (figures.bandwidth_gb_s, MEMORY),
        _ => return None,
    };
    let share = value / vendor;
    Some(Compared {
        vendor,
        share,
        slow: share < healthy,
    })
}

/// What was seen of the GPUs while something ran.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Load {
    pub temp_max_c: Option<f64>,
    pub power_max_w: Option<f64>,
    pub sm_clock_min_mhz: Option<f64>,
    /// Why clocks were held back; `idle` does not count.
    pub throttle: BTreeSet<String>,
}

impl Load {
    fn see(&mut self, sample: &Sample) {
        for gpu in sample.gpus.values() {
            let larger = |a: Option<f64>, b: Option<f64>| a.into_iter().chain(b).reduce(f64::max);
            self.temp_max_c = larger(self.temp_max_c, gpu.temp_c);
            self.power_max_w = larger(self.power_max_w, gpu.power_w);
            if gpu.util.is_some_and(|util| util > 0.5) {
                self.sm_clock_min_mhz = self
                    .sm_clock_min_mhz
                    .into_iter()
                    .chain(gpu.sm_clock_mhz)
                    .reduce(f64::min);
            }
            let reasons = gpu
                .throttle
                .iter()
                .flatten()
                .filter(|reason| reason.as_str() != "idle");
            self.throttle.extend(reasons.cloned());
        }
    }

    /// In words, when clocks were held back.
    pub fn words(&self) -> Option<Message> {
        if self.throttle.is_empty() {
            return None;
        }
        let reasons = self.throttle.iter().cloned().collect::<Vec<_>>().join(", ");
        let temperature = self.temp_max_c.map_or("?".into(), units::significant);
        Some(message!(
            en: "clocks were throttled under load: {reasons} (up to {temperature} °C)",
            zh: "负载下频率受限：{reasons}（最高 {temperature} °C）"
        ))
    }
}

/// Watches the GPUs until it is asked what it saw.
pub struct Watch {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Load>>,
}

impl Watch {
    pub fn begin() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&stop);
        let options = SamplerOptions {
            interval: Duration::from_millis(200),
            host: false,
            ..SamplerOptions::default()
        };
        let thread = std::thread::Builder::new()
            .name("flatout-watch".into())
            .spawn(move || {
                let mut load = Load::default();
                let Ok(mut sampler) = Sampler::start(&options) else {
                    return load;
                };
                while !theirs.load(Ordering::Relaxed) {
                    load.see(&sampler.wait().sample);
                }
                load
            });
        Self {
            stop,
            thread: thread.ok(),
        }
    }

    pub fn end(mut self) -> Load {
        self.stop.store(true, Ordering::Relaxed);
        self.thread
            .take()
            .and_then(|thread| thread.join().ok())
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpus;
    use flatout_record::GpuSample;

    #[test]
    fn reports_a_slow_gpu() {
        let figures = gpus::find("NVIDIA H200").unwrap();
        assert!(!compare(figures, "bf16", 780.0).unwrap().slow);
        assert!(compare(figures, "bf16", 300.0).unwrap().slow);
        assert!(compare(figures, "memory", 2000.0).unwrap().slow);
        assert!(compare(figures, "launch", 3.0).is_none());
        assert!(compare(gpus::find("V100").unwrap(), "bf16", 3.0).is_none());
    }

    #[test]
    fn idling_is_not_throttling() {
        let mut load = Load::default();
        let gpu = |reasons: &[&str]| GpuSample {
            throttle: Some(reasons.iter().map(|r| (*r).to_owned()).collect()),
            ..GpuSample::default()
        };
        load.see(&Sample {
            gpus: [(0, gpu(&["idle"]))].into(),
            ..Sample::default()
        });
        assert!(load.words().is_none());
        load.see(&Sample {
            gpus: [(0, gpu(&["power-cap"]))].into(),
            ..Sample::default()
        });
        assert!(load.words().unwrap().en.contains("power-cap"));
    }
}
