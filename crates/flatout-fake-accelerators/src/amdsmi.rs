//! AMD SMI, as `amdsmi.h` declares it. Its contracts: pointers are null or valid for what the function writes.

#![allow(clippy::missing_safety_doc, reason = "AMD SMI's own contract, named above")]

use crate::{DEVICES, fault, fill};
use std::ffi::{c_char, c_uint, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

type Status = c_uint;
const SUCCESS: Status = 0;
const INVAL: Status = 1;
const NOT_SUPPORTED: Status = 2;
const INIT_ERROR: Status = 18;
const NOT_INIT: Status = 32;

static STARTED: AtomicBool = AtomicBool::new(false);

#[repr(C)]
struct EngineUsage {
    gfx_activity: u32,
    umc_activity: u32,
    mm_activity: u32,
    reserved: [u32; 13],
}

/// Until ROCm 6.3.
#[repr(C)]
struct OldPowerInfo {
    current_socket_power: u32,
    average_socket_power: u32,
    gfx_voltage: u32,
    soc_voltage: u32,
    mem_voltage: u32,
    power_limit: u32,
    reserved: [u32; 11],
}

/// Since ROCm 7.0; in 6.4 the voltages have 32 bits, after the same beginning.
#[repr(C)]
struct PowerInfo {
    socket_power: u64,
    current_socket_power: u32,
    average_socket_power: u32,
    gfx_voltage: u64,
    soc_voltage: u64,
    mem_voltage: u64,
    power_limit: u32,
    reserved: [u64; 18],
}

#[repr(C)]
struct PowerCapInfo {
    power_cap: u64,
    default_power_cap: u64,
    dpm_cap: u64,
    min_power_cap: u64,
    max_power_cap: u64,
    reserved: [u64; 3],
}

#[repr(C)]
struct ClkInfo {
    clk: u32,
    min_clk: u32,
    max_clk: u32,
    clk_locked: u8,
    clk_deep_sleep: u8,
    reserved: [u32; 4],
}

#[repr(C)]
struct AsicInfo {
    market_name: [u8; 256],
    vendor_id: u32,
    vendor_name: [u8; 256],
    rest: [u64; 24],
}

#[repr(C)]
struct OldVersion {
    year: u32,
    major: u32,
    minor: u32,
    release: u32,
    build: *const c_char,
}

#[repr(C)]
struct Version {
    major: u32,
    minor: u32,
    release: u32,
    build: *const c_char,
}

/// Handles are numbers from 1, sockets from 101: never null, never mistaken for each other.
fn handle(number: usize) -> *mut c_void {
    std::ptr::without_provenance_mut(number)
}

/// Writes an answer about a GPU.
///
/// # Safety
/// `out` is null or valid for a write.
unsafe fn give<T>(processor: *mut c_void, out: *mut T, value: T) -> Status {
    if !STARTED.load(Ordering::SeqCst) {
        return NOT_INIT;
    }
    if !(1..=DEVICES).contains(&(processor as usize)) || out.is_null() {
        return INVAL;
    }
    // SAFETY: not null, and the caller vouches for the rest.
    unsafe { out.write(value) };
    SUCCESS
}

/// Fills a list, or gives its length where the caller has no room.
///
/// # Safety
/// `count` is null or valid, `out` is null or has room for `*count` handles.
unsafe fn give_list(count: *mut u32, out: *mut *mut c_void, items: &[*mut c_void]) -> Status {
    if !STARTED.load(Ordering::SeqCst) {
        return NOT_INIT;
    }
    if count.is_null() {
        return INVAL;
    }
    // SAFETY: as above.
    unsafe {
        if out.is_null() {
            count.write(u32::try_from(items.len()).unwrap_or(0));
            return SUCCESS;
        }
        let room = count.read() as usize;
        let given = items.len().min(room);
        out.copy_from_nonoverlapping(items.as_ptr(), given);
        count.write(u32::try_from(given).unwrap_or(0));
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn amdsmi_init(flags: u64) -> Status {
    if fault("does-not-start") {
        return INIT_ERROR;
    }
    // AMD GPUs only, as flatout asks.
    if flags != 2 {
        return INVAL;
    }
    STARTED.store(true, Ordering::SeqCst);
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdsmi_get_lib_version(out: *mut c_void) -> Status {
    if out.is_null() {
        return INVAL;
    }
    let build = c"fake".as_ptr();
    // SAFETY: the caller's structure is that of the version.
    unsafe {
        if fault("old") {
            out.cast::<OldVersion>().write(OldVersion {
                year: 24,
                major: 6,
                minor: 2,
                release: 0,
                build,
            });
        } else {
            out.cast::<Version>().write(Version {
                major: 26,
                minor: 0,
                release: 2,
                build,
            });
        }
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdsmi_get_socket_handles(count: *mut u32, out: *mut *mut c_void) -> Status {
    let sockets: Vec<_> = (0..DEVICES).map(|number| handle(101 + number)).collect();
    let shown = if fault("no-devices") { 0 } else { DEVICES };
    // SAFETY: the caller's pointers.
    unsafe { give_list(count, out, &sockets[..shown]) }
}

/// A socket has one GPU, and a CPU that nobody asked for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdsmi_get_processor_handles(
    socket: *mut c_void,
    count: *mut u32,
    out: *mut *mut c_void,
) -> Status {
    let number = (socket as usize).wrapping_sub(100);
    if !(1..=DEVICES).contains(&number) {
        return INVAL;
    }
    // SAFETY: the caller's pointers.
    unsafe { give_list(count, out, &[handle(number), handle(50 + number)]) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdsmi_get_processor_type(processor: *mut c_void, out: *mut c_uint) -> Status {
    if out.is_null() {
        return INVAL;
    }
    let kind = if (processor as usize) <= DEVICES { 1 } else { 2 };
    // SAFETY: not null, and the caller vouches for the rest.
    unsafe { out.write(kind) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdsmi_get_gpu_activity(processor: *mut c_void, out: *mut c_void) -> Status {
    let usage = EngineUsage {
        gfx_activity: if fault("absurd") { 40_000 } else { 87 },
        umc_activity: 42,
        mm_activity: 0xFFFF,
        reserved: [0; 13],
    };
    // SAFETY: the caller's structure.
    unsafe { give(processor, out.cast(), usage) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdsmi_get_power_info(processor: *mut c_void, out: *mut c_void) -> Status {
    if fault("no-power") {
        return NOT_SUPPORTED;
    }
    let now = if fault("absurd") { 4_000_000_000 } else { 612 };
    // SAFETY: the caller's structure is that of the version.
    unsafe {
        if fault("old") {
            let info = OldPowerInfo {
                current_socket_power: 0xFFFF,
                average_socket_power: now,
                gfx_voltage: 900,
                soc_voltage: 900,
                mem_voltage: 900,
                power_limit: 750,
                reserved: [0; 11],
            };
            return give(processor, out.cast(), info);
        }
        let info = PowerInfo {
            socket_power: u64::from(now),
            current_socket_power: now,
            average_socket_power: u32::MAX,
            gfx_voltage: 900,
            soc_voltage: 900,
            mem_voltage: 900,
            power_limit: 750,
            reserved: [0; 18],
        };
        give(processor, out.cast(), info)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdsmi_get_power_cap_info(
    processor: *mut c_void,
    sensor: u32,
    out: *mut c_void,
) -> Status {
    if sensor != 0 {
        return INVAL;
    }
    let info = PowerCapInfo {
        power_cap: 750_000_000,
        default_power_cap: 750_000_000,
        dpm_cap: 0,
        min_power_cap: 0,
        max_power_cap: 750_000_000,
        reserved: [0; 3],
    };
    // SAFETY: the caller's structure.
    unsafe { give(processor, out.cast(), info) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdsmi_get_clock_info(
    processor: *mut c_void,
    kind: c_uint,
    out: *mut c_void,
) -> Status {
    let (clk, max_clk) = match kind {
        0 => (2100, 2104),
        4 => (1300, 1300),
        _ => return NOT_SUPPORTED,
    };
    let info = ClkInfo {
        clk,
        min_clk: 132,
        max_clk,
        clk_locked: 0,
        clk_deep_sleep: 0xFF,
        reserved: [0; 4],
    };
    // SAFETY: the caller's structure.
    unsafe { give(processor, out.cast(), info) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdsmi_get_temp_metric(
    processor: *mut c_void,
    sensor: c_uint,
    metric: c_uint,
    out: *mut i64,
) -> Status {
    // Only the hotspot has a sensor, as on MI300.
    let degrees = match (sensor, metric) {
        (1, 0) => 71,
        (1, 5) => 100,
        (1, 7) => 105,
        _ => return NOT_SUPPORTED,
    };
    // SAFETY: the caller's pointer.
    unsafe { give(processor, out, degrees) }
}

fn memory(kind: c_uint, bytes: u64) -> Result<u64, Status> {
    if kind == 0 { Ok(bytes) } else { Err(INVAL) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdsmi_get_gpu_memory_total(
    processor: *mut c_void,
    kind: c_uint,
    out: *mut u64,
) -> Status {
    match memory(kind, 192 << 30) {
        // SAFETY: the caller's pointer.
        Ok(bytes) => unsafe { give(processor, out, bytes) },
        Err(status) => status,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdsmi_get_gpu_memory_usage(
    processor: *mut c_void,
    kind: c_uint,
    out: *mut u64,
) -> Status {
    match memory(kind, 48 << 30) {
        // SAFETY: the caller's pointer.
        Ok(bytes) => unsafe { give(processor, out, bytes) },
        Err(status) => status,
    }
}

/// 612 W since the start, counted in units of 15.259 µJ.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdsmi_get_energy_count(
    processor: *mut c_void,
    count: *mut u64,
    resolution: *mut f32,
    stamp: *mut u64,
) -> Status {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    let seconds = BEGAN.get_or_init(Instant::now).elapsed().as_secs_f64();
    let units = (1.0 + seconds) * 612.0 * 1e6 / 15.259;
    // SAFETY: the caller's pointers.
    unsafe {
        let status = give(processor, resolution, 15.259);
        if status != SUCCESS || stamp.is_null() {
            return status;
        }
        stamp.write((seconds * 1e9) as u64);
        give(processor, count, units as u64)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdsmi_get_gpu_asic_info(processor: *mut c_void, out: *mut c_void) -> Status {
    let mut info = AsicInfo {
        market_name: [0; 256],
        vendor_id: 0x1002,
        vendor_name: [0; 256],
        rest: [0; 24],
    };
    fill(&mut info.market_name, "AMD Instinct MI300X");
    fill(&mut info.vendor_name, "Advanced Micro Devices Inc. [AMD/ATI]");
    // SAFETY: the caller's structure.
    unsafe { give(processor, out.cast(), info) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdsmi_get_gpu_device_uuid(
    processor: *mut c_void,
    length: *mut c_uint,
    out: *mut c_char,
) -> Status {
    let number = processor as usize;
    if !(1..=DEVICES).contains(&number) || length.is_null() || out.is_null() {
        return INVAL;
    }
    let mut text = [0; 38];
    fill(
        &mut text,
        &format!("{:02x}ff74a1-0000-1000-80f5-000000000000", number - 1),
    );
    // SAFETY: the caller's buffer has `*length` bytes.
    unsafe {
        if (length.read() as usize) < text.len() {
            return INVAL;
        }
        out.cast::<u8>()
            .copy_from_nonoverlapping(text.as_ptr(), text.len());
    }
    SUCCESS
}
