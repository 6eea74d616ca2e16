//! The processes on a GPU: their memory, their share of the SMs, their command lines.

use crate::sources::fields::Fields;
use crate::sources::process_tree::member;
use flatout_record::GpuProcess;
use nvml_wrapper::Device;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use std::collections::BTreeMap;

const COMPUTE: &str = "compute_processes";
const GRAPHICS: &str = "graphics_processes";
const SHARES: &str = "process_sm_share";
const NAME_BYTES: usize = 256;

#[derive(Default)]
pub struct Processes {
    commands: BTreeMap<u32, Option<String>>,
    last_seen: u64,
}

impl Processes {
    /// `None` when the driver does not tell; an empty list when there are none.
    pub fn read(&mut self, device: &Device<'_>, fields: &mut Fields) -> Option<Vec<GpuProcess>> {
        let compute = fields.ask(COMPUTE, || {
            with_older_name(device.running_compute_processes(), || {
                device.running_compute_processes_v2()
            })
        });
        let graphics = fields.ask(GRAPHICS, || {
            with_older_name(device.running_graphics_processes(), || {
                device.running_graphics_processes_v2()
            })
        });
        if compute.is_none() && graphics.is_none() {
            return None;
        }
        let mut memory: BTreeMap<u32, Option<u64>> = BTreeMap::new();
        for process in compute.into_iter().chain(graphics).flatten() {
            let bytes = match process.used_gpu_memory {
                UsedGpuMemory::Used(bytes) => Some(bytes),
                UsedGpuMemory::Unavailable => None,
            };
            let known = memory.entry(process.pid).or_insert(bytes);
            *known = (*known).max(bytes);
        }
        let shares = self.shares(device, fields);
        self.commands.retain(|pid, _| memory.contains_key(pid));
        let nvml = device.nvml();
        Some(
            memory
                .into_iter()
                .map(|(pid, mem_bytes)| GpuProcess {
                    pid,
                    mem_bytes,
                    sm_util: shares.get(&pid).copied(),
                    // In a container the process may be in another namespace, where only the driver knows its name.
                    command: self
                        .commands
                        .entry(pid)
                        .or_insert_with(|| {
                            member::command(pid).or_else(|| nvml.sys_process_name(pid, NAME_BYTES).ok())
                        })
                        .clone(),
                })
                .collect(),
        )
    }

    /// The mean SM share of each process since the last call.
    fn shares(&mut self, device: &Device<'_>, fields: &mut Fields) -> BTreeMap<u32, f64> {
        let last_seen = self.last_seen;
        let samples = fields
            .ask(SHARES, || device.process_utilization_stats(last_seen))
            .unwrap_or_default();
        let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
        for sample in samples {
            self.last_seen = self.last_seen.max(sample.timestamp);
            if let Some(share) = fields.share(SHARES, f64::from(sample.sm_util)) {
                let sum = sums.entry(sample.pid).or_default();
                *sum = (sum.0 + share, sum.1 + 1.0);
            }
        }
        sums.into_iter()
            .map(|(pid, (sum, count))| (pid, sum / count))
            .collect()
    }
}

/// Drivers before 2021 have the second name only.
fn with_older_name(
    newest: Result<Vec<ProcessInfo>, NvmlError>,
    older: impl FnOnce() -> Result<Vec<ProcessInfo>, NvmlError>,
) -> Result<Vec<ProcessInfo>, NvmlError> {
    match newest {
        Err(NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound) => older(),
        answer => answer,
    }
}
