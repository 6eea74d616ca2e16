//! What a GPU is: name, identity, limits, modes.

use super::{give, give_text};
use crate::fault::Field;
use crate::trace::GpuTrace;
use crate::world::{Code, INVALID_ARGUMENT, NOT_SUPPORTED, Now, now};
use nvml_wrapper_sys::bindings::*;
use std::ffi::{c_char, c_int, c_uint, c_ulonglong};

fn detail<T>(device: nvmlDevice_t, value: impl FnOnce(&Now<'_>) -> T) -> Result<T, Code> {
    now(device, Field::Details).map(|now| value(&now))
}

fn gpu(device: nvmlDevice_t) -> Result<&'static GpuTrace, Code> {
    now(device, Field::Details).map(|now| now.gpu)
}

macro_rules! numbers {
    ($($name:ident($($argument:ident: $argument_type:ty),*) -> $type:ty = $value:expr;)*) => {
        $(#[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(device: nvmlDevice_t, $($argument: $argument_type,)* out: *mut $type) -> Code {
            $(let _ = $argument;)*
            // SAFETY: the caller's pointer.
            unsafe { give(out, detail(device, $value)) }
        })*
    };
}

numbers! {
    nvmlDeviceGetIndex() -> c_uint = |now| now.index;
    nvmlDeviceGetMinorNumber() -> c_uint = |now| now.index;
    nvmlDeviceGetMaxPcieLinkGeneration() -> c_uint = |now| now.gpu.pcie_generation;
    nvmlDeviceGetMaxPcieLinkWidth() -> c_uint = |now| now.gpu.pcie_width;
    nvmlDeviceGetCurrPcieLinkGeneration() -> c_uint = |now| now.gpu.pcie_generation;
    nvmlDeviceGetCurrPcieLinkWidth() -> c_uint = |now| now.gpu.pcie_width;
    nvmlDeviceGetPersistenceMode() -> c_uint = |_| 1;
    nvmlDeviceGetDisplayMode() -> c_uint = |_| 0;
    nvmlDeviceGetDisplayActive() -> c_uint = |_| 0;
    nvmlDeviceGetComputeMode() -> c_uint = |_| 0;
    nvmlDeviceGetPerformanceState() -> c_uint = |_| 0;
    nvmlDeviceIsMigDeviceHandle() -> c_uint = |_| 0;
    nvmlDeviceGetMaxMigDeviceCount() -> c_uint = |_| 0;
    nvmlDeviceGetTotalEccErrors(kind: c_uint, counter: c_uint) -> c_ulonglong = |_| 0;
    nvmlDeviceGetBrand() -> c_uint = |_| nvmlBrandType_enum_NVML_BRAND_NVIDIA;
    nvmlDeviceGetArchitecture() -> c_uint = |_| NVML_DEVICE_ARCH_HOPPER;
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetName(device: nvmlDevice_t, out: *mut c_char, length: c_uint) -> Code {
    // SAFETY: the caller's buffer of `length` bytes.
    unsafe { give_text(out, length, gpu(device).map(|gpu| gpu.name.as_str())) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetUUID(device: nvmlDevice_t, out: *mut c_char, length: c_uint) -> Code {
    // SAFETY: the caller's buffer of `length` bytes.
    unsafe { give_text(out, length, gpu(device).map(|gpu| gpu.uuid.as_str())) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetSerial(_: nvmlDevice_t, _: *mut c_char, _: c_uint) -> Code {
    NOT_SUPPORTED
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCudaComputeCapability(
    device: nvmlDevice_t,
    major: *mut c_int,
    minor: *mut c_int,
) -> Code {
    let capability = gpu(device).map(|gpu| gpu.compute_capability);
    if minor.is_null() {
        return INVALID_ARGUMENT;
    }
    // SAFETY: the caller's pointers.
    unsafe {
        if let Ok((_, value)) = capability {
            minor.write(value);
        }
        give(major, capability.map(|(value, _)| value))
    }
}

/// Current and pending mode, both off, as on most machines.
///
/// # Safety
/// Both pointers are null or valid.
unsafe fn two_modes(device: nvmlDevice_t, current: *mut c_uint, pending: *mut c_uint, mode: c_uint) -> Code {
    if pending.is_null() {
        return INVALID_ARGUMENT;
    }
    // SAFETY: not null, and the caller vouches for both.
    unsafe {
        pending.write(mode);
        give(current, detail(device, |_| mode))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMigMode(
    device: nvmlDevice_t,
    current: *mut c_uint,
    pending: *mut c_uint,
) -> Code {
    // SAFETY: the caller's pointers.
    unsafe { two_modes(device, current, pending, 0) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetEccMode(
    device: nvmlDevice_t,
    current: *mut c_uint,
    pending: *mut c_uint,
) -> Code {
    // SAFETY: the caller's pointers.
    unsafe { two_modes(device, current, pending, 1) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTemperatureThreshold(
    device: nvmlDevice_t,
    threshold: c_uint,
    out: *mut c_uint,
) -> Code {
    let degrees = gpu(device).and_then(|gpu| match threshold {
        0 => Ok(gpu.temp_shutdown_c),
        1 | 3 => Ok(gpu.temp_slowdown_c),
        _ => Err(NOT_SUPPORTED),
    });
    // SAFETY: the caller's pointer.
    unsafe { give(out, degrees) }
}

/// `00000000:18:00.0`, as NVML prints it.
pub fn bus_id(index: usize) -> String {
    format!("00000000:{:02X}:00.0", 0x18 + index)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPciInfo_v3(device: nvmlDevice_t, out: *mut nvmlPciInfo_t) -> Code {
    let info = detail(device, |now| {
        let text = |text: &str, into: &mut [c_char]| {
            for (slot, byte) in into.iter_mut().zip(text.bytes()) {
                *slot = byte.cast_signed();
            }
        };
        let bus = bus_id(now.index as usize);
        let mut info = nvmlPciInfo_t {
            busIdLegacy: [0; 16],
            domain: 0,
            bus: 0x18 + now.index,
            device: 0,
            pciDeviceId: 0x2335_10de,
            pciSubSystemId: 0,
            busId: [0; 32],
        };
        text(&bus, &mut info.busId[..31]);
        text(&bus[4..], &mut info.busIdLegacy[..15]);
        info
    });
    // SAFETY: the caller's pointer.
    unsafe { give(out, info) }
}
