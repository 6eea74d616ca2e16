//! One tick of measurement. Every value is optional: what could not be read is absent, never 0.
//! The serialised names are the record's format: short, with their units.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything seen at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Sample {
    /// Seconds since the record's start, on the monotonic clock.
    pub t: f64,
    /// By GPU index.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gpus: BTreeMap<u32, GpuSample>,
    #[serde(default, skip_serializing_if = "HostSample::is_empty")]
    pub host: HostSample,
    /// The watched process tree, by process id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub processes: BTreeMap<u32, ProcessSample>,
}

macro_rules! optional_fields {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[$field_meta:meta])* pub $field:ident: $type:ty,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
        pub struct $name {
            $($(#[$field_meta])* #[serde(default, skip_serializing_if = "Option::is_none")] pub $field: Option<$type>,)*
        }

        impl $name {
            /// Whether nothing at all is known.
            pub fn is_empty(&self) -> bool {
                true $(&& self.$field.is_none())*
            }
        }
    };
}

optional_fields! {
    /// One GPU. Ratios are 0 to 1; "utilisation" is NVML's: the share of time in which any kernel ran.
    pub struct GpuSample {
        pub util: f64,
        /// Share of time in which device memory was read or written.
        pub mem_util: f64,
        /// The utilisation readings the driver buffered since the last tick, oldest first.
        pub util_fine: Vec<f64>,
        pub mem_used_bytes: u64,
        pub mem_free_bytes: u64,
        pub power_w: f64,
        pub power_limit_w: f64,
        /// Counts up since the driver was loaded.
        pub energy_j: f64,
        pub temp_c: f64,
        pub sm_clock_mhz: f64,
        pub mem_clock_mhz: f64,
        /// Why the clocks are below their maximum now: `power-cap`, `thermal-hw`, `idle` …
        pub throttle: Vec<String>,
        pub pcie_rx_bytes_s: f64,
        pub pcie_tx_bytes_s: f64,
        pub pcie_generation: u32,
        pub pcie_width: u32,
        pub processes: Vec<GpuProcess>,
        /// GPM: share of time in which SMs had work, averaged over all SMs.
        pub sm_activity: f64,
        pub sm_occupancy: f64,
        pub tensor_activity: f64,
        pub dram_activity: f64,
        pub fp16_activity: f64,
        pub fp32_activity: f64,
        pub nvlink_rx_bytes_s: f64,
        pub nvlink_tx_bytes_s: f64,
        /// The driver did not answer in time: how old these values are. Absent when they are of this tick.
        pub age_s: f64,
    }
}

/// A process that holds memory on a GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GpuProcess {
    pub pid: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mem_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm_util: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

optional_fields! {
    /// The machine. Ratios are 0 to 1; PSI values are the shares of the last ten seconds.
    pub struct HostSample {
        /// Busy share of the CPUs this process may use.
        pub cpu_util: f64,
        /// Busy share of each of those CPUs.
        pub core_util: Vec<f64>,
        pub iowait: f64,
        pub steal: f64,
        pub run_queue: f64,
        pub context_switches_s: f64,
        pub mem_total_bytes: u64,
        pub mem_available_bytes: u64,
        pub swap_used_bytes: u64,
        pub swap_in_bytes_s: f64,
        pub psi_cpu: f64,
        pub psi_io: f64,
        pub psi_memory: f64,
        pub disk_read_bytes_s: f64,
        pub disk_write_bytes_s: f64,
        /// Busy share of the busiest disk.
        pub disk_busy: f64,
        pub shm_used_bytes: u64,
        pub shm_total_bytes: u64,
    }
}

optional_fields! {
    /// One process of the watched tree.
    pub struct ProcessSample {
        pub parent: u32,
        /// The program and its first arguments; constant, so it is written once.
        pub command: String,
        /// `R`, `S`, `D`, `Z` … as in /proc.
        pub state: String,
        /// CPUs used: 1 is one core fully busy.
        pub cpus: f64,
        /// The part of them that the kernel used for the process.
        pub kernel_cpus: f64,
        /// Minor page faults a second: pages touched for the first time since the kernel gave them.
        pub faults_s: f64,
        pub threads: u32,
        pub rss_bytes: u64,
        /// Memory that no other process shares.
        pub private_bytes: u64,
        pub voluntary_switches_s: f64,
        pub involuntary_switches_s: f64,
        pub read_bytes_s: f64,
        pub write_bytes_s: f64,
    }
}
