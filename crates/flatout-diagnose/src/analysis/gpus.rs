//! Each GPU over the window.

use flatout_core::stats::mean;
use flatout_record::{GpuInfo, GpuSample, RunData, Sample};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default)]
pub struct Gpu {
    pub index: u32,
    pub info: GpuInfo,
    /// Mean share of time in which any kernel ran.
    pub util: Option<f64>,
    pub power_w: Option<f64>,
    pub power_limit_w: Option<f64>,
    pub sm_activity: Option<f64>,
    pub tensor_activity: Option<f64>,
    pub temp_max_c: Option<f64>,
    /// Bytes used at each tick: seconds, bytes.
    pub mem_used: Vec<(f64, f64)>,
    pub mem_total_bytes: Option<f64>,
    /// Share of the ticks with each throttle reason.
    pub throttle: BTreeMap<String, f64>,
    /// Processes on it that are not of the run; `None` when that cannot be told.
    pub foreign: Option<BTreeSet<u32>>,
    pub foreign_mem_bytes: f64,
    /// Whether the driver lists processes on it, none of which is of the run.
    pub only_others: bool,
}

impl Gpu {
    pub fn mem_peak_share(&self) -> Option<f64> {
        let peak = self
            .mem_used
            .iter()
            .map(|(_, bytes)| *bytes)
            .max_by(f64::total_cmp)?;
        self.mem_total_bytes
            .filter(|total| *total > 0.0)
            .map(|total| peak / total)
    }

    /// Share of the ticks with one of the reasons.
    pub fn throttled(&self, reason: impl Fn(&str) -> bool) -> f64 {
        self.throttle
            .iter()
            .filter(|(name, _)| reason(name))
            .map(|(_, share)| *share)
            .fold(0.0, f64::max)
    }
}

pub fn digest(data: &RunData, (start_s, end_s): (f64, f64)) -> Vec<Gpu> {
    let samples: Vec<&Sample> = data
        .samples
        .iter()
        .filter(|sample| sample.t > start_s && sample.t <= end_s)
        .collect();
    let mut indices: BTreeSet<u32> = data.info.gpus.keys().copied().collect();
    indices.extend(samples.iter().flat_map(|sample| sample.gpus.keys().copied()));
    indices
        .into_iter()
        .map(|index| one(data, index, &samples))
        .collect()
}

fn one(data: &RunData, index: u32, samples: &[&Sample]) -> Gpu {
    let seen: Vec<(&Sample, &GpuSample)> = samples
        .iter()
        .filter_map(|sample| Some((*sample, sample.gpus.get(&index)?)))
        .collect();
    let values = |value: fn(&GpuSample) -> Option<f64>| -> Vec<f64> {
        seen.iter().filter_map(|(_, gpu)| value(gpu)).collect()
    };
    let average = |value| {
        let values = values(value);
        (!values.is_empty()).then(|| mean(&values))
    };
    let info = data.info.gpus.get(&index).cloned().unwrap_or_default();
    let total_of = |gpu: &GpuSample| Some((gpu.mem_used_bytes? + gpu.mem_free_bytes?) as f64);
    let mem_total_bytes = info
        .mem_total_bytes
        .map(|bytes| bytes as f64)
        .or_else(|| seen.iter().find_map(|(_, gpu)| total_of(gpu)));
    let (foreign, foreign_mem_bytes) = foreign(&seen);
    Gpu {
        index,
        util: average(|gpu| gpu.util),
        power_w: average(|gpu| gpu.power_w),
        power_limit_w: average(|gpu| gpu.power_limit_w),
        sm_activity: average(|gpu| gpu.sm_activity),
        tensor_activity: average(|gpu| gpu.tensor_activity),
        temp_max_c: values(|gpu| gpu.temp_c).into_iter().max_by(f64::total_cmp),
        mem_used: seen
            .iter()
            .filter_map(|(sample, gpu)| Some((sample.t, gpu.mem_used_bytes? as f64)))
            .collect(),
        mem_total_bytes,
        throttle: throttle(&seen),
        foreign,
        foreign_mem_bytes,
        only_others: only_others(&seen),
        info,
    }
}

fn throttle(seen: &[(&Sample, &GpuSample)]) -> BTreeMap<String, f64> {
    let known: Vec<&Vec<String>> = seen.iter().filter_map(|(_, gpu)| gpu.throttle.as_ref()).collect();
    let mut shares = BTreeMap::new();
    for reasons in &known {
        for reason in reasons.iter() {
            *shares.entry(reason.clone()).or_insert(0.0) += 1.0 / known.len() as f64;
        }
    }
    shares
}

fn only_others(seen: &[(&Sample, &GpuSample)]) -> bool {
    let listed = seen
        .iter()
        .filter_map(|(sample, gpu)| Some((*sample, gpu.processes.as_ref()?)));
    let mut pids = listed.flat_map(|(sample, processes)| {
        processes
            .iter()
            .map(|process| sample.processes.contains_key(&process.pid))
    });
    pids.next().is_some_and(|ours| !ours && pids.all(|ours| !ours))
}

/// Processes seen on the GPU on half of the ticks that are not of the run's tree. In a container the driver may name
/// processes by the host's numbers: when none of ours is among them, nothing can be told.
fn foreign(seen: &[(&Sample, &GpuSample)]) -> (Option<BTreeSet<u32>>, f64) {
    let mut ticks: BTreeMap<u32, (usize, f64)> = BTreeMap::new();
    let (mut known, mut ours_seen) = (0usize, false);
    for (sample, gpu) in seen {
        let Some(processes) = &gpu.processes else { continue };
        known += 1;
        for process in processes {
            if sample.processes.contains_key(&process.pid) {
                ours_seen = true;
            } else {
                let entry = ticks.entry(process.pid).or_default();
                entry.0 += 1;
                entry.1 = process.mem_bytes.unwrap_or(0) as f64;
            }
        }
    }
    if !ours_seen {
        return (None, 0.0);
    }
    let lasting: BTreeMap<u32, f64> = ticks
        .into_iter()
        .filter(|(_, (count, _))| count * 2 >= known)
        .map(|(pid, (_, bytes))| (pid, bytes))
        .collect();
    (Some(lasting.keys().copied().collect()), lasting.values().sum())
}
