//! The readings the driver buffers: six a second, the last twenty seconds.

use super::device::util_at;
use super::percent;
use crate::fault::Field;
use crate::world::{Code, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, SUCCESS, now};
use nvml_wrapper_sys::bindings::*;
use std::ffi::{c_uint, c_ulonglong};

const READINGS_S: f64 = 6.0;
const KEPT: u64 = 120;

fn readings(device: nvmlDevice_t, since_us: u64) -> Result<Vec<nvmlSample_t>, Code> {
    let now = now(device, Field::Samples)?;
    let newest = (now.seconds * READINGS_S).floor() as i64;
    let oldest = newest - KEPT as i64 + 1;
    let first = ((now.world.seconds_at(since_us) * READINGS_S)
        .floor()
        .clamp(-1e15, 1e15) as i64)
        .max(oldest);
    let mut samples = Vec::new();
    for reading in first.max(0)..=newest {
        let seconds = reading as f64 / READINGS_S;
        let stamp = now.world.unix_us(seconds);
        if stamp > since_us {
            let value = percent(util_at(&now, seconds)?);
            samples.push(nvmlSample_t {
                timeStamp: stamp,
                sampleValue: nvmlValue_t { uiVal: value },
            });
        }
    }
    Ok(samples)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetSamples(
    device: nvmlDevice_t,
    kind: c_uint,
    since_us: c_ulonglong,
    value_type: *mut nvmlValueType_t,
    count: *mut c_uint,
    samples: *mut nvmlSample_t,
) -> Code {
    if kind != nvmlSamplingType_enum_NVML_GPU_UTILIZATION_SAMPLES {
        return NOT_SUPPORTED;
    }
    if value_type.is_null() || count.is_null() {
        return INVALID_ARGUMENT;
    }
    let found = match readings(device, since_us) {
        Ok(found) if found.is_empty() => return NOT_FOUND,
        Ok(found) => found,
        Err(code) => return code,
    };
    // SAFETY: the pointers are not null, and the caller's array holds `*count` samples.
    unsafe {
        value_type.write(nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT);
        let needed = c_uint::try_from(found.len()).unwrap_or(c_uint::MAX);
        if samples.is_null() {
            // Without room the driver tells how many there may be, and succeeds.
            count.write(needed);
            return SUCCESS;
        }
        let room = count.read().min(needed);
        samples.copy_from_nonoverlapping(found.as_ptr(), room as usize);
        count.write(room);
    }
    SUCCESS
}
