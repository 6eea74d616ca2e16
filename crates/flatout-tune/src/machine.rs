//! What this machine has, as far as advice and checks ask. Unknown stays unknown.

use crate::TuneError;
use crate::gpus::{self, Figures};
use flatout_core::cpus::UsableCpus;
use flatout_core::memory::UsableMemory;
use flatout_record::{GpuInfo, RunInfo};
use flatout_telemetry::{Sampler, SamplerOptions};
use std::time::Duration;

/// A driver that takes longer to start is left out.
const DRIVER_PATIENCE: Duration = Duration::from_secs(3);

#[derive(Clone, Debug)]
pub struct Machine {
    pub cpus: UsableCpus,
    pub memory_bytes: Option<u64>,
    pub gpus: Vec<GpuInfo>,
    /// The CPU multiplies bf16 in hardware (AMX or AVX-512 BF16).
    pub cpu_bf16: bool,
}

impl Machine {
    pub fn here() -> Self {
        let mut info = RunInfo::default();
        if let Ok(sampler) = Sampler::start(&SamplerOptions {
            host: false,
            ..SamplerOptions::default()
        }) {
            sampler.gpus(DRIVER_PATIENCE);
            sampler.describe(&mut info);
        }
        Self {
            cpus: UsableCpus::here(),
            memory_bytes: UsableMemory::here().map(|memory| memory.total_bytes),
            gpus: info.gpus.into_values().collect(),
            cpu_bf16: cpu_bf16(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
        }
    }

    /// With so many of a GPU that is known by its name only.
    pub fn with_gpu(mut self, name: &str, count: usize) -> Result<Self, TuneError> {
        let figures = gpus::find(name).ok_or_else(|| TuneError::UnknownGpu {
            name: name.to_owned(),
            known: gpus::all()
                .iter()
                .map(Figures::name)
                .collect::<Vec<_>>()
                .join(", "),
        })?;
        let gpu = GpuInfo {
            name: Some(name.to_owned()),
            mem_total_bytes: Some((figures.memory_gb * 1e9) as u64),
            compute_capability: Some(figures.capability()),
            ..GpuInfo::default()
        };
        self.gpus = vec![gpu; count.max(1)];
        Ok(self)
    }

    #[must_use]
    pub fn with_cpus(mut self, count: usize) -> Self {
        self.cpus = UsableCpus {
            online: count,
            affinity: count,
            quota: None,
        };
        // Another machine's memory is not this one's.
        self.memory_bytes = None;
        self
    }

    /// The figures of the first GPU, where they are known.
    pub fn figures(&self) -> Option<&'static Figures> {
        gpus::find(self.gpus.first()?.name.as_deref()?)
    }
}

fn cpu_bf16(cpuinfo: &str) -> bool {
    let flags = cpuinfo
        .lines()
        .find(|line| line.starts_with("flags"))
        .unwrap_or_default();
    flags
        .split_whitespace()
        .any(|flag| flag == "amx_bf16" || flag == "avx512_bf16")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bf16_units_of_the_cpu() {
        assert!(cpu_bf16("processor: 0\nflags\t\t: fpu avx512_bf16 sse\n"));
        assert!(!cpu_bf16("flags : fpu avx512f\n"));
        assert!(!cpu_bf16(""));
    }

    #[test]
    fn describes_a_gpu_by_name() {
        let machine = Machine::here().with_gpu("A100", 4).unwrap();
        assert_eq!(machine.gpus.len(), 4);
        assert_eq!(machine.figures().unwrap().class.batch, 512);
        assert!(Machine::here().with_gpu("abacus", 1).is_err());
    }
}
