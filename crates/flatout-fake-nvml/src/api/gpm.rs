//! GPM: two samples, and what happened between them.

use super::give;
use crate::fault::Field;
use crate::trace::{Frame, Gpm};
use crate::world::{Code, INVALID_ARGUMENT, NO_DATA, NOT_SUPPORTED, SUCCESS, now, world};
use nvml_wrapper_sys::bindings::*;
use std::ffi::c_uint;

/// What stands behind a sample's handle.
struct Sample {
    device: nvmlDevice_t,
    seconds: f64,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmQueryDeviceSupport(device: nvmlDevice_t, out: *mut nvmlGpmSupport_t) -> Code {
    if out.is_null() {
        return INVALID_ARGUMENT;
    }
    let supported = match now(device, Field::Gpm) {
        Ok(_) => 1,
        Err(NOT_SUPPORTED) => 0,
        Err(code) => return code,
    };
    // SAFETY: not null, and the caller vouches for the rest.
    unsafe { (*out).isSupportedDevice = supported };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmSampleAlloc(out: *mut nvmlGpmSample_t) -> Code {
    let sample = world().map(|_| {
        let sample = Box::new(Sample {
            device: std::ptr::null_mut(),
            seconds: 0.0,
        });
        Box::into_raw(sample).cast()
    });
    // SAFETY: the caller's pointer.
    unsafe { give(out, sample) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmSampleFree(sample: nvmlGpmSample_t) -> Code {
    if sample.is_null() {
        return INVALID_ARGUMENT;
    }
    // SAFETY: a handle from `nvmlGpmSampleAlloc`, given back once.
    drop(unsafe { Box::from_raw(sample.cast::<Sample>()) });
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmSampleGet(device: nvmlDevice_t, sample: nvmlGpmSample_t) -> Code {
    match now(device, Field::Gpm) {
        Err(code) => code,
        Ok(_) if sample.is_null() => INVALID_ARGUMENT,
        Ok(now) => {
            // SAFETY: a live handle from `nvmlGpmSampleAlloc`.
            let sample = unsafe { &mut *sample.cast::<Sample>() };
            (sample.device, sample.seconds) = (device, now.seconds);
            SUCCESS
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmMetricsGet(request: *mut nvmlGpmMetricsGet_t) -> Code {
    if request.is_null() {
        return INVALID_ARGUMENT;
    }
    // SAFETY: the caller's request. Its array is reached through the pointer, since other versions of the header give it
    // another length; only the `numMetrics` entries that the caller filled are touched.
    unsafe {
        let (first, second) = (
            (*request).sample1.cast::<Sample>(),
            (*request).sample2.cast::<Sample>(),
        );
        if first.is_null() || second.is_null() || (*first).device != (*second).device {
            return INVALID_ARGUMENT;
        }
        let now = match now((*second).device, Field::Gpm) {
            Ok(now) => now,
            Err(code) => return code,
        };
        let Some(frame) = now.frame_at((*second).seconds) else {
            return NO_DATA;
        };
        let metrics: *mut nvmlGpmMetric_t = (&raw mut (*request).metrics).cast();
        for index in 0..(*request).numMetrics as usize {
            let metric = &mut *metrics.add(index);
            match value(frame, metric.metricId) {
                Ok(value) => (metric.nvmlReturn, metric.value) = (SUCCESS, value),
                Err(code) => metric.nvmlReturn = code,
            }
        }
    }
    SUCCESS
}

/// Shares in per cent, traffic in MiB a second.
fn value(frame: &Frame, metric: c_uint) -> Result<f64, Code> {
    let Gpm {
        sm,
        occupancy,
        tensor,
        dram,
        fp16,
        fp32,
        nvlink_rx_bytes_s,
        nvlink_tx_bytes_s,
    } = frame.gpm;
    let percent = |share: Option<f32>| share.map(|share| f64::from(share) * 100.0);
    let mebibytes = |bytes: Option<f32>| bytes.map(|bytes| f64::from(bytes) / 1_048_576.0);
    let value = match metric {
        nvmlGpmMetricId_t_NVML_GPM_METRIC_GRAPHICS_UTIL => percent(frame.util),
        nvmlGpmMetricId_t_NVML_GPM_METRIC_SM_UTIL => percent(sm),
        nvmlGpmMetricId_t_NVML_GPM_METRIC_SM_OCCUPANCY => percent(occupancy),
        nvmlGpmMetricId_t_NVML_GPM_METRIC_ANY_TENSOR_UTIL => percent(tensor),
        nvmlGpmMetricId_t_NVML_GPM_METRIC_DRAM_BW_UTIL => percent(dram),
        nvmlGpmMetricId_t_NVML_GPM_METRIC_FP16_UTIL => percent(fp16),
        nvmlGpmMetricId_t_NVML_GPM_METRIC_FP32_UTIL => percent(fp32),
        nvmlGpmMetricId_t_NVML_GPM_METRIC_PCIE_RX_PER_SEC => mebibytes(frame.pcie_rx_bytes_s),
        nvmlGpmMetricId_t_NVML_GPM_METRIC_PCIE_TX_PER_SEC => mebibytes(frame.pcie_tx_bytes_s),
        nvmlGpmMetricId_t_NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC => mebibytes(nvlink_rx_bytes_s),
        nvmlGpmMetricId_t_NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC => mebibytes(nvlink_tx_bytes_s),
        _ => return Err(NOT_SUPPORTED),
    };
    value.ok_or(NO_DATA)
}
