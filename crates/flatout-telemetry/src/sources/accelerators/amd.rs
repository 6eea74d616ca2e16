//! AMD GPUs through AMD SMI (`libamd_smi.so`, ROCm 6.0 and newer). Not run on hardware.

use super::{AcceleratorProblem, Library, Listed, MOST_DEGREES, MOST_MEGAHERTZ, MOST_WATTS, Vendor};
use crate::scope::{GpuName, GpuScope};
use crate::sources::fields::{Fields, Trouble};
use crate::sources::gpus::{self, GpuProblem, GpuSource, lock};
use flatout_record::{EventKind, GpuInfo, GpuSample};
use std::collections::BTreeMap;
use std::ffi::{c_char, c_uint, c_void};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Names another library to load.
pub const LIBRARY_VARIABLE: &str = "FLATOUT_AMDSMI_LIB";
/// The plain name comes with development packages and `ld.so.conf.d`; the numbers are ROCm 7 and later, 7.0, 6.4, 6.0 to 6.3.
const LIBRARY_NAMES: [&str; 6] = [
    "libamd_smi.so",
    "libamd_smi.so.27",
    "libamd_smi.so.26",
    "libamd_smi.so.25",
    "libamd_smi.so.24",
    "/opt/rocm/lib/libamd_smi.so",
];

/// The power limit changes rarely.
const SLOW_EVERY: Duration = Duration::from_millis(950);

// `amdsmi.h`.
type Status = c_uint;
type Handle = *mut c_void;
const INIT_AMD_GPUS: u64 = 1 << 1;
const PROCESSOR_TYPE_AMD_GPU: c_uint = 1;
const MEM_TYPE_VRAM: c_uint = 0;
const CLK_TYPE_GFX: c_uint = 0;
const CLK_TYPE_MEM: c_uint = 4;
const TEMPERATURE_EDGE: c_uint = 0;
const TEMPERATURE_HOTSPOT: c_uint = 1;
const TEMP_CURRENT: c_uint = 0;
const TEMP_CRITICAL: c_uint = 5;
const TEMP_EMERGENCY: c_uint = 7;
const MOST_SOCKETS: u32 = 256;

/// The library grows its structures at the end between versions; an answer is read from a buffer that is larger than any.
const BUFFER_WORDS: usize = 512;
type Buffer = [u64; BUFFER_WORDS];

/// The version that put `uint64_t socket_power` in front of the two values in `amdsmi_power_info_t` (ROCm 6.4).
const FIRST_WITH_SOCKET_POWER: u32 = 25;
/// `amdsmi_version_t` begins with the year's last two digits, later with a major version that continues them.
const OLDEST_KNOWN: u32 = 23;

type OnHandle<T> = unsafe extern "C" fn(Handle, *mut T) -> Status;

struct Api {
    // Keeps the functions in memory.
    _library: Library,
    sockets: unsafe extern "C" fn(*mut u32, *mut Handle) -> Status,
    processors: unsafe extern "C" fn(Handle, *mut u32, *mut Handle) -> Status,
    kind: Result<OnHandle<c_uint>, Trouble>,
    activity: Result<OnHandle<Buffer>, Trouble>,
    power: Result<OnHandle<Buffer>, Trouble>,
    asic: Result<OnHandle<Buffer>, Trouble>,
    memory_total: Result<unsafe extern "C" fn(Handle, c_uint, *mut u64) -> Status, Trouble>,
    memory_usage: Result<unsafe extern "C" fn(Handle, c_uint, *mut u64) -> Status, Trouble>,
    temperature: Result<unsafe extern "C" fn(Handle, c_uint, c_uint, *mut i64) -> Status, Trouble>,
    clock: Result<unsafe extern "C" fn(Handle, c_uint, *mut Buffer) -> Status, Trouble>,
    power_cap: Result<unsafe extern "C" fn(Handle, u32, *mut Buffer) -> Status, Trouble>,
    energy: Result<unsafe extern "C" fn(Handle, *mut u64, *mut f32, *mut u64) -> Status, Trouble>,
    uuid: Result<unsafe extern "C" fn(Handle, *mut c_uint, *mut c_char) -> Status, Trouble>,
    /// `26.0.2`, as numbers.
    version: Option<[u32; 3]>,
}

fn failed(detail: String) -> AcceleratorProblem {
    AcceleratorProblem::Failed {
        vendor: Vendor::Amd,
        detail,
    }
}

/// What a status means for the value that was asked for.
fn check(status: Status) -> Result<(), Trouble> {
    match status {
        0 => Ok(()),
        // Invalid arguments, not supported, not yet implemented.
        1..=3 => Err(Trouble::not_supported()),
        10 => Err(Trouble::not_permitted()),
        // Retry, busy, no data.
        9 | 30 | 40 => Err(Trouble::Nothing),
        code => Err(Trouble::Passing(format!("AMD SMI status {code}"))),
    }
}

impl Api {
    fn open() -> Result<Self, AcceleratorProblem> {
        let library = Library::open(Vendor::Amd, LIBRARY_VARIABLE, &LIBRARY_NAMES)?;
        let missing = |name: &'static str| move |_| failed(format!("it has no {name}"));
        // SAFETY: the types are those of `amdsmi.h`.
        let mut api = unsafe {
            let init: unsafe extern "C" fn(u64) -> Status =
                library.function("amdsmi_init").map_err(missing("amdsmi_init"))?;
            let status = init(INIT_AMD_GPUS);
            if status != 0 {
                return Err(failed(format!("amdsmi_init gives status {status}")));
            }
            Self {
                sockets: library
                    .function("amdsmi_get_socket_handles")
                    .map_err(missing("amdsmi_get_socket_handles"))?,
                processors: library
                    .function("amdsmi_get_processor_handles")
                    .map_err(missing("amdsmi_get_processor_handles"))?,
                kind: library.function("amdsmi_get_processor_type"),
                activity: library.function("amdsmi_get_gpu_activity"),
                power: library.function("amdsmi_get_power_info"),
                asic: library.function("amdsmi_get_gpu_asic_info"),
                memory_total: library.function("amdsmi_get_gpu_memory_total"),
                memory_usage: library.function("amdsmi_get_gpu_memory_usage"),
                temperature: library.function("amdsmi_get_temp_metric"),
                clock: library.function("amdsmi_get_clock_info"),
                power_cap: library.function("amdsmi_get_power_cap_info"),
                energy: library.function("amdsmi_get_energy_count"),
                uuid: library.function("amdsmi_get_gpu_device_uuid"),
                version: None,
                _library: library,
            }
        };
        api.version = api.read_version();
        Ok(api)
    }

    fn read_version(&self) -> Option<[u32; 3]> {
        let mut buffer: Buffer = [0; BUFFER_WORDS];
        // SAFETY: `amdsmi_version_t` fits into the buffer.
        let status = unsafe {
            let version: unsafe extern "C" fn(*mut Buffer) -> Status =
                self._library.function("amdsmi_get_lib_version").ok()?;
            version(&raw mut buffer)
        };
        (status == 0).then(|| [word(&buffer, 0), word(&buffer, 1), word(&buffer, 2)])
    }

    /// All GPUs, in the order in which the library lists them.
    fn gpus(&self) -> Result<Vec<Handle>, AcceleratorProblem> {
        let mut found = Vec::new();
        for socket in handles(|count, list| {
            // SAFETY: `list` is null or has room for `count` handles.
            unsafe { (self.sockets)(count, list) }
        })? {
            let processors = handles(|count, list| {
                // SAFETY: the socket comes from the library; `list` is null or has room for `count` handles.
                unsafe { (self.processors)(socket, count, list) }
            })?;
            found.extend(processors.into_iter().filter(|processor| self.is_gpu(*processor)));
        }
        Ok(found)
    }

    fn is_gpu(&self, processor: Handle) -> bool {
        let Ok(kind) = &self.kind else { return true };
        let mut value = 0;
        // SAFETY: the handle comes from the library, the pointer is ours.
        let status = unsafe { kind(processor, &raw mut value) };
        status != 0 || value == PROCESSOR_TYPE_AMD_GPU
    }

    fn uuid(&self, processor: Handle) -> Option<String> {
        let call = self.uuid.as_ref().ok()?;
        let mut bytes = [0_u8; 128];
        let mut length = bytes.len() as c_uint;
        // SAFETY: the buffer has `length` bytes.
        let status = unsafe { call(processor, &raw mut length, bytes.as_mut_ptr().cast()) };
        if status == 0 { super::text(&bytes) } else { None }
    }

    /// `AMD SMI 26.0.2`.
    fn name(&self) -> String {
        match self.version {
            Some([major, minor, release]) => format!("AMD SMI {major}.{minor}.{release}"),
            None => "AMD SMI".into(),
        }
    }
}

/// A list that is asked for its length first.
fn handles(call: impl Fn(*mut u32, *mut Handle) -> Status) -> Result<Vec<Handle>, AcceleratorProblem> {
    let mut count = 0;
    let status = call(&raw mut count, std::ptr::null_mut());
    if status != 0 {
        return Err(failed(format!("its devices cannot be listed, status {status}")));
    }
    let mut list = vec![std::ptr::null_mut(); count.min(MOST_SOCKETS) as usize];
    count = count.min(MOST_SOCKETS);
    if list.is_empty() {
        return Ok(list);
    }
    let status = call(&raw mut count, list.as_mut_ptr());
    if status != 0 {
        return Err(failed(format!("its devices cannot be listed, status {status}")));
    }
    list.truncate(count as usize);
    Ok(list)
}

/// The 32-bit number at a position counted in such numbers.
fn word(buffer: &Buffer, position: usize) -> u32 {
    let pair = buffer[position / 2].to_ne_bytes();
    let at = position % 2 * 4;
    u32::from_ne_bytes([pair[at], pair[at + 1], pair[at + 2], pair[at + 3]])
}

/// A value that the library cannot tell is all ones, in 16 bits or in 32.
fn known(value: u32) -> Option<u32> {
    (value != 0xFFFF && value != u32::MAX).then_some(value)
}

/// Watts from `amdsmi_power_info_t`: the current value, else the average one. No GPU draws nothing.
fn watts(buffer: &Buffer, major: u32) -> Option<f64> {
    let positions = if major >= FIRST_WITH_SOCKET_POWER {
        [2, 3, 0]
    } else {
        [0, 1, 1]
    };
    positions
        .into_iter()
        .find_map(|at| known(word(buffer, at)).filter(|watts| *watts > 0))
        .map(f64::from)
}

struct Gpu {
    api: Rc<Api>,
    index: u32,
    handle: Handle,
    uuid: Option<String>,
    fields: Fields,
    slow_read: Option<Instant>,
    power_limit_w: Option<f64>,
}

impl Gpu {
    fn buffer(
        &mut self,
        name: &'static str,
        call: impl FnOnce(&Api, Handle, *mut Buffer) -> Result<Status, Trouble>,
    ) -> Option<Buffer> {
        let Self {
            api, handle, fields, ..
        } = self;
        fields.ask(name, || {
            let mut buffer: Buffer = [u64::MAX; BUFFER_WORDS];
            check(call(api, *handle, &raw mut buffer)?)?;
            Ok::<_, Trouble>(buffer)
        })
    }

    fn number(
        &mut self,
        name: &'static str,
        call: impl FnOnce(&Api, Handle, *mut u64) -> Result<Status, Trouble>,
    ) -> Option<u64> {
        let Self {
            api, handle, fields, ..
        } = self;
        fields.ask(name, || {
            let mut value = 0;
            check(call(api, *handle, &raw mut value)?)?;
            Ok::<_, Trouble>(value)
        })
    }

    fn temperature(&mut self, name: &'static str, metric: c_uint) -> Option<f64> {
        let Self {
            api, handle, fields, ..
        } = self;
        let degrees = fields.ask(name, || {
            let call = api.temperature.clone()?;
            let mut value = 0;
            let mut read = |sensor| {
                // SAFETY: the handle comes from the library, the pointer is ours.
                check(unsafe { call(*handle, sensor, metric, &raw mut value) })
            };
            // The hottest place of the chip; boards without that sensor have one at its edge.
            read(TEMPERATURE_HOTSPOT).or_else(|_| read(TEMPERATURE_EDGE))?;
            Ok::<_, Trouble>(value)
        })?;
        self.fields.within(name, degrees as f64, MOST_DEGREES)
    }

    /// Now and the highest, in MHz.
    fn clock(&mut self, name: &'static str, kind: c_uint) -> (Option<f64>, Option<f64>) {
        let info = self.buffer(name, |api, handle, out| {
            let call = api.clock.clone()?;
            // SAFETY: `amdsmi_clk_info_t` fits into the buffer.
            Ok(unsafe { call(handle, kind, out) })
        });
        let Some(info) = info else { return (None, None) };
        let mut value = |at| {
            let megahertz = known(word(&info, at)).filter(|megahertz| *megahertz > 0)?;
            self.fields.within(name, f64::from(megahertz), MOST_MEGAHERTZ)
        };
        (value(0), value(2))
    }

    fn memory(&mut self, name: &'static str, total: bool) -> Option<u64> {
        self.number(name, |api, handle, out| {
            let call = if total {
                &api.memory_total
            } else {
                &api.memory_usage
            };
            let call = call.clone()?;
            // SAFETY: the handle comes from the library, the pointer is ours.
            Ok(unsafe { call(handle, MEM_TYPE_VRAM, out) })
        })
    }

    fn power(&mut self) -> Option<f64> {
        let major = self.api.version.map(|[major, ..]| major);
        let Some(major) = major.filter(|major| *major >= OLDEST_KNOWN) else {
            if !self.fields.is_off("power") {
                self.fields
                    .give_up("power", "an unknown version of the library".into());
            }
            return None;
        };
        let info = self.buffer("power", |api, handle, out| {
            let call = api.power.clone()?;
            // SAFETY: `amdsmi_power_info_t` fits into the buffer.
            Ok(unsafe { call(handle, out) })
        })?;
        self.fields.within("power", watts(&info, major)?, MOST_WATTS)
    }

    fn energy(&mut self) -> Option<f64> {
        let Self {
            api, handle, fields, ..
        } = self;
        fields
            .ask("energy", || {
                let call = api.energy.clone()?;
                let (mut count, mut microjoules, mut stamp) = (0, 0.0, 0);
                // SAFETY: the handle comes from the library, the pointers are ours.
                check(unsafe { call(*handle, &raw mut count, &raw mut microjoules, &raw mut stamp) })?;
                Ok::<_, Trouble>(count as f64 * f64::from(microjoules) / 1e6)
            })
            .filter(|joules| *joules > 0.0)
    }

    fn read_slow(&mut self, now: Instant) {
        if self
            .slow_read
            .is_some_and(|at| now.saturating_duration_since(at) < SLOW_EVERY)
        {
            return;
        }
        self.slow_read = Some(now);
        let cap = self.buffer("power_limit", |api, handle, out| {
            let call = api.power_cap.clone()?;
            // SAFETY: `amdsmi_power_cap_info_t` fits into the buffer.
            Ok(unsafe { call(handle, 0, out) })
        });
        self.power_limit_w = cap.map(|cap| cap[0]).filter(|cap| *cap > 0).and_then(|cap| {
            // Microwatts; versions before ROCm 6.1 gave watts, and no limit is in between.
            let watts = if cap >= 1_000_000 {
                cap as f64 / 1e6
            } else {
                cap as f64
            };
            self.fields.within("power_limit", watts, MOST_WATTS)
        });
    }
}

impl gpus::Gpu for Gpu {
    fn index(&self) -> u32 {
        self.index
    }

    fn fields(&mut self) -> &mut Fields {
        &mut self.fields
    }

    fn details(&mut self) -> GpuInfo {
        let asic = self.buffer("name", |api, handle, out| {
            let call = api.asic.clone()?;
            // SAFETY: `amdsmi_asic_info_t` fits into the buffer.
            Ok(unsafe { call(handle, out) })
        });
        // `market_name` is first in every version and at most 256 bytes long.
        let name = asic.and_then(|asic| {
            let bytes: Vec<u8> = asic[..32].iter().flat_map(|part| part.to_ne_bytes()).collect();
            super::text(&bytes)
        });
        GpuInfo {
            name,
            uuid: self.uuid.clone(),
            mem_total_bytes: self.memory("memory_total", true),
            sm_clock_max_mhz: self.clock("sm_clock", CLK_TYPE_GFX).1,
            mem_clock_max_mhz: self.clock("mem_clock", CLK_TYPE_MEM).1,
            temp_slowdown_c: self
                .temperature("temp_slowdown", TEMP_CRITICAL)
                .filter(|degrees| *degrees > 0.0),
            temp_shutdown_c: self
                .temperature("temp_shutdown", TEMP_EMERGENCY)
                .filter(|degrees| *degrees > 0.0),
            ..GpuInfo::default()
        }
    }

    fn read(&mut self, now: Instant, events: &mut Vec<EventKind>) -> Option<GpuSample> {
        let mut sample = GpuSample::default();
        if self.fields.lost().is_none() {
            self.read_slow(now);
            sample.power_limit_w = self.power_limit_w;
            let activity = self.buffer("util", |api, handle, out| {
                let call = api.activity.clone()?;
                // SAFETY: `amdsmi_engine_usage_t` fits into the buffer.
                Ok(unsafe { call(handle, out) })
            });
            if let Some(activity) = activity {
                let mut share = |name, at| {
                    let percent = known(word(&activity, at))?;
                    self.fields.share(name, f64::from(percent))
                };
                sample.util = share("util", 0);
                sample.mem_util = share("mem_util", 1);
            }
            sample.mem_used_bytes = self.memory("memory", false);
            sample.mem_free_bytes = sample
                .mem_used_bytes
                .and_then(|used| self.memory("memory_total", true)?.checked_sub(used));
            sample.power_w = self.power();
            sample.energy_j = self.energy();
            sample.temp_c = self.temperature("temp", TEMP_CURRENT);
            sample.sm_clock_mhz = self.clock("sm_clock", CLK_TYPE_GFX).0;
            sample.mem_clock_mhz = self.clock("mem_clock", CLK_TYPE_MEM).0;
        }
        events.extend(self.fields.take_loss());
        self.fields.lost().is_none().then_some(sample)
    }
}

/// What HIP leaves visible. `HIP_VISIBLE_DEVICES` (and CUDA's variable, which HIP reads too) counts within
/// `ROCR_VISIBLE_DEVICES`.
pub fn scope() -> GpuScope {
    let variable = |name: &str| std::env::var(name).ok();
    let outer = GpuScope::from_list(&["ROCR_VISIBLE_DEVICES"], variable);
    let inner = GpuScope::from_list(&["HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"], variable);
    match (outer.wanted.as_deref(), &inner.wanted) {
        (Some(outer), Some(names)) => GpuScope {
            wanted: Some(within(outer, names)),
            ..inner
        },
        (_, Some(_)) => inner,
        (Some(_), None) => outer,
        (None, None) => GpuScope::from_list(&["SLURM_STEP_GPUS", "SLURM_JOB_GPUS"], variable),
    }
}

fn within(outer: &[GpuName], names: &[GpuName]) -> Vec<GpuName> {
    let found = |name: &GpuName| match name {
        GpuName::Index(index) => outer.get(usize::try_from(*index).ok()?).cloned(),
        other => Some(other.clone()),
    };
    names.iter().filter_map(found).collect()
}

fn all(api: &Rc<Api>) -> Result<Vec<Gpu>, AcceleratorProblem> {
    let numbered = (0_u32..).zip(api.gpus()?);
    Ok(numbered
        .map(|(index, handle)| Gpu {
            uuid: api.uuid(handle),
            api: Rc::clone(api),
            index,
            handle,
            fields: Fields::new(index),
            slow_read: None,
            power_limit_w: None,
        })
        .collect())
}

pub fn start(scope: GpuScope) -> GpuSource {
    GpuSource::start("amdsmi", move |port, table| {
        let opened = Api::open().and_then(|api| {
            let api = Rc::new(api);
            let gpus = all(&api)?;
            let uuids: Vec<_> = gpus.iter().map(|gpu| gpu.uuid.clone()).collect();
            let (picked, notes) = super::pick(Vendor::Amd, &scope, &uuids)?;
            let gpus: Vec<Gpu> = gpus
                .into_iter()
                .enumerate()
                .filter(|(position, _)| picked.contains(position))
                .map(|(_, gpu)| gpu)
                .collect();
            Ok((api, gpus, notes))
        });
        match opened {
            Ok((api, gpus, mut notes)) => {
                notes.push(super::not_run_on_hardware(&api.name()));
                lock(table).note(notes);
                let version = api
                    .version
                    .map(|[major, minor, release]| format!("{major}.{minor}.{release}"));
                let versions: BTreeMap<_, _> = version
                    .map(|version| ("amdsmi".into(), version))
                    .into_iter()
                    .collect();
                gpus::serve(gpus, versions, port, table);
            }
            Err(problem) => lock(table).give_up(GpuProblem::Accelerator(problem)),
        }
    })
}

pub fn list() -> Result<(String, Vec<Listed>), AcceleratorProblem> {
    let api = Rc::new(Api::open()?);
    let listed = all(&api)?.into_iter().map(|mut gpu| Listed {
        index: gpu.index,
        info: gpus::Gpu::details(&mut gpu),
    });
    let listed: Vec<Listed> = listed.collect();
    if listed.is_empty() {
        return Err(AcceleratorProblem::NoDevices { vendor: Vendor::Amd });
    }
    Ok((api.name(), listed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(words: &[u32]) -> Buffer {
        let mut buffer = [u64::MAX; BUFFER_WORDS];
        for (into, pair) in buffer.iter_mut().zip(words.chunks(2)) {
            let (first, second) = (
                pair[0].to_ne_bytes(),
                pair.get(1).copied().unwrap_or(0).to_ne_bytes(),
            );
            let bytes: Vec<u8> = first.into_iter().chain(second).collect();
            *into = u64::from_ne_bytes(bytes.try_into().unwrap());
        }
        buffer
    }

    #[test]
    fn power_is_read_in_the_layout_of_the_version() {
        // Before ROCm 6.4: current, average, voltages.
        assert_eq!(watts(&buffer(&[0xFFFF, 250, 900, 900]), 24), Some(250.0));
        assert_eq!(watts(&buffer(&[640, 0xFFFF, 900, 900]), 24), Some(640.0));
        // Since then: a 64-bit socket power, current, average.
        assert_eq!(watts(&buffer(&[700, 0, 640, u32::MAX]), 26), Some(640.0));
        assert_eq!(watts(&buffer(&[700, 0, u32::MAX, u32::MAX]), 26), Some(700.0));
        assert_eq!(watts(&buffer(&[u32::MAX, 0, 0, 0]), 25), None);
    }

    #[test]
    fn hip_counts_within_rocr() {
        let index = |number| GpuName::Index(number);
        assert_eq!(within(&[index(4), index(6)], &[index(1), index(5)]), [index(6)]);
    }
}
