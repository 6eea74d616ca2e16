//! Starting, versions, finding GPUs.

use super::{give, give_text};
use crate::world::{Code, INVALID_ARGUMENT, NOT_FOUND, handle, start, stop, world};
use nvml_wrapper_sys::bindings::*;
use std::ffi::{CStr, c_char, c_int, c_uint};

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit() -> Code {
    start()
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> Code {
    start()
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInitWithFlags(_flags: c_uint) -> Code {
    start()
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlShutdown() -> Code {
    stop()
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlErrorString(code: Code) -> *const c_char {
    let text: &CStr = match code {
        nvmlReturn_enum_NVML_SUCCESS => c"Success",
        nvmlReturn_enum_NVML_ERROR_UNINITIALIZED => c"Uninitialized",
        nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT => c"Invalid Argument",
        nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED => c"Not Supported",
        nvmlReturn_enum_NVML_ERROR_NO_PERMISSION => c"Insufficient Permissions",
        nvmlReturn_enum_NVML_ERROR_NOT_FOUND => c"Not Found",
        nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE => c"Insufficient Size",
        nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED => c"Driver Not Loaded",
        nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST => c"GPU is lost",
        nvmlReturn_enum_NVML_ERROR_LIB_RM_VERSION_MISMATCH => c"Driver/library version mismatch",
        nvmlReturn_enum_NVML_ERROR_NO_DATA => c"No data",
        _ => c"Unknown Error",
    };
    text.as_ptr()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetDriverVersion(out: *mut c_char, length: c_uint) -> Code {
    // SAFETY: the caller's buffer of `length` bytes.
    unsafe { give_text(out, length, world().map(|world| world.trace.driver.as_str())) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetNVMLVersion(out: *mut c_char, length: c_uint) -> Code {
    // SAFETY: the caller's buffer of `length` bytes.
    unsafe { give_text(out, length, world().map(|world| world.trace.driver.as_str())) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetCudaDriverVersion(out: *mut c_int) -> Code {
    // SAFETY: the caller's pointer.
    unsafe { give(out, world().map(|world| world.trace.cuda)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetCudaDriverVersion_v2(out: *mut c_int) -> Code {
    // SAFETY: the caller's pointer.
    unsafe { give(out, world().map(|world| world.trace.cuda)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetProcessName(pid: c_uint, out: *mut c_char, length: c_uint) -> Code {
    let find = || {
        let gpus = &world()?.trace.gpus;
        let processes = gpus
            .iter()
            .flat_map(|gpu| &gpu.frames)
            .flat_map(|frame| &frame.processes);
        let mut named = processes.filter(|process| process.pid == pid);
        named
            .find_map(|process| process.command.as_deref())
            .ok_or(NOT_FOUND)
    };
    let name = find().map(|name| {
        // As the driver does, what does not fit is cut off.
        let room = (length as usize).saturating_sub(1).min(name.len());
        (0..=room).rev().find_map(|end| name.get(..end)).unwrap_or("")
    });
    // SAFETY: the caller's buffer of `length` bytes.
    unsafe { give_text(out, length, name) }
}

fn count() -> Result<c_uint, Code> {
    Ok(c_uint::try_from(world()?.trace.gpus.len()).unwrap_or(c_uint::MAX))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCount(out: *mut c_uint) -> Code {
    // SAFETY: the caller's pointer.
    unsafe { give(out, count()) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCount_v2(out: *mut c_uint) -> Code {
    // SAFETY: the caller's pointer.
    unsafe { give(out, count()) }
}

fn by_index(index: c_uint) -> Result<nvmlDevice_t, Code> {
    if index < count()? {
        Ok(handle(index as usize))
    } else {
        Err(INVALID_ARGUMENT)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByIndex(index: c_uint, out: *mut nvmlDevice_t) -> Code {
    // SAFETY: the caller's pointer.
    unsafe { give(out, by_index(index)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, out: *mut nvmlDevice_t) -> Code {
    // SAFETY: the caller's pointer.
    unsafe { give(out, by_index(index)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, out: *mut nvmlDevice_t) -> Code {
    // SAFETY: the caller's zero-terminated text, and its pointer.
    unsafe { give(out, by_name(uuid, uuid_is)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByPciBusId_v2(
    bus: *const c_char,
    out: *mut nvmlDevice_t,
) -> Code {
    // SAFETY: the caller's zero-terminated text, and its pointer.
    unsafe {
        give(
            out,
            by_name(bus, |index, name| super::identity::bus_id(index) == name),
        )
    }
}

fn uuid_is(index: usize, name: &str) -> bool {
    world().is_ok_and(|world| world.trace.gpus[index].uuid == name)
}

/// # Safety
/// `name` is null or a zero-terminated text.
unsafe fn by_name(name: *const c_char, is: impl Fn(usize, &str) -> bool) -> Result<nvmlDevice_t, Code> {
    if name.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: not null, and zero-terminated by the caller's word.
    let name = unsafe { CStr::from_ptr(name) }
        .to_str()
        .map_err(|_| INVALID_ARGUMENT)?;
    (0..world()?.trace.gpus.len())
        .find(|index| is(*index, name))
        .map(handle)
        .ok_or(NOT_FOUND)
}
