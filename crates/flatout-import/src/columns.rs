//! What a column of a log means. A new one is one line in a table here.

use flatout_record::{GpuInfo, GpuSample, HostSample};

const MEBIBYTE: f64 = 1024.0 * 1024.0;

#[derive(Clone, Copy)]
pub enum Column {
    Ignored,
    /// Date and time.
    Time,
    /// The date alone; the time of day stands in the next column.
    Date,
    Clock,
    /// Seconds since the start.
    Seconds,
    UnixMs,
    Index,
    /// Names the GPU where there is no index: UUID or bus.
    Identity,
    /// A number, times `scale`.
    Gpu {
        scale: f64,
        set: fn(&mut GpuSample, Option<f64>),
    },
    /// A percentage, as a share; clamped to 1.
    Share {
        set: fn(&mut GpuSample, Option<f64>),
    },
    Host {
        set: fn(&mut HostSample, Option<f64>),
    },
    /// What a GPU is; read from its first row only.
    About(fn(&mut GpuInfo, &str)),
    Driver,
    ThrottleBits,
    /// `power-cap+thermal-hw`.
    ThrottleNames,
    /// `Active` or `Not Active`, for this reason.
    ThrottleFlag(&'static str),
}

impl Column {
    /// Whether its field is a number, with a unit or without.
    pub fn is_number(&self) -> bool {
        matches!(
            self,
            Self::Gpu { .. } | Self::Share { .. } | Self::Host { .. } | Self::Seconds | Self::UnixMs
        )
    }
}

pub struct Header {
    pub columns: Vec<Column>,
    pub ignored: Vec<String>,
    /// The fields are separated by blanks and not by commas.
    pub blanks: bool,
    /// The first line is the header itself, not already a row.
    pub is_line: bool,
    /// The line itself: tools repeat it.
    pub line: Vec<u8>,
}

impl Header {
    /// For a header that was told and is not in the file.
    pub fn without_line(mut self) -> Self {
        self.is_line = false;
        self.line.clear();
        self
    }
}

macro_rules! share {
    ($field:ident) => {
        Column::Share {
            set: |gpu, value| gpu.$field = value,
        }
    };
}

macro_rules! number {
    ($field:ident) => {
        Column::Gpu {
            scale: 1.0,
            set: |gpu, value| gpu.$field = value,
        }
    };
    ($field:ident * $scale:expr) => {
        Column::Gpu {
            scale: $scale,
            set: |gpu, value| gpu.$field = value,
        }
    };
}

macro_rules! bytes {
    ($field:ident * $scale:expr) => {
        Column::Gpu {
            scale: $scale,
            set: |gpu, value| gpu.$field = value.map(|value| value as u64),
        }
    };
}

macro_rules! small {
    ($field:ident) => {
        Column::Gpu {
            scale: 1.0,
            set: |gpu, value| gpu.$field = value.map(|value| value as u32),
        }
    };
}

macro_rules! about {
    ($field:ident: number) => {
        Column::About(|info, text| info.$field = super::number::parse(text.as_bytes()))
    };
    ($field:ident: small) => {
        Column::About(|info, text| info.$field = super::number::whole(text.as_bytes()))
    };
}

/// nvidia-smi's names, without the unit in brackets.
#[rustfmt::skip] // A table: one line a column.
const QUERY: &[(&str, Column)] = &[
    ("timestamp", Column::Time),
    ("index", Column::Index),
    ("uuid", Column::Identity),
    ("gpu_uuid", Column::Identity),
    ("gpu_bus_id", Column::Identity),
    ("pci.bus_id", Column::Identity),
    ("name", Column::About(|info, text| info.name = Some(text.to_owned()))),
    ("gpu_name", Column::About(|info, text| info.name = Some(text.to_owned()))),
    ("driver_version", Column::Driver),
    ("compute_cap", Column::About(|info, text| info.compute_capability = capability(text))),
    ("utilization.gpu", share!(util)),
    ("utilization.memory", share!(mem_util)),
    ("memory.total", Column::About(|info, text| {
        info.mem_total_bytes = super::number::parse(text.as_bytes()).map(|value| (value * MEBIBYTE) as u64);
    })),
    ("memory.used", bytes!(mem_used_bytes * MEBIBYTE)),
    ("memory.free", bytes!(mem_free_bytes * MEBIBYTE)),
    ("power.draw", number!(power_w)),
    ("power.draw.instant", number!(power_w)),
    ("power.draw.average", number!(power_w)),
    ("power.limit", number!(power_limit_w)),
    ("enforced.power.limit", number!(power_limit_w)),
    ("temperature.gpu", number!(temp_c)),
    ("clocks.sm", number!(sm_clock_mhz)),
    ("clocks.current.sm", number!(sm_clock_mhz)),
    ("clocks.gr", number!(sm_clock_mhz)),
    ("clocks.current.graphics", number!(sm_clock_mhz)),
    ("clocks.mem", number!(mem_clock_mhz)),
    ("clocks.current.memory", number!(mem_clock_mhz)),
    ("clocks.max.sm", about!(sm_clock_max_mhz: number)),
    ("clocks.max.memory", about!(mem_clock_max_mhz: number)),
    ("clocks.max.mem", about!(mem_clock_max_mhz: number)),
    ("pcie.link.gen.current", small!(pcie_generation)),
    ("pcie.link.gen.gpucurrent", small!(pcie_generation)),
    ("pcie.link.width.current", small!(pcie_width)),
    ("pcie.link.gen.max", about!(pcie_generation_max: small)),
    ("pcie.link.width.max", about!(pcie_width_max: small)),
    ("clocks_throttle_reasons.active", Column::ThrottleBits),
    ("clocks_event_reasons.active", Column::ThrottleBits),
    ("clocks_throttle_reasons.gpu_idle", Column::ThrottleFlag("idle")),
    ("clocks_event_reasons.gpu_idle", Column::ThrottleFlag("idle")),
    ("clocks_throttle_reasons.applications_clocks_setting", Column::ThrottleFlag("applications-clocks")),
    ("clocks_event_reasons.applications_clocks_setting", Column::ThrottleFlag("applications-clocks")),
    ("clocks_throttle_reasons.sw_power_cap", Column::ThrottleFlag("power-cap")),
    ("clocks_event_reasons.sw_power_cap", Column::ThrottleFlag("power-cap")),
    ("clocks_throttle_reasons.hw_slowdown", Column::ThrottleFlag("hw-slowdown")),
    ("clocks_event_reasons.hw_slowdown", Column::ThrottleFlag("hw-slowdown")),
    ("clocks_throttle_reasons.hw_thermal_slowdown", Column::ThrottleFlag("thermal-hw")),
    ("clocks_event_reasons.hw_thermal_slowdown", Column::ThrottleFlag("thermal-hw")),
    ("clocks_throttle_reasons.hw_power_brake_slowdown", Column::ThrottleFlag("power-brake")),
    ("clocks_event_reasons.hw_power_brake_slowdown", Column::ThrottleFlag("power-brake")),
    ("clocks_throttle_reasons.sw_thermal_slowdown", Column::ThrottleFlag("thermal-sw")),
    ("clocks_event_reasons.sw_thermal_slowdown", Column::ThrottleFlag("thermal-sw")),
    ("clocks_throttle_reasons.sync_boost", Column::ThrottleFlag("sync-boost")),
    ("clocks_event_reasons.sync_boost", Column::ThrottleFlag("sync-boost")),
];

/// `nvidia-smi dmon`'s names.
#[rustfmt::skip] // A table: one line a column.
pub const DMON: &[(&str, Column)] = &[
    ("date", Column::Date),
    ("time", Column::Clock),
    ("gpu", Column::Index),
    ("idx", Column::Index),
    ("pwr", number!(power_w)),
    ("temp", number!(temp_c)),
    ("gtemp", number!(temp_c)),
    ("sm", share!(util)),
    ("mem", share!(mem_util)),
    ("mclk", number!(mem_clock_mhz)),
    ("pclk", number!(sm_clock_mhz)),
    ("fb", bytes!(mem_used_bytes * MEBIBYTE)),
    ("rxpci", number!(pcie_rx_bytes_s * MEBIBYTE)),
    ("txpci", number!(pcie_tx_bytes_s * MEBIBYTE)),
];

macro_rules! own {
    ($($field:ident),*) => {
        [$((stringify!($field), Column::Gpu { scale: 1.0, set: |gpu, value| gpu.$field = value })),*]
    };
}

macro_rules! host {
    ($name:literal, $field:ident) => {
        (
            $name,
            Column::Host {
                set: |host, value| host.$field = value,
            },
        )
    };
}

const OWN: &[&[(&str, Column)]] = &[
    &[
        ("t", Column::Seconds),
        ("unix_ms", Column::UnixMs),
        ("gpu", Column::Index),
        ("throttle", Column::ThrottleNames),
        ("mem_used_bytes", bytes!(mem_used_bytes * 1.0)),
        ("mem_free_bytes", bytes!(mem_free_bytes * 1.0)),
        (
            "host_mem_available_bytes",
            Column::Host {
                set: |host, value| host.mem_available_bytes = value.map(|value| value as u64),
            },
        ),
        host!("host_cpu_util", cpu_util),
        host!("host_iowait", iowait),
        host!("host_run_queue", run_queue),
        host!("host_psi_io", psi_io),
        host!("host_disk_read_bytes_s", disk_read_bytes_s),
        host!("host_disk_write_bytes_s", disk_write_bytes_s),
        host!("host_disk_busy", disk_busy),
    ],
    &own!(
        util,
        mem_util,
        sm_activity,
        sm_occupancy,
        tensor_activity,
        dram_activity,
        fp16_activity,
        fp32_activity,
        power_w,
        power_limit_w,
        energy_j,
        temp_c,
        sm_clock_mhz,
        mem_clock_mhz,
        pcie_rx_bytes_s,
        pcie_tx_bytes_s,
        nvlink_rx_bytes_s,
        nvlink_tx_bytes_s
    ),
];

/// nvidia-smi's header, or a list of its names; `None` when no column is known.
pub fn query(line: &[u8]) -> Option<Header> {
    let text = String::from_utf8_lossy(line).into_owned();
    read(line, text.split(','), false, |name| {
        let plain = name.split('[').next().unwrap_or(name).trim();
        QUERY
            .iter()
            .find(|(known, _)| *known == plain)
            .map(|(_, column)| *column)
    })
}

/// Our own header: it has `t` and `gpu`, which nvidia-smi's has not.
pub fn own(line: &[u8]) -> Option<Header> {
    let text = String::from_utf8_lossy(line).into_owned();
    let names: Vec<&str> = text.split(',').map(str::trim).collect();
    if !(names.contains(&"t") && names.contains(&"gpu")) {
        return None;
    }
    read(line, names.into_iter(), false, |name| {
        OWN.iter()
            .copied()
            .flatten()
            .find(|(known, _)| *known == name)
            .map(|(_, column)| *column)
    })
}

pub fn read<'a>(
    line: &[u8],
    names: impl Iterator<Item = &'a str>,
    blanks: bool,
    find: impl Fn(&str) -> Option<Column>,
) -> Option<Header> {
    let mut header = Header {
        columns: Vec::new(),
        ignored: Vec::new(),
        blanks,
        is_line: true,
        line: line.to_vec(),
    };
    let mut known = false;
    for name in names {
        let name = name.trim();
        let column = find(&name.to_ascii_lowercase());
        known |= column.is_some();
        if column.is_none() && !name.is_empty() {
            header
                .ignored
                .push(name.chars().filter(|c| !c.is_control()).take(60).collect());
        }
        header.columns.push(column.unwrap_or(Column::Ignored));
    }
    known.then_some(header)
}

/// Whether a line looks like a row of nvidia-smi without a header above it: several fields, one of them a number or a time.
pub fn looks_like_values(line: &[u8]) -> bool {
    let fields = || line.split(|byte| *byte == b',');
    let value = |field: &[u8]| super::number::parse(field).is_some() || super::time::parse(field).is_some();
    fields().count() >= 2 && fields().any(value)
}

fn capability(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
