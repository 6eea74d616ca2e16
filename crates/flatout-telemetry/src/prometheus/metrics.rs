//! What is on the page. A new metric is one line in a table here. Base units: shares as ratios, bytes, watts, hertz.

use super::Snapshot;
use super::family::Kind::{Counter, Gauge};
use super::family::{Kind, Page};
use flatout_record::{GpuSample, HostSample, Sample, throttle_names};

type Row<T> = (&'static str, Kind, &'static str, fn(&T) -> Option<f64>);

#[rustfmt::skip] // A table: one line a metric.
const GPU: &[Row<GpuSample>] = &[
    ("utilization_ratio", Gauge, "Share of time in which any kernel ran.", |gpu| gpu.util),
    ("memory_controller_utilization_ratio", Gauge, "Share of time in which device memory was read or written.", |gpu| gpu.mem_util),
    ("sm_activity_ratio", Gauge, "Share of time in which an SM had work, averaged over all SMs (GPM).", |gpu| gpu.sm_activity),
    ("sm_occupancy_ratio", Gauge, "Warps resident of warps possible (GPM).", |gpu| gpu.sm_occupancy),
    ("tensor_activity_ratio", Gauge, "Share of time in which the tensor cores worked (GPM).", |gpu| gpu.tensor_activity),
    ("dram_activity_ratio", Gauge, "Share of the device memory's bandwidth in use (GPM).", |gpu| gpu.dram_activity),
    ("memory_used_bytes", Gauge, "Device memory in use.", |gpu| gpu.mem_used_bytes.map(|bytes| bytes as f64)),
    ("memory_free_bytes", Gauge, "Device memory not in use.", |gpu| gpu.mem_free_bytes.map(|bytes| bytes as f64)),
    ("power_watts", Gauge, "Power drawn by the board.", |gpu| gpu.power_w),
    ("power_limit_watts", Gauge, "Power limit in force.", |gpu| gpu.power_limit_w),
    ("energy_joules_total", Counter, "Energy used since the driver was loaded.", |gpu| gpu.energy_j),
    ("temperature_celsius", Gauge, "Temperature of the GPU.", |gpu| gpu.temp_c),
    ("sm_clock_hertz", Gauge, "Clock of the SMs.", |gpu| gpu.sm_clock_mhz.map(|clock| clock * 1e6)),
    ("memory_clock_hertz", Gauge, "Clock of the device memory.", |gpu| gpu.mem_clock_mhz.map(|clock| clock * 1e6)),
    ("pcie_receive_bytes_per_second", Gauge, "PCIe traffic to the GPU.", |gpu| gpu.pcie_rx_bytes_s),
    ("pcie_transmit_bytes_per_second", Gauge, "PCIe traffic from the GPU.", |gpu| gpu.pcie_tx_bytes_s),
    ("pcie_link_generation", Gauge, "PCIe generation of the link now.", |gpu| gpu.pcie_generation.map(f64::from)),
    ("pcie_link_width_lanes", Gauge, "PCIe lanes of the link now.", |gpu| gpu.pcie_width.map(f64::from)),
    ("nvlink_receive_bytes_per_second", Gauge, "NVLink traffic to the GPU, all links (GPM).", |gpu| gpu.nvlink_rx_bytes_s),
    ("nvlink_transmit_bytes_per_second", Gauge, "NVLink traffic from the GPU, all links (GPM).", |gpu| gpu.nvlink_tx_bytes_s),
    ("processes", Gauge, "Processes that hold memory on the GPU.", |gpu| gpu.processes.as_ref().map(|list| list.len() as f64)),
    ("sample_age_seconds", Gauge, "Age of the values when the driver did not answer in time.", |gpu| gpu.age_s),
];

#[rustfmt::skip] // A table: one line a metric.
const HOST: &[Row<HostSample>] = &[
    ("cpu_utilization_ratio", Gauge, "Busy share of the CPUs flatout may use.", |host| host.cpu_util),
    ("cpu_iowait_ratio", Gauge, "Share of CPU time spent waiting for disks.", |host| host.iowait),
    ("cpu_steal_ratio", Gauge, "Share of CPU time taken by other virtual machines.", |host| host.steal),
    ("run_queue_length", Gauge, "Threads that run or want to.", |host| host.run_queue),
    ("context_switches_per_second", Gauge, "Context switches on all CPUs.", |host| host.context_switches_s),
    ("memory_total_bytes", Gauge, "Memory of the machine.", |host| host.mem_total_bytes.map(|bytes| bytes as f64)),
    ("memory_available_bytes", Gauge, "Memory that programs can still get.", |host| host.mem_available_bytes.map(|bytes| bytes as f64)),
    ("swap_used_bytes", Gauge, "Swap in use.", |host| host.swap_used_bytes.map(|bytes| bytes as f64)),
    ("swap_in_bytes_per_second", Gauge, "Pages read back from swap.", |host| host.swap_in_bytes_s),
    ("pressure_cpu_ratio", Gauge, "Share of the last ten seconds in which somebody waited for a CPU.", |host| host.psi_cpu),
    ("pressure_io_ratio", Gauge, "Share of the last ten seconds in which somebody waited for a disk.", |host| host.psi_io),
    ("pressure_memory_ratio", Gauge, "Share of the last ten seconds in which somebody waited for memory.", |host| host.psi_memory),
    ("disk_read_bytes_per_second", Gauge, "Bytes read from disks.", |host| host.disk_read_bytes_s),
    ("disk_write_bytes_per_second", Gauge, "Bytes written to disks.", |host| host.disk_write_bytes_s),
    ("disk_busy_ratio", Gauge, "Busy share of the busiest disk.", |host| host.disk_busy),
    ("shared_memory_used_bytes", Gauge, "Use of /dev/shm.", |host| host.shm_used_bytes.map(|bytes| bytes as f64)),
    ("shared_memory_total_bytes", Gauge, "Size of /dev/shm.", |host| host.shm_total_bytes.map(|bytes| bytes as f64)),
];

/// flatout itself, and the batch job around it.
pub fn about(page: &mut Page, snapshot: &Snapshot) {
    let info = &snapshot.info;
    let version = |name: &str| info.versions.get(name).cloned().unwrap_or_default();
    let labels = vec![
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("driver", version("driver")),
        ("cuda", version("cuda")),
    ];
    page.family(
        "flatout_build_info",
        Gauge,
        "Versions of flatout and of the driver.",
        [(labels, Some(1.0))],
    );
    let job = info.job.iter().map(|job| {
        let field = |name: &str| job.fields.get(name).cloned().unwrap_or_default();
        let labels = vec![
            ("system", job.system.clone()),
            ("job", job.id.clone()),
            ("name", field("name")),
            ("user", field("user")),
            ("account", field("account")),
            ("partition", field("partition")),
            ("array_task", field("array_task")),
            ("step", field("step")),
        ];
        (labels, Some(1.0))
    });
    page.family(
        "flatout_job_info",
        Gauge,
        "The batch system's job that flatout runs in.",
        job,
    );
    let count = |value: u64| [(Vec::new(), Some(value as f64))];
    page.family(
        "flatout_ticks_total",
        Counter,
        "Samples taken.",
        count(snapshot.ticks),
    );
    page.family(
        "flatout_missed_ticks_total",
        Counter,
        "Samples not taken in time.",
        count(snapshot.missed),
    );
}

pub fn gpus(page: &mut Page, snapshot: &Snapshot) {
    let label = |index: u32| {
        let uuid = snapshot.info.gpus.get(&index).and_then(|info| info.uuid.clone());
        vec![("gpu", index.to_string()), ("uuid", uuid.unwrap_or_default())]
    };
    let known = snapshot.info.gpus.iter().map(|(index, info)| {
        let mut labels = label(*index);
        labels.push(("name", info.name.clone().unwrap_or_default()));
        (labels, Some(1.0))
    });
    page.family("flatout_gpu_info", Gauge, "The GPUs in scope.", known);
    let total = snapshot
        .info
        .gpus
        .iter()
        .map(|(index, info)| (label(*index), info.mem_total_bytes.map(|bytes| bytes as f64)));
    page.family("flatout_gpu_memory_total_bytes", Gauge, "Device memory.", total);
    let gpus = &snapshot.sample.gpus;
    for (name, kind, help, value) in GPU {
        let series = gpus.iter().map(|(index, gpu)| (label(*index), value(gpu)));
        page.family(&format!("flatout_gpu_{name}"), *kind, help, series);
    }
    let reasons = throttle_names(u64::MAX);
    let throttle = gpus.iter().flat_map(|(index, gpu)| {
        reasons.iter().map(move |reason| {
            let mut labels = label(*index);
            labels.push(("reason", reason.clone()));
            let active = gpu
                .throttle
                .as_ref()
                .map(|now| f64::from(u8::from(now.contains(reason))));
            (labels, active)
        })
    });
    page.family(
        "flatout_gpu_throttle_active",
        Gauge,
        "Whether the clocks are held back for this reason.",
        throttle,
    );
    let memory = gpus.iter().flat_map(|(index, gpu)| {
        gpu.processes.iter().flatten().map(move |process| {
            let mut labels = label(*index);
            labels.push(("pid", process.pid.to_string()));
            (labels, process.mem_bytes.map(|bytes| bytes as f64))
        })
    });
    page.family(
        "flatout_gpu_process_memory_bytes",
        Gauge,
        "Device memory held by a process.",
        memory,
    );
}

pub fn host(page: &mut Page, host: &HostSample) {
    for (name, kind, help, value) in HOST {
        page.family(
            &format!("flatout_host_{name}"),
            *kind,
            help,
            [(Vec::new(), value(host))],
        );
    }
}

/// The watched process tree, as one.
pub fn processes(page: &mut Page, sample: &Sample) {
    if sample.processes.is_empty() {
        return;
    }
    let all = || sample.processes.values();
    let sum = |values: &mut dyn Iterator<Item = f64>| [(Vec::new(), Some(values.sum::<f64>()))];
    let count = [(Vec::new(), Some(sample.processes.len() as f64))];
    page.family(
        "flatout_watched_processes",
        Gauge,
        "Processes of the watched tree.",
        count,
    );
    let cpus = sum(&mut all().filter_map(|process| process.cpus));
    page.family(
        "flatout_watched_cpu_cores",
        Gauge,
        "CPUs the watched tree keeps busy.",
        cpus,
    );
    let resident = sum(&mut all().filter_map(|process| process.rss_bytes.map(|bytes| bytes as f64)));
    page.family(
        "flatout_watched_resident_bytes",
        Gauge,
        "Resident memory of the watched tree, shared pages counted in each.",
        resident,
    );
}
