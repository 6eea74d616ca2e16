//! The processes on a GPU.

use super::device::ABSURD_PERCENT;
use super::{give_list, percent};
use crate::fault::Field;
use crate::trace::Process;
use crate::world::{Code, NO_DATA, NOT_FOUND, Now, now};
use nvml_wrapper_sys::bindings::*;
use std::ffi::{c_uint, c_ulonglong};

const NOT_AVAILABLE: c_ulonglong = c_ulonglong::MAX;

fn processes<T>(
    device: nvmlDevice_t,
    field: Field,
    item: impl Fn(&Now<'_>, &Process) -> Option<T>,
) -> Result<Vec<T>, Code> {
    let now = now(device, field)?;
    let frame = now.frame().ok_or(NO_DATA)?;
    Ok(frame
        .processes
        .iter()
        .filter_map(|process| item(&now, process))
        .collect())
}

fn with_instances(_: &Now<'_>, process: &Process) -> Option<nvmlProcessInfo_t> {
    Some(nvmlProcessInfo_t {
        pid: process.pid,
        usedGpuMemory: process.mem_bytes.unwrap_or(NOT_AVAILABLE),
        gpuInstanceId: c_uint::MAX,
        computeInstanceId: c_uint::MAX,
    })
}

fn without_instances(_: &Now<'_>, process: &Process) -> Option<nvmlProcessInfo_v1_t> {
    Some(nvmlProcessInfo_v1_t {
        pid: process.pid,
        usedGpuMemory: process.mem_bytes.unwrap_or(NOT_AVAILABLE),
    })
}

macro_rules! lists {
    ($($name:ident -> $type:ty = $list:expr;)*) => {
        $(#[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(device: nvmlDevice_t, count: *mut c_uint, out: *mut $type) -> Code {
            let list: fn(nvmlDevice_t) -> Result<Vec<$type>, Code> = $list;
            // SAFETY: the caller's array of `*count` items.
            unsafe { give_list(count, out, list(device)) }
        })*
    };
}

lists! {
    nvmlDeviceGetComputeRunningProcesses -> nvmlProcessInfo_v1_t = |device| processes(device, Field::Processes, without_instances);
    nvmlDeviceGetComputeRunningProcesses_v2 -> nvmlProcessInfo_t = |device| processes(device, Field::Processes, with_instances);
    nvmlDeviceGetComputeRunningProcesses_v3 -> nvmlProcessInfo_t = |device| processes(device, Field::Processes, with_instances);
    nvmlDeviceGetGraphicsRunningProcesses -> nvmlProcessInfo_v1_t = |device| processes(device, Field::Processes, |_, _| None);
    nvmlDeviceGetGraphicsRunningProcesses_v2 -> nvmlProcessInfo_t = |device| processes(device, Field::Processes, |_, _| None);
    nvmlDeviceGetGraphicsRunningProcesses_v3 -> nvmlProcessInfo_t = |device| processes(device, Field::Processes, |_, _| None);
    nvmlDeviceGetMPSComputeRunningProcesses_v3 -> nvmlProcessInfo_t = |device| processes(device, Field::Processes, |_, _| None);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetProcessUtilization(
    device: nvmlDevice_t,
    out: *mut nvmlProcessUtilizationSample_t,
    count: *mut c_uint,
    since_us: c_ulonglong,
) -> Code {
    let shares = processes(device, Field::ProcessShare, |now, process| {
        let stamp = now.world.unix_us(now.seconds);
        let share = percent(process.sm_util?);
        (stamp > since_us).then_some(nvmlProcessUtilizationSample_t {
            pid: process.pid,
            timeStamp: stamp,
            smUtil: if now.world.faults.absurd {
                ABSURD_PERCENT
            } else {
                share
            },
            memUtil: share / 2,
            encUtil: 0,
            decUtil: 0,
        })
    });
    let shares = shares.and_then(|shares| {
        if shares.is_empty() {
            Err(NOT_FOUND)
        } else {
            Ok(shares)
        }
    });
    // SAFETY: the caller's array of `*count` items.
    unsafe { give_list(count, out, shares) }
}
