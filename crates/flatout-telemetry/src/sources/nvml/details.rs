//! What a GPU is, once.

use super::select::Chosen;
use crate::sources::fields::Fields;
use flatout_record::GpuInfo;
use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureThreshold};
use std::collections::BTreeMap;

pub fn read(chosen: &Chosen<'_>, fields: &mut Fields) -> GpuInfo {
    let device = &chosen.device;
    // Limits belong to the board, not to a slice of it.
    let board = chosen.whole.as_ref().unwrap_or(device);
    let degrees = |threshold| move || board.temperature_threshold(threshold);
    GpuInfo {
        name: fields.ask("name", || device.name()),
        uuid: fields.ask("uuid", || device.uuid()),
        mem_total_bytes: fields
            .ask("memory", || device.memory_info())
            .map(|memory| memory.total),
        compute_capability: fields
            .ask("compute_capability", || board.cuda_compute_capability())
            .and_then(|capability| {
                Some((
                    capability.major.try_into().ok()?,
                    capability.minor.try_into().ok()?,
                ))
            }),
        sm_clock_max_mhz: fields
            .ask("sm_clock_max", || board.max_clock_info(Clock::SM))
            .map(f64::from),
        mem_clock_max_mhz: fields
            .ask("mem_clock_max", || board.max_clock_info(Clock::Memory))
            .map(f64::from),
        temp_slowdown_c: fields
            .ask("temp_slowdown", degrees(TemperatureThreshold::Slowdown))
            .map(f64::from),
        temp_shutdown_c: fields
            .ask("temp_shutdown", degrees(TemperatureThreshold::Shutdown))
            .map(f64::from),
        pcie_generation_max: fields.ask("pcie_generation_max", || board.max_pcie_link_gen()),
        pcie_width_max: fields.ask("pcie_width_max", || board.max_pcie_link_width()),
        gpm: fields.ask("gpm_support", || board.gpm_support()),
    }
}

/// `driver`, `cuda` (the newest the driver can run), `nvml`.
pub fn versions(nvml: &Nvml) -> BTreeMap<String, String> {
    let cuda = nvml.sys_cuda_driver_version().ok().map(|version| {
        let (major, minor) = (version / 1000, version % 1000 / 10);
        format!("{major}.{minor}")
    });
    [
        ("driver", nvml.sys_driver_version().ok()),
        ("cuda", cuda),
        ("nvml", nvml.sys_nvml_version().ok()),
    ]
    .into_iter()
    .filter_map(|(name, version)| Some((name.to_owned(), version?)))
    .collect()
}
