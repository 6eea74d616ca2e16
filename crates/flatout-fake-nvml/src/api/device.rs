//! What a GPU does now: utilisation, memory, power, temperature, clocks, traffic.

use super::{give, percent, read};
use crate::fault::Field;
use crate::trace::Frame;
use crate::world::{Code, NO_DATA, NOT_SUPPORTED, Now, now};
use nvml_wrapper_sys::bindings::*;
use std::ffi::{c_int, c_uint, c_ulonglong};

/// What the driver was seen to say for a share.
pub const ABSURD_PERCENT: c_uint = 37_100;
const ABSURD: c_uint = 4_000_000_000;

/// The value, or nonsense where that is asked for.
fn sane(now: &Now<'_>, value: c_uint) -> c_uint {
    if now.world.faults.absurd { ABSURD } else { value }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetUtilizationRates(
    device: nvmlDevice_t,
    out: *mut nvmlUtilization_t,
) -> Code {
    let rates = read(device, Field::Util, |now, frame| {
        let gpu = percent(frame.util?);
        Some(nvmlUtilization_t {
            gpu: if now.world.faults.absurd {
                ABSURD_PERCENT
            } else {
                gpu
            },
            memory: percent(frame.mem_util.unwrap_or(0.0)),
        })
    });
    // SAFETY: the caller's pointer.
    unsafe { give(out, rates) }
}

fn memory(device: nvmlDevice_t) -> Result<(u64, u64), Code> {
    read(device, Field::Memory, |now, frame| {
        Some((now.gpu.mem_total_bytes, frame.mem_used_bytes?))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryInfo(device: nvmlDevice_t, out: *mut nvmlMemory_t) -> Code {
    let memory = memory(device).map(|(total, used)| nvmlMemory_t {
        total,
        free: total.saturating_sub(used),
        used,
    });
    // SAFETY: the caller's pointer.
    unsafe { give(out, memory) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryInfo_v2(device: nvmlDevice_t, out: *mut nvmlMemory_v2_t) -> Code {
    let version = (size_of::<nvmlMemory_v2_t>() | (2 << 24)) as c_uint;
    let memory = memory(device).map(|(total, used)| nvmlMemory_v2_t {
        version,
        total,
        reserved: 0,
        free: total.saturating_sub(used),
        used,
    });
    // SAFETY: the caller's pointer.
    unsafe { give(out, memory) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetBAR1MemoryInfo(_: nvmlDevice_t, _: *mut nvmlBAR1Memory_t) -> Code {
    NOT_SUPPORTED
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPowerUsage(device: nvmlDevice_t, out: *mut c_uint) -> Code {
    let milliwatts = read(device, Field::Power, |now, frame| {
        Some(sane(now, (frame.power_w? * 1000.0) as c_uint))
    });
    // SAFETY: the caller's pointer.
    unsafe { give(out, milliwatts) }
}

fn power_limit(device: nvmlDevice_t) -> Result<c_uint, Code> {
    read(device, Field::Power, |_, frame| {
        Some((frame.power_limit_w? * 1000.0) as c_uint)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetEnforcedPowerLimit(device: nvmlDevice_t, out: *mut c_uint) -> Code {
    // SAFETY: the caller's pointer.
    unsafe { give(out, power_limit(device)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPowerManagementLimit(device: nvmlDevice_t, out: *mut c_uint) -> Code {
    // SAFETY: the caller's pointer.
    unsafe { give(out, power_limit(device)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTotalEnergyConsumption(
    device: nvmlDevice_t,
    out: *mut c_ulonglong,
) -> Code {
    let millijoules = read(device, Field::Energy, |now, frame| {
        // The counter goes on when the trace begins anew.
        let first = now.gpu.frames.first()?.energy_j?;
        let last = now.gpu.frames.last()?.energy_j?;
        let joules = frame.energy_j? + now.rounds() * (last - first);
        Some((joules * 1000.0) as c_ulonglong)
    });
    // SAFETY: the caller's pointer.
    unsafe { give(out, millijoules) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTemperature(
    device: nvmlDevice_t,
    _sensor: c_uint,
    out: *mut c_uint,
) -> Code {
    let degrees = read(device, Field::Temperature, |_, frame| {
        Some(frame.temp_c?.round() as c_uint)
    });
    // SAFETY: the caller's pointer.
    unsafe { give(out, degrees) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetFanSpeed(_: nvmlDevice_t, _: *mut c_uint) -> Code {
    NOT_SUPPORTED
}

const MEMORY_CLOCK: c_uint = nvmlClockType_enum_NVML_CLOCK_MEM;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetClockInfo(
    device: nvmlDevice_t,
    clock: c_uint,
    out: *mut c_uint,
) -> Code {
    let megahertz = read(device, Field::Clocks, |now, frame| {
        let of = |frame: &Frame| {
            if clock == MEMORY_CLOCK {
                frame.mem_clock_mhz
            } else {
                frame.sm_clock_mhz
            }
        };
        Some(sane(now, of(frame)? as c_uint))
    });
    // SAFETY: the caller's pointer.
    unsafe { give(out, megahertz) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMaxClockInfo(
    device: nvmlDevice_t,
    clock: c_uint,
    out: *mut c_uint,
) -> Code {
    let megahertz = now(device, Field::Clocks).map(|now| match clock {
        MEMORY_CLOCK => now.gpu.mem_clock_max_mhz,
        _ => now.gpu.sm_clock_max_mhz,
    });
    // SAFETY: the caller's pointer.
    unsafe { give(out, megahertz) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCurrentClocksThrottleReasons(
    device: nvmlDevice_t,
    out: *mut c_ulonglong,
) -> Code {
    // SAFETY: the caller's pointer.
    unsafe { give(out, read(device, Field::Throttle, |_, frame| frame.throttle)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCurrentClocksEventReasons(
    device: nvmlDevice_t,
    out: *mut c_ulonglong,
) -> Code {
    // SAFETY: the caller's pointer.
    unsafe { give(out, read(device, Field::Throttle, |_, frame| frame.throttle)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPcieThroughput(
    device: nvmlDevice_t,
    counter: c_uint,
    out: *mut c_uint,
) -> Code {
    let kilobytes = read(device, Field::Pcie, |_, frame| {
        // The driver measures for that long.
        std::thread::sleep(std::time::Duration::from_millis(20));
        let bytes = if counter == 0 {
            frame.pcie_tx_bytes_s
        } else {
            frame.pcie_rx_bytes_s
        };
        Some((bytes? / 1024.0) as c_uint)
    });
    // SAFETY: the caller's pointer.
    unsafe { give(out, kilobytes) }
}

/// No field is told this way; callers fall back to the functions above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetFieldValues(
    device: nvmlDevice_t,
    count: c_int,
    values: *mut nvmlFieldValue_t,
) -> Code {
    if let Err(code) = now(device, Field::Details) {
        return code;
    }
    for index in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: the caller's array of `count` values.
        unsafe { (*values.add(index)).nvmlReturn = NOT_SUPPORTED };
    }
    crate::world::SUCCESS
}

/// # Safety
/// Both pointers are null or valid.
unsafe fn coder(device: nvmlDevice_t, utilisation: *mut c_uint, period_us: *mut c_uint) -> Code {
    if period_us.is_null() {
        return crate::world::INVALID_ARGUMENT;
    }
    // SAFETY: not null, and the caller vouches for both.
    unsafe {
        period_us.write(166_667);
        give(utilisation, now(device, Field::Details).map(|_| 0))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetEncoderUtilization(
    device: nvmlDevice_t,
    utilisation: *mut c_uint,
    period_us: *mut c_uint,
) -> Code {
    // SAFETY: the caller's pointers.
    unsafe { coder(device, utilisation, period_us) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetDecoderUtilization(
    device: nvmlDevice_t,
    utilisation: *mut c_uint,
    period_us: *mut c_uint,
) -> Code {
    // SAFETY: the caller's pointers.
    unsafe { coder(device, utilisation, period_us) }
}

/// The value of a frame a moment ago, for functions that tell a history.
pub fn util_at(now: &Now<'_>, seconds: f64) -> Result<f32, Code> {
    let frame = now.frame_at(seconds).ok_or(NO_DATA)?;
    if frame.util_fine.is_empty() {
        return frame.util.ok_or(NO_DATA);
    }
    // The frame's buffered readings were taken in the interval before it, evenly.
    let t = (seconds + now.gpu.shift_s).rem_euclid(now.world.trace.duration_s.max(1e-3));
    let into = ((t - frame.t) * 6.0).max(0.0) as usize;
    let index = into.min(frame.util_fine.len() - 1);
    Ok(frame.util_fine[index])
}
