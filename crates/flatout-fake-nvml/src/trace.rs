//! What the GPUs do over time: frames of values, small, in memory.

pub mod built_in;
pub mod recording;

use crate::fault::Field;

#[derive(Clone, Debug, Default)]
pub struct Trace {
    pub gpus: Vec<GpuTrace>,
    /// Seconds after which it begins anew.
    pub duration_s: f64,
    pub driver: String,
    /// As `13000` for 13.0.
    pub cuda: i32,
}

#[derive(Clone, Debug, Default)]
pub struct GpuTrace {
    pub name: String,
    pub uuid: String,
    pub mem_total_bytes: u64,
    pub compute_capability: (i32, i32),
    pub sm_clock_max_mhz: u32,
    pub mem_clock_max_mhz: u32,
    pub temp_slowdown_c: u32,
    pub temp_shutdown_c: u32,
    pub pcie_generation: u32,
    pub pcie_width: u32,
    pub gpm: bool,
    /// This GPU is a copy that runs so much ahead of its original.
    pub shift_s: f64,
    /// In order of time.
    pub frames: Vec<Frame>,
}

/// One moment. `None` is what the recording did not know.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    pub t: f64,
    pub util: Option<f32>,
    pub mem_util: Option<f32>,
    pub util_fine: Vec<f32>,
    pub mem_used_bytes: Option<u64>,
    pub power_w: Option<f32>,
    pub power_limit_w: Option<f32>,
    /// Joules since the trace's start.
    pub energy_j: Option<f64>,
    pub temp_c: Option<f32>,
    pub sm_clock_mhz: Option<f32>,
    pub mem_clock_mhz: Option<f32>,
    pub throttle: Option<u64>,
    pub pcie_rx_bytes_s: Option<f32>,
    pub pcie_tx_bytes_s: Option<f32>,
    pub processes: Vec<Process>,
    pub gpm: Gpm,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Gpm {
    pub sm: Option<f32>,
    pub occupancy: Option<f32>,
    pub tensor: Option<f32>,
    pub dram: Option<f32>,
    pub fp16: Option<f32>,
    pub fp32: Option<f32>,
    pub nvlink_rx_bytes_s: Option<f32>,
    pub nvlink_tx_bytes_s: Option<f32>,
}

#[derive(Clone, Debug, Default)]
pub struct Process {
    pub pid: u32,
    pub mem_bytes: Option<u64>,
    pub sm_util: Option<f32>,
    pub command: Option<String>,
}

impl GpuTrace {
    /// The newest frame at that time.
    pub fn at(&self, t: f64) -> Option<&Frame> {
        let next = self.frames.partition_point(|frame| frame.t <= t);
        self.frames.get(next.saturating_sub(1))
    }

    /// Whether the trace tells the field at all: what it never tells, this GPU does not support.
    pub fn tells(&self, field: Field) -> bool {
        let any = |known: fn(&Frame) -> bool| self.frames.iter().any(known);
        match field {
            Field::Util | Field::Samples => any(|frame| frame.util.is_some()),
            Field::Memory => any(|frame| frame.mem_used_bytes.is_some()),
            Field::Power => any(|frame| frame.power_w.is_some()),
            Field::Energy => any(|frame| frame.energy_j.is_some()),
            Field::Temperature => any(|frame| frame.temp_c.is_some()),
            Field::Clocks => any(|frame| frame.sm_clock_mhz.is_some()),
            Field::Throttle => any(|frame| frame.throttle.is_some()),
            Field::Pcie => any(|frame| frame.pcie_rx_bytes_s.is_some()),
            Field::Gpm => self.gpm,
            Field::Processes | Field::ProcessShare | Field::Details => true,
        }
    }
}

impl Trace {
    /// As many GPUs as asked for: those there are again and again, each copy shifted in time and with an identity of its own.
    pub fn with_gpus(mut self, count: usize) -> Self {
        let originals = self.gpus.clone();
        if originals.is_empty() {
            return self;
        }
        self.gpus = (0..count)
            .map(|index| {
                let mut gpu = originals[index % originals.len()].clone();
                let copy = index / originals.len();
                if copy > 0 {
                    gpu.shift_s = copy as f64 * 1.7;
                    gpu.uuid = format!("GPU-{index:08x}-fa4e-fa4e-fa4e-{index:012x}");
                }
                gpu
            })
            .collect();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_frame_counts_and_copies_have_names_of_their_own() {
        let gpu = GpuTrace {
            frames: [0.0, 1.0, 2.0]
                .map(|t| Frame {
                    t,
                    ..Frame::default()
                })
                .into(),
            ..GpuTrace::default()
        };
        let t = |at| gpu.at(at).unwrap().t;
        assert_eq!((t(0.0), t(0.9), t(1.0), t(99.0)), (0.0, 0.0, 1.0, 2.0));
        let eight = built_in::trace().with_gpus(8);
        let mut uuids: Vec<_> = eight.gpus.iter().map(|gpu| gpu.uuid.clone()).collect();
        uuids.sort();
        uuids.dedup();
        assert_eq!(uuids.len(), 8);
    }
}
