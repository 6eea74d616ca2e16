//! Huawei Ascend NPUs through DCMI (`libdcmi.so`), the library of `npu-smi`. Not run on hardware.

use super::{AcceleratorProblem, Library, Listed, MOST_DEGREES, MOST_MEGAHERTZ, MOST_WATTS, Vendor};
use crate::scope::GpuScope;
use crate::sources::fields::{Fields, Trouble};
use crate::sources::gpus::{self, GpuProblem, GpuSource, lock};
use flatout_record::{EventKind, GpuInfo, GpuSample};
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_uint, c_ulong, c_ulonglong};
use std::rc::Rc;
use std::time::Instant;

/// Names another library to load.
pub const LIBRARY_VARIABLE: &str = "FLATOUT_DCMI_LIB";
const LIBRARY_NAMES: [&str; 3] = [
    "libdcmi.so",
    "/usr/local/dcmi/libdcmi.so",
    "/usr/local/Ascend/driver/lib64/driver/libdcmi.so",
];

// `dcmi_interface_api.h`.
const MOST_CARDS: usize = 64;
const NPU_TYPE: c_uint = 0;
const UTILIZATION_AICORE: c_int = 2;
const UTILIZATION_HBM_BANDWIDTH: c_int = 10;
const UTILIZATION_NPU: c_int = 13;
const FREQUENCY_HBM: c_uint = 6;
const FREQUENCY_AICORE: c_uint = 7;
const FREQUENCY_AICORE_MAX: c_uint = 9;

#[repr(C)]
#[derive(Default)]
struct HbmInfo {
    memory_size: c_ulonglong,
    freq: c_uint,
    memory_usage: c_ulonglong,
    temp: c_int,
    bandwith_util_rate: c_uint,
    /// Room for what a later version adds.
    more: [c_ulonglong; 16],
}

#[repr(C)]
#[derive(Default)]
struct MemoryInfo {
    memory_size: c_ulonglong,
    memory_available: c_ulonglong,
    freq: c_uint,
    hugepagesize: c_ulong,
    hugepages_total: c_ulong,
    hugepages_free: c_ulong,
    utiliza: c_uint,
    reserve: [u32; 15],
    more: [c_ulonglong; 16],
}

const CHIP_TEXT: usize = 32;

#[repr(C)]
struct ChipInfo {
    chip_type: [u8; CHIP_TEXT],
    chip_name: [u8; CHIP_TEXT],
    chip_ver: [u8; CHIP_TEXT],
    aicore_cnt: c_uint,
    more: [u32; 32],
}

type OnDevice<T> = unsafe extern "C" fn(c_int, c_int, *mut T) -> c_int;
type OnKind<K, T> = unsafe extern "C" fn(c_int, c_int, K, *mut T) -> c_int;

struct Api {
    // Keeps the functions in memory.
    _library: Library,
    cards: unsafe extern "C" fn(*mut c_int, *mut c_int, c_int) -> c_int,
    devices: unsafe extern "C" fn(c_int, *mut c_int) -> c_int,
    kind: Result<OnDevice<c_uint>, Trouble>,
    logic_id: Result<unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int, Trouble>,
    chip: Result<OnDevice<ChipInfo>, Trouble>,
    utilization: Result<OnKind<c_int, c_uint>, Trouble>,
    hbm: Result<OnDevice<HbmInfo>, Trouble>,
    memory: Result<OnDevice<MemoryInfo>, Trouble>,
    power: Result<OnDevice<c_int>, Trouble>,
    temperature: Result<OnDevice<c_int>, Trouble>,
    frequency: Result<OnKind<c_uint, c_uint>, Trouble>,
    version: Option<String>,
}

fn failed(detail: String) -> AcceleratorProblem {
    AcceleratorProblem::Failed {
        vendor: Vendor::Ascend,
        detail,
    }
}

/// What a code means for the value that was asked for.
fn check(code: c_int) -> Result<(), Trouble> {
    match code {
        0 => Ok(()),
        -8255 => Err(Trouble::not_supported()),
        -8013 => Err(Trouble::Never("not supported in a container".into())),
        -8002 => Err(Trouble::not_permitted()),
        // A parameter that this board does not know.
        -8001 => Err(Trouble::not_supported()),
        -8007 | -8008 => Err(Trouble::Lost(format!("the device is gone (DCMI code {code})"))),
        // Not ready, resource occupied.
        -8012 | -8020 => Err(Trouble::Nothing),
        code => Err(Trouble::Passing(format!("DCMI code {code}"))),
    }
}

impl Api {
    fn open() -> Result<Self, AcceleratorProblem> {
        let library = Library::open(Vendor::Ascend, LIBRARY_VARIABLE, &LIBRARY_NAMES)?;
        let missing = |name: &'static str| move |_| failed(format!("it has no {name}"));
        // SAFETY: the types are those of `dcmi_interface_api.h`.
        unsafe {
            let init: unsafe extern "C" fn() -> c_int =
                library.function("dcmi_init").map_err(missing("dcmi_init"))?;
            let code = init();
            if code != 0 {
                return Err(failed(format!("dcmi_init gives code {code}")));
            }
            let driver: Result<unsafe extern "C" fn(*mut c_char, c_uint) -> c_int, Trouble> =
                library.function("dcmi_get_driver_version");
            let version = driver.ok().and_then(|driver| {
                let mut bytes = [0_u8; 256];
                (driver(bytes.as_mut_ptr().cast(), 255) == 0)
                    .then(|| super::text(&bytes))
                    .flatten()
            });
            Ok(Self {
                cards: library
                    .function("dcmi_get_card_list")
                    .map_err(missing("dcmi_get_card_list"))?,
                devices: library
                    .function("dcmi_get_device_num_in_card")
                    .map_err(missing("dcmi_get_device_num_in_card"))?,
                kind: library.function("dcmi_get_device_type"),
                logic_id: library.function("dcmi_get_device_logic_id"),
                chip: library.function("dcmi_get_device_chip_info"),
                utilization: library.function("dcmi_get_device_utilization_rate"),
                hbm: library.function("dcmi_get_device_hbm_info"),
                memory: library.function("dcmi_get_device_memory_info_v3"),
                power: library.function("dcmi_get_device_power_info"),
                temperature: library.function("dcmi_get_device_temperature"),
                frequency: library.function("dcmi_get_device_frequency"),
                version,
                _library: library,
            })
        }
    }

    /// Card and device of every NPU, with the number that CANN gives it.
    fn npus(&self) -> Result<Vec<(u32, c_int, c_int)>, AcceleratorProblem> {
        let (mut count, mut cards) = (0, [0; MOST_CARDS]);
        // SAFETY: the list has room for the number of cards that is named.
        let code = unsafe { (self.cards)(&raw mut count, cards.as_mut_ptr(), MOST_CARDS as c_int) };
        if code != 0 {
            return Err(failed(format!("its devices cannot be listed, code {code}")));
        }
        let count = usize::try_from(count).unwrap_or(0).min(MOST_CARDS);
        let mut found = Vec::new();
        for card in cards.into_iter().take(count) {
            let mut devices = 0;
            // SAFETY: the pointer is ours.
            if unsafe { (self.devices)(card, &raw mut devices) } != 0 {
                continue;
            }
            for device in 0..devices.clamp(0, MOST_CARDS as c_int) {
                if self.is_npu(card, device) {
                    let next = u32::try_from(found.len()).unwrap_or(u32::MAX);
                    found.push((self.number(card, device).unwrap_or(next), card, device));
                }
            }
        }
        found.sort_unstable();
        found.dedup_by_key(|(number, ..)| *number);
        Ok(found)
    }

    /// A card also has a controller and may have a CPU.
    fn is_npu(&self, card: c_int, device: c_int) -> bool {
        let Ok(kind) = &self.kind else { return true };
        let mut value = NPU_TYPE;
        // SAFETY: the pointer is ours.
        let code = unsafe { kind(card, device, &raw mut value) };
        code != 0 || value == NPU_TYPE
    }

    fn number(&self, card: c_int, device: c_int) -> Option<u32> {
        let call = self.logic_id.as_ref().ok()?;
        let mut value = -1;
        // SAFETY: the pointer is ours.
        let code = unsafe { call(&raw mut value, card, device) };
        u32::try_from(value).ok().filter(|_| code == 0)
    }

    /// `DCMI, driver 24.1.rc2`.
    fn name(&self) -> String {
        match &self.version {
            Some(version) => format!("DCMI, driver {version}"),
            None => "DCMI".into(),
        }
    }
}

struct Npu {
    api: Rc<Api>,
    index: u32,
    card: c_int,
    device: c_int,
    fields: Fields,
}

impl Npu {
    fn ask<T, F: Copy>(
        &mut self,
        name: &'static str,
        function: impl FnOnce(&Api) -> &Result<F, Trouble>,
        mut value: T,
        call: impl FnOnce(F, c_int, c_int, &mut T) -> c_int,
    ) -> Option<T> {
        let Self {
            api,
            card,
            device,
            fields,
            ..
        } = self;
        fields.ask(name, || {
            let function = function(api).clone()?;
            check(call(function, *card, *device, &mut value))?;
            Ok::<_, Trouble>(value)
        })
    }

    fn utilization(&mut self, name: &'static str, kind: c_int) -> Option<f64> {
        let percent = self.ask(
            name,
            |api| &api.utilization,
            0,
            // SAFETY: the pointer is ours.
            |call, card, device, value| unsafe { call(card, device, kind, value) },
        )?;
        self.fields.share(name, f64::from(percent))
    }

    fn frequency(&mut self, name: &'static str, kind: c_uint) -> Option<f64> {
        let megahertz = self.ask(
            name,
            |api| &api.frequency,
            0,
            // SAFETY: the pointer is ours.
            |call, card, device, value| unsafe { call(card, device, kind, value) },
        )?;
        self.fields
            .within(name, f64::from(megahertz), MOST_MEGAHERTZ)
            .filter(|megahertz| *megahertz > 0.0)
    }

    fn hbm(&mut self) -> Option<HbmInfo> {
        self.ask(
            "hbm",
            |api| &api.hbm,
            HbmInfo::default(),
            // SAFETY: the structure is at least as large as DCMI's.
            |call, card, device, value| unsafe { call(card, device, value) },
        )
        // Boards without HBM answer with zeros.
        .filter(|hbm| hbm.memory_size > 0)
    }

    /// Total and used bytes. Boards without HBM know the used share of their DDR memory in whole per cents.
    fn memory(&mut self) -> Option<(u64, u64)> {
        if let Some(hbm) = self.hbm() {
            let scale = unit(hbm.memory_size);
            return Some((
                hbm.memory_size.checked_mul(scale)?,
                hbm.memory_usage.checked_mul(scale)?,
            ));
        }
        let ddr = self.ask(
            "memory",
            |api| &api.memory,
            MemoryInfo::default(),
            // SAFETY: the structure is at least as large as DCMI's.
            |call, card, device, value| unsafe { call(card, device, value) },
        )?;
        let total = ddr
            .memory_size
            .checked_mul(unit(ddr.memory_size))
            .filter(|total| *total > 0)?;
        let share = self.fields.share("memory", f64::from(ddr.utiliza))?;
        Some((total, (total as f64 * share) as u64))
    }
}

/// DCMI's sizes are in MB; drivers of the first Ascend 910 gave KB. No device has 4 TB, none less than 4 GB.
fn unit(size: u64) -> u64 {
    if size >= 4 << 20 { 1 << 10 } else { 1 << 20 }
}

impl gpus::Gpu for Npu {
    fn index(&self) -> u32 {
        self.index
    }

    fn fields(&mut self) -> &mut Fields {
        &mut self.fields
    }

    fn details(&mut self) -> GpuInfo {
        let chip = self.ask(
            "name",
            |api| &api.chip,
            ChipInfo {
                chip_type: [0; CHIP_TEXT],
                chip_name: [0; CHIP_TEXT],
                chip_ver: [0; CHIP_TEXT],
                aicore_cnt: 0,
                more: [0; 32],
            },
            // SAFETY: the structure is at least as large as DCMI's.
            |call, card, device, value| unsafe { call(card, device, value) },
        );
        let name = chip.and_then(|chip| {
            let parts = [super::text(&chip.chip_type), super::text(&chip.chip_name)];
            let parts: Vec<String> = parts.into_iter().flatten().collect();
            (!parts.is_empty()).then(|| parts.join(" "))
        });
        GpuInfo {
            name,
            mem_total_bytes: self.memory().map(|(total, _)| total),
            sm_clock_max_mhz: self.frequency("sm_clock_max", FREQUENCY_AICORE_MAX),
            ..GpuInfo::default()
        }
    }

    fn read(&mut self, _now: Instant, events: &mut Vec<EventKind>) -> Option<GpuSample> {
        let mut sample = GpuSample::default();
        if self.fields.lost().is_none() {
            // The whole NPU where the driver knows it (AI cores, vector cores, CPUs), else its AI cores.
            sample.util = self.utilization("util_npu", UTILIZATION_NPU);
            if sample.util.is_none() {
                sample.util = self.utilization("util", UTILIZATION_AICORE);
            }
            sample.mem_util = self.utilization("mem_util", UTILIZATION_HBM_BANDWIDTH);
            if let Some((total, used)) = self.memory() {
                sample.mem_used_bytes = Some(used);
                sample.mem_free_bytes = total.checked_sub(used);
            }
            // In tenths of a watt.
            let power = self.ask(
                "power",
                |api| &api.power,
                0,
                // SAFETY: the pointer is ours.
                |call, card, device, value| unsafe { call(card, device, value) },
            );
            sample.power_w =
                power.and_then(|tenths| self.fields.within("power", f64::from(tenths) / 10.0, MOST_WATTS));
            let degrees = self.ask(
                "temp",
                |api| &api.temperature,
                0,
                // SAFETY: the pointer is ours.
                |call, card, device, value| unsafe { call(card, device, value) },
            );
            sample.temp_c =
                degrees.and_then(|degrees| self.fields.within("temp", f64::from(degrees), MOST_DEGREES));
            sample.sm_clock_mhz = self.frequency("sm_clock", FREQUENCY_AICORE);
            sample.mem_clock_mhz = self.frequency("mem_clock", FREQUENCY_HBM);
        }
        events.extend(self.fields.take_loss());
        self.fields.lost().is_none().then_some(sample)
    }
}

/// What CANN leaves visible.
pub fn scope() -> GpuScope {
    GpuScope::from_list(
        &[
            "ASCEND_RT_VISIBLE_DEVICES",
            "ASCEND_VISIBLE_DEVICES",
            "SLURM_STEP_GPUS",
            "SLURM_JOB_GPUS",
        ],
        |name| std::env::var(name).ok(),
    )
}

fn all(api: &Rc<Api>) -> Result<Vec<Npu>, AcceleratorProblem> {
    let npus = api.npus()?.into_iter();
    Ok(npus
        .map(|(index, card, device)| Npu {
            api: Rc::clone(api),
            index,
            card,
            device,
            fields: Fields::new(index),
        })
        .collect())
}

pub fn start(scope: GpuScope) -> GpuSource {
    GpuSource::start("dcmi", move |port, table| {
        let opened = Api::open().and_then(|api| {
            let api = Rc::new(api);
            let npus = all(&api)?;
            let (picked, notes) = super::pick(Vendor::Ascend, &scope, &vec![None; npus.len()])?;
            let npus: Vec<Npu> = npus
                .into_iter()
                .enumerate()
                .filter(|(position, _)| picked.contains(position))
                .map(|(_, npu)| npu)
                .collect();
            Ok((api, npus, notes))
        });
        match opened {
            Ok((api, npus, mut notes)) => {
                notes.push(super::not_run_on_hardware(&api.name()));
                lock(table).note(notes);
                let version = api.version.clone().map(|version| ("driver".into(), version));
                let versions: BTreeMap<_, _> = version.into_iter().collect();
                gpus::serve(npus, versions, port, table);
            }
            Err(problem) => lock(table).give_up(GpuProblem::Accelerator(problem)),
        }
    })
}

pub fn list() -> Result<(String, Vec<Listed>), AcceleratorProblem> {
    let api = Rc::new(Api::open()?);
    let listed = all(&api)?.into_iter().map(|mut npu| Listed {
        index: npu.index,
        info: gpus::Gpu::details(&mut npu),
    });
    let listed: Vec<Listed> = listed.collect();
    if listed.is_empty() {
        return Err(AcceleratorProblem::NoDevices {
            vendor: Vendor::Ascend,
        });
    }
    Ok((api.name(), listed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_layout_of_the_header() {
        use std::mem::offset_of;
        assert_eq!(
            [
                offset_of!(HbmInfo, freq),
                offset_of!(HbmInfo, memory_usage),
                offset_of!(HbmInfo, temp),
                offset_of!(HbmInfo, bandwith_util_rate),
                offset_of!(HbmInfo, more),
            ],
            [8, 16, 24, 28, 32]
        );
        assert_eq!(offset_of!(MemoryInfo, hugepagesize), 24);
        assert_eq!(offset_of!(MemoryInfo, utiliza), 48);
        assert_eq!(offset_of!(MemoryInfo, reserve), 52);
        assert_eq!(offset_of!(ChipInfo, aicore_cnt), 96);
    }

    #[test]
    fn sizes_are_megabytes_or_kilobytes() {
        assert_eq!(65_536 * unit(65_536), 64 << 30);
        assert_eq!(33_554_432 * unit(33_554_432), 32 << 30);
    }
}
