//! The machine over the window: CPUs, memory, disks, and the process tree of the run.

use flatout_core::stats::mean;
use flatout_record::{HostSample, RunData, Sample};

#[derive(Clone, Debug, Default)]
pub struct Host {
    /// Busy share of the CPUs the run may use.
    pub cpu_util: Option<f64>,
    pub iowait: Option<f64>,
    pub steal: Option<f64>,
    pub psi_io: Option<f64>,
    pub psi_cpu: Option<f64>,
    pub disk_busy: Option<f64>,
    pub disk_read_bytes_s: Option<f64>,
    pub swap_in_bytes_s: Option<f64>,
    /// The largest share of `/dev/shm` that was used.
    pub shm_used_share: Option<f64>,
    pub shm_total_bytes: Option<u64>,
    /// CPUs that the run's own processes used.
    pub tree_cpus: Option<f64>,
    /// The largest share of the memory that was used.
    pub memory_used: Option<f64>,
}

impl Host {
    pub fn new(data: &RunData, (start_s, end_s): (f64, f64)) -> Self {
        let samples: Vec<&Sample> = data
            .samples
            .iter()
            .filter(|sample| sample.t > start_s && sample.t <= end_s)
            .collect();
        let average = |value: fn(&HostSample) -> Option<f64>| {
            let values: Vec<f64> = samples.iter().filter_map(|sample| value(&sample.host)).collect();
            (!values.is_empty()).then(|| mean(&values))
        };
        let shm_share = |sample: &&Sample| {
            let total = sample.host.shm_total_bytes.filter(|total| *total > 0)?;
            Some(sample.host.shm_used_bytes? as f64 / total as f64)
        };
        let memory_share = |sample: &&Sample| {
            let total = sample.host.mem_total_bytes.filter(|total| *total > 0)?;
            Some(1.0 - sample.host.mem_available_bytes? as f64 / total as f64)
        };
        Self {
            cpu_util: average(|host| host.cpu_util),
            iowait: average(|host| host.iowait),
            steal: average(|host| host.steal),
            psi_io: average(|host| host.psi_io),
            psi_cpu: average(|host| host.psi_cpu),
            disk_busy: average(|host| host.disk_busy),
            disk_read_bytes_s: average(|host| host.disk_read_bytes_s),
            swap_in_bytes_s: average(|host| host.swap_in_bytes_s),
            shm_used_share: samples.iter().filter_map(shm_share).max_by(f64::total_cmp),
            shm_total_bytes: samples.iter().find_map(|sample| sample.host.shm_total_bytes),
            tree_cpus: tree_cpus(&samples),
            memory_used: samples.iter().filter_map(memory_share).max_by(f64::total_cmp),
        }
    }
}

fn tree_cpus(samples: &[&Sample]) -> Option<f64> {
    let sums: Vec<f64> = samples
        .iter()
        .filter(|sample| sample.processes.values().any(|process| process.cpus.is_some()))
        .map(|sample| sample.processes.values().filter_map(|process| process.cpus).sum())
        .collect();
    (!sums.is_empty()).then(|| mean(&sums))
}
