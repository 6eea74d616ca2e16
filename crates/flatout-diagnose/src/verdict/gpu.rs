//! One GPU's part of the verdict.

use super::dips::DipDetector;
use super::host::Mean;
use super::{Distribution, Energy, GpuVerdict, Memory, Power, Temperature, Utilisation, mark, note};
use flatout_record::{GpuInfo, GpuSample};
use std::collections::BTreeMap;

/// A foreign record may hold any number of reasons; ours has about ten.
const MOST_REASONS: usize = 32;

#[derive(Clone, Debug)]
pub struct GpuGatherer {
    utilisation: Distribution,
    dips: DipDetector,
    sm: Mean,
    tensor: Mean,
    dram: Mean,
    /// SM activity while NVML says that the GPU is busy.
    sm_while_busy: Mean,
    power: Mean,
    power_max_w: Option<f64>,
    power_limit_w: Option<f64>,
    power_of_limit: Mean,
    memory_peak: Option<u64>,
    memory_total: Option<u64>,
    temperature: Mean,
    temperature_max: Option<f64>,
    energy: Counter,
    throttle_known: bool,
    throttle: BTreeMap<String, f64>,
}

/// What a counter went up by; a step down is a new start.
#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    last: Option<f64>,
    sum: f64,
    steps: u64,
}

impl Counter {
    fn add(&mut self, value: Option<f64>) {
        let Some(value) = value.filter(|value| value.is_finite()) else {
            return;
        };
        if let Some(last) = self.last.replace(value)
            && value >= last
        {
            self.sum += value - last;
            self.steps += 1;
        }
    }
}

impl GpuGatherer {
    pub fn new(interval_s: f64) -> Self {
        Self {
            utilisation: Distribution::default(),
            dips: DipDetector::new(interval_s),
            sm: Mean::default(),
            tensor: Mean::default(),
            dram: Mean::default(),
            sm_while_busy: Mean::default(),
            power: Mean::default(),
            power_max_w: None,
            power_limit_w: None,
            power_of_limit: Mean::default(),
            memory_peak: None,
            memory_total: None,
            temperature: Mean::default(),
            temperature_max: None,
            energy: Counter::default(),
            throttle_known: false,
            throttle: BTreeMap::new(),
        }
    }

    pub fn add(&mut self, t: f64, seconds: f64, gpu: &GpuSample) {
        if let Some(utilisation) = utilisation_of_tick(gpu) {
            self.utilisation.add(utilisation, seconds);
            self.dips.add(t, seconds, utilisation);
            if utilisation >= mark::UTILISATION_GOOD {
                self.sm_while_busy.add(gpu.sm_activity, seconds);
            }
        }
        self.sm.add(gpu.sm_activity, seconds);
        self.tensor.add(gpu.tensor_activity, seconds);
        self.dram.add(gpu.dram_activity, seconds);
        self.add_power(seconds, gpu);
        self.memory_peak = self.memory_peak.max(gpu.mem_used_bytes);
        if let (Some(used), Some(free)) = (gpu.mem_used_bytes, gpu.mem_free_bytes) {
            self.memory_total = Some(used.saturating_add(free));
        }
        self.temperature.add(gpu.temp_c, seconds);
        self.temperature_max = greater(self.temperature_max, gpu.temp_c);
        self.energy.add(gpu.energy_j);
        if let Some(reasons) = &gpu.throttle {
            self.throttle_known = true;
            for reason in reasons.iter().filter(|reason| *reason != mark::IDLE) {
                if let Some(sum) = self.throttle.get_mut(reason) {
                    *sum += seconds;
                } else if self.throttle.len() < MOST_REASONS {
                    self.throttle.insert(reason.clone(), seconds);
                }
            }
        }
    }

    fn add_power(&mut self, seconds: f64, gpu: &GpuSample) {
        self.power.add(gpu.power_w, seconds);
        self.power_max_w = greater(self.power_max_w, gpu.power_w);
        self.power_limit_w = gpu.power_limit_w.or(self.power_limit_w);
        let of_limit = gpu
            .power_w
            .zip(self.power_limit_w)
            .filter(|(_, limit)| *limit > 0.0);
        self.power_of_limit
            .add(of_limit.map(|(power, limit)| power / limit), seconds);
    }

    pub fn verdict(&self, info: Option<&GpuInfo>) -> GpuVerdict {
        let mut verdict = GpuVerdict {
            name: info.and_then(|info| info.name.clone()),
            utilisation: self.utilisation(),
            sm_activity: self.sm.get(),
            tensor_activity: self.tensor.get(),
            dram_activity: self.dram.get(),
            power: self.power(),
            memory: self.memory_peak.map(|peak_bytes| Memory {
                peak_bytes,
                total_bytes: info.and_then(|info| info.mem_total_bytes).or(self.memory_total),
            }),
            temperature: self
                .temperature
                .get()
                .zip(self.temperature_max)
                .map(|(mean_c, max_c)| Temperature {
                    mean_c,
                    max_c,
                    slowdown_c: info.and_then(|info| info.temp_slowdown_c),
                }),
            energy: self.energy(),
            throttle_known: self.throttle_known,
            throttle_s: self.throttle.clone(),
            marks: Vec::new(),
            notes: Vec::new(),
        };
        let known_s = self.utilisation.seconds().max(self.power.seconds());
        verdict.marks = mark::marks(&verdict, known_s, self.utilisation.count());
        let busy_share = self.sm_while_busy.seconds() / known_s.max(f64::MIN_POSITIVE);
        verdict.notes = note::notes(
            &verdict,
            self.sm_while_busy.get().map(|sm| (sm, busy_share)),
            known_s,
        );
        verdict
    }

    fn utilisation(&self) -> Option<Utilisation> {
        let below = |limit| self.utilisation.share_below(limit).unwrap_or(0.0);
        self.utilisation.spread().map(|spread| Utilisation {
            spread,
            below_10: below(0.10),
            below_50: below(0.50),
            below_85: below(mark::UTILISATION_GOOD),
            dips: self.dips.dips(),
        })
    }

    fn power(&self) -> Option<Power> {
        self.power
            .get()
            .zip(self.power_max_w)
            .map(|(mean_w, max_w)| Power {
                mean_w,
                max_w,
                limit_w: self.power_limit_w,
                of_limit: self.power_of_limit.get(),
            })
    }

    fn energy(&self) -> Option<Energy> {
        if self.energy.steps > 0 {
            return Some(Energy {
                joules: self.energy.sum,
                counted: true,
            });
        }
        let joules = self.power.get()? * self.power.seconds();
        Some(Energy {
            joules,
            counted: false,
        })
    }
}

/// The mean of what the driver buffered within the tick, where it gives that: one reading a second would be a lottery.
pub fn utilisation_of_tick(gpu: &GpuSample) -> Option<f64> {
    match gpu.util_fine.as_deref() {
        Some(fine) if !fine.is_empty() => Some(fine.iter().sum::<f64>() / fine.len() as f64),
        _ => gpu.util,
    }
    .filter(|value| value.is_finite())
}

fn greater(known: Option<f64>, value: Option<f64>) -> Option<f64> {
    match (known, value.filter(|value| value.is_finite())) {
        (Some(known), Some(value)) => Some(known.max(value)),
        (known, value) => known.or(value),
    }
}
