//! The machine's part of the verdict: enough to see whether it was busy while the GPU was not.

use super::{Distribution, HostVerdict};
use flatout_record::HostSample;

#[derive(Clone, Debug, Default)]
pub struct HostGatherer {
    cpu: Distribution,
    iowait: Distribution,
    disk_busy: Distribution,
    disk_read: Mean,
    memory_peak: Option<f64>,
}

/// A mean over time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mean {
    sum: f64,
    seconds: f64,
}

impl Mean {
    pub fn add(&mut self, value: Option<f64>, seconds: f64) {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.sum += value * seconds;
            self.seconds += seconds;
        }
    }

    pub fn get(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.sum / self.seconds)
    }

    pub fn seconds(&self) -> f64 {
        self.seconds
    }
}

impl HostGatherer {
    pub fn add(&mut self, seconds: f64, host: &HostSample) {
        let parts = [
            (&mut self.cpu, host.cpu_util),
            (&mut self.iowait, host.iowait),
            (&mut self.disk_busy, host.disk_busy),
        ];
        for (distribution, value) in parts {
            if let Some(value) = value {
                distribution.add(value, seconds);
            }
        }
        self.disk_read.add(host.disk_read_bytes_s, seconds);
        if let (Some(total), Some(available)) = (host.mem_total_bytes, host.mem_available_bytes)
            && total > 0
        {
            let used = 1.0 - available.min(total) as f64 / total as f64;
            self.memory_peak = Some(self.memory_peak.map_or(used, |peak| peak.max(used)));
        }
    }

    pub fn verdict(&self) -> HostVerdict {
        HostVerdict {
            cpu: self.cpu.spread(),
            iowait_mean: self.iowait.mean(),
            memory_peak: self.memory_peak,
            disk_read_mean_bytes_s: self.disk_read.get(),
            disk_busy_mean: self.disk_busy.mean(),
        }
    }
}
