//! The trace that is played without a recording. GPU 0 trains well and stops every 20 s for an evaluation; GPU 1 starves: its
//! loader feeds it in bursts. The numbers are made up in the range of a real board, and the same every time.

use super::{Frame, Gpm, GpuTrace, Process, Trace};

const STEP_S: f64 = 0.1;
const DURATION_S: f64 = 60.0;
const MEM_TOTAL_BYTES: u64 = 143_771 << 20;
const POWER_LIMIT_W: f32 = 700.0;
const IDLE_REASON: u64 = 0x1;
const POWER_CAP_REASON: u64 = 0x4;

pub fn trace() -> Trace {
    Trace {
        gpus: vec![gpu(0, steady_with_evaluations), gpu(1, starved)],
        duration_s: DURATION_S,
        driver: "580.95.05".into(),
        cuda: 13_000,
    }
}

/// Load from 0 to 1, and the memory the program holds.
type Program = fn(f64) -> (f32, u64);

/// 97% with a dip to 4% for 3 s in every 20.
fn steady_with_evaluations(t: f64) -> (f32, u64) {
    let load = if t % 20.0 >= 17.0 { 0.04 } else { 0.97 };
    (load, 61_440 << 20)
}

/// 0.6 s of work, 1.4 s of waiting.
fn starved(t: f64) -> (f32, u64) {
    let load = if t % 2.0 < 0.6 { 0.62 } else { 0.0 };
    (load, 2_867 << 20)
}

fn gpu(index: u32, program: Program) -> GpuTrace {
    let steps = (DURATION_S / STEP_S) as u32;
    let mut energy_j = 0.0;
    let frames = (0..steps)
        .map(|step| {
            let t = f64::from(step) * STEP_S;
            let (load, mem_used_bytes) = program(t);
            let load = (load + noise(index, step) * 0.03 * load.sqrt()).clamp(0.0, 1.0);
            let power_w = 75.0 + load * 590.0;
            energy_j += f64::from(power_w) * STEP_S;
            frame(t, load, mem_used_bytes, power_w, energy_j)
        })
        .collect();
    GpuTrace {
        name: "NVIDIA H200 (flatout's stand-in)".into(),
        uuid: format!("GPU-0000000{index}-fa4e-fa4e-fa4e-00000000000{index}"),
        mem_total_bytes: MEM_TOTAL_BYTES,
        compute_capability: (9, 0),
        sm_clock_max_mhz: 1980,
        mem_clock_max_mhz: 3201,
        temp_slowdown_c: 90,
        temp_shutdown_c: 95,
        pcie_generation: 5,
        pcie_width: 16,
        gpm: true,
        shift_s: 0.0,
        frames,
    }
}

fn frame(t: f64, load: f32, mem_used_bytes: u64, power_w: f32, energy_j: f64) -> Frame {
    let busy = load > 0.01;
    Frame {
        t,
        util: Some(load),
        mem_util: Some(load * 0.55),
        util_fine: Vec::new(),
        mem_used_bytes: Some(mem_used_bytes),
        power_w: Some(power_w),
        power_limit_w: Some(POWER_LIMIT_W),
        energy_j: Some(energy_j),
        temp_c: Some((34.0 + load * 31.0).round()),
        sm_clock_mhz: Some(if busy { 1980.0 - load * 120.0 } else { 345.0 }),
        mem_clock_mhz: Some(3201.0),
        throttle: Some(match load {
            load if load > 0.96 => POWER_CAP_REASON,
            _ if busy => 0,
            _ => IDLE_REASON,
        }),
        pcie_rx_bytes_s: Some(load * 3.2e9),
        pcie_tx_bytes_s: Some(load * 2.1e8),
        processes: vec![Process {
            // The process that loaded the library stands for the program that trains: it is there to be looked at.
            pid: std::process::id(),
            mem_bytes: Some(mem_used_bytes),
            sm_util: Some(load),
            command: Some("python train.py".into()),
        }],
        gpm: Gpm {
            sm: Some(load * 0.86),
            occupancy: Some(load * 0.41),
            tensor: Some(load * 0.37),
            dram: Some(load * 0.48),
            fp16: Some(load * 0.06),
            fp32: Some(load * 0.11),
            nvlink_rx_bytes_s: Some(0.0),
            nvlink_tx_bytes_s: Some(0.0),
        },
    }
}

/// From -1 to 1, looking random, the same every time.
fn noise(index: u32, step: u32) -> f32 {
    let mut bits = (index.wrapping_mul(0x9E37_79B9) ^ step).wrapping_mul(0x85EB_CA6B);
    bits ^= bits >> 13;
    bits = bits.wrapping_mul(0xC2B2_AE35);
    bits ^= bits >> 16;
    f32::from(bits as u16) / 32_767.5 - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_gpu_trains_with_dips_and_one_starves() {
        let trace = trace();
        let mean = |gpu: &GpuTrace| {
            gpu.frames.iter().filter_map(|frame| frame.util).sum::<f32>() / gpu.frames.len() as f32
        };
        assert!((0.7..0.9).contains(&mean(&trace.gpus[0])));
        assert!((0.1..0.3).contains(&mean(&trace.gpus[1])));
        let all_known = |frame: &Frame| frame.util.is_some_and(|util| (0.0..=1.0).contains(&util));
        assert!(trace.gpus.iter().all(|gpu| gpu.frames.iter().all(all_known)));
    }
}
