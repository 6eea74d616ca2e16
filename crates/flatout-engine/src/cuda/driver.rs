//! The driver's calls the engine needs, each checked. Nothing here knows of plans.

use super::error::CudaError;
use cudarc::driver::sys::{self, CUresult};
use std::ffi::CStr;
use std::ptr;

pub fn check(call: &'static str, result: CUresult) -> Result<(), CudaError> {
    if result == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    if result == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
        let (mut free, mut total) = (0, 0);
        // SAFETY: fills two numbers.
        let _ = unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) };
        return Err(CudaError::OutOfMemory {
            wanted_bytes: 0,
            free_bytes: free as u64,
        });
    }
    let mut text = ptr::null();
    // SAFETY: the driver hands out a static string.
    let reason = unsafe {
        match sys::cuGetErrorString(result, &mut text) {
            CUresult::CUDA_SUCCESS if !text.is_null() => CStr::from_ptr(text).to_string_lossy().into_owned(),
            _ => format!("{result:?}"),
        }
    };
    Err(CudaError::Call { call, reason })
}

/// Calls the driver and turns what it returns into a `Result`.
macro_rules! cuda {
    ($function:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: every pointer handed over is valid for the call; what the call keeps is owned by a type of this module.
        check(stringify!($function), unsafe { sys::$function($($argument),*) })
    };
}

mod blocks;
mod code;
mod device;
mod queue;

pub use blocks::{Block, Pinned};
pub use code::{Argument, Function, Module};
pub use device::{Device, version};
pub use queue::{Event, Graph, Stream};
