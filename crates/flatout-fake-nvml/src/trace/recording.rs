//! A run record as a trace: what flatout recorded on a real machine is played back to the byte.

use super::{Frame, Gpm, GpuTrace, Process, Trace};
use flatout_record::{GpuInfo, GpuProcess, GpuSample, Record, RunInfo, throttle_bits};
use std::collections::BTreeMap;
use std::path::Path;

/// Linux gives no process a number above this, so that a recorded process is never taken for one of this machine.
const HIGHEST_PID: u32 = 4_194_304;

pub fn load(folder: &Path) -> Result<Trace, String> {
    let record = Record::open(folder).map_err(|error| error.to_string())?;
    let mut gpus: BTreeMap<u32, GpuTrace> = BTreeMap::new();
    let mut duration_s = 0.0f64;
    for sample in record.samples() {
        duration_s = duration_s.max(sample.t);
        for (index, gpu) in &sample.gpus {
            let trace = gpus
                .entry(*index)
                .or_insert_with(|| start(*index, &record.info, gpu));
            trace.gpm |= gpu.sm_activity.is_some();
            trace.frames.push(frame(sample.t, gpu));
        }
    }
    if gpus.is_empty() {
        return Err(format!("`{}` has no sample of a GPU", folder.display()));
    }
    let version = |name: &str| record.info.versions.get(name).cloned();
    Ok(Trace {
        gpus: gpus.into_values().collect(),
        duration_s: duration_s + record.info.interval_s.unwrap_or(1.0),
        driver: version("driver").unwrap_or_else(|| "0.0".into()),
        cuda: version("cuda").and_then(|text| cuda_number(&text)).unwrap_or(0),
    })
}

fn start(index: u32, info: &RunInfo, first: &GpuSample) -> GpuTrace {
    let unknown = GpuInfo::default();
    let known = info.gpus.get(&index).unwrap_or(&unknown);
    let whole = |value: Option<f64>| value.unwrap_or(0.0) as u32;
    let (major, minor) = known.compute_capability.unwrap_or((0, 0));
    GpuTrace {
        name: known.name.clone().unwrap_or_else(|| "a recorded GPU".into()),
        uuid: known
            .uuid
            .clone()
            .unwrap_or_else(|| format!("GPU-{index:08x}-fa4e-fa4e-fa4e-{index:012x}")),
        mem_total_bytes: known
            .mem_total_bytes
            .unwrap_or_else(|| first.mem_used_bytes.unwrap_or(0) + first.mem_free_bytes.unwrap_or(0)),
        compute_capability: (major.cast_signed(), minor.cast_signed()),
        sm_clock_max_mhz: whole(known.sm_clock_max_mhz),
        mem_clock_max_mhz: whole(known.mem_clock_max_mhz),
        temp_slowdown_c: whole(known.temp_slowdown_c),
        temp_shutdown_c: whole(known.temp_shutdown_c),
        pcie_generation: known.pcie_generation_max.unwrap_or(0),
        pcie_width: known.pcie_width_max.unwrap_or(0),
        gpm: false,
        shift_s: 0.0,
        frames: Vec::new(),
    }
}

fn frame(t: f64, gpu: &GpuSample) -> Frame {
    let small = |value: Option<f64>| value.map(|value| value as f32);
    Frame {
        t,
        util: small(gpu.util),
        mem_util: small(gpu.mem_util),
        util_fine: gpu.util_fine.iter().flatten().map(|util| *util as f32).collect(),
        mem_used_bytes: gpu.mem_used_bytes,
        power_w: small(gpu.power_w),
        power_limit_w: small(gpu.power_limit_w),
        energy_j: gpu.energy_j,
        temp_c: small(gpu.temp_c),
        sm_clock_mhz: small(gpu.sm_clock_mhz),
        mem_clock_mhz: small(gpu.mem_clock_mhz),
        throttle: gpu.throttle.as_deref().map(throttle_bits),
        pcie_rx_bytes_s: small(gpu.pcie_rx_bytes_s),
        pcie_tx_bytes_s: small(gpu.pcie_tx_bytes_s),
        processes: gpu.processes.iter().flatten().map(process).collect(),
        gpm: Gpm {
            sm: small(gpu.sm_activity),
            occupancy: small(gpu.sm_occupancy),
            tensor: small(gpu.tensor_activity),
            dram: small(gpu.dram_activity),
            fp16: small(gpu.fp16_activity),
            fp32: small(gpu.fp32_activity),
            nvlink_rx_bytes_s: small(gpu.nvlink_rx_bytes_s),
            nvlink_tx_bytes_s: small(gpu.nvlink_tx_bytes_s),
        },
    }
}

fn process(process: &GpuProcess) -> Process {
    Process {
        pid: HIGHEST_PID.saturating_add(process.pid),
        mem_bytes: process.mem_bytes,
        sm_util: process.sm_util.map(|share| share as f32),
        command: process.command.clone(),
    }
}

/// `13.0` as 13000.
fn cuda_number(text: &str) -> Option<i32> {
    let (major, minor) = text.split_once('.')?;
    Some(major.parse::<i32>().ok()? * 1000 + minor.parse::<i32>().ok()? * 10)
}
