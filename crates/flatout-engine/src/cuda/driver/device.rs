//! A card: opening it, what it is, and the words for one that does not open.

use super::check;
use crate::cuda::error::CudaError;
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute, CUresult};
use std::ffi::CStr;
use std::ptr;

/// The newest CUDA that the driver supports.
pub fn version() -> Result<(u32, u32), CudaError> {
    let mut number = 0;
    cuda!(cuDriverGetVersion(&mut number))?;
    let number = u32::try_from(number).unwrap_or(0);
    Ok((number / 1000, number % 1000 / 10))
}

/// What stands behind a card that does not open.
fn not_opened(ordinal: usize, result: CUresult) -> Option<CudaError> {
    match result {
        // Another program has it for itself (compute mode EXCLUSIVE_PROCESS), or nobody may use it (PROHIBITED).
        CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE => Some(CudaError::Taken { card: ordinal }),
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => Some(CudaError::Full { card: ordinal }),
        _ => None,
    }
}

/// Why the driver does not start.
fn not_started(result: CUresult, reason: String) -> CudaError {
    match result {
        CUresult::CUDA_ERROR_NO_DEVICE => CudaError::Device { wanted: 0, found: 0 },
        // The driver's library and its kernel module are of different versions, or a newer CUDA is asked for than it knows.
        CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH => CudaError::Mismatch,
        _ => CudaError::Driver { reason },
    }
}

/// A card with its primary context, current on the thread that opened it.
#[derive(Clone, Debug)]
pub struct Device {
    context: sys::CUcontext,
    pub name: String,
    pub capability: (u32, u32),
    pub multiprocessors: u32,
}

// SAFETY: a context may be used from any thread after `bind`.
unsafe impl Send for Device {}

impl Device {
    pub fn open(ordinal: usize) -> Result<Self, CudaError> {
        // SAFETY: takes a number.
        let started = unsafe { sys::cuInit(0) };
        check("cuInit", started).map_err(|error| not_started(started, error.to_string()))?;
        let mut count = 0;
        cuda!(cuDeviceGetCount(&mut count))?;
        let found = usize::try_from(count).unwrap_or(0);
        if ordinal >= found {
            return Err(CudaError::Device {
                wanted: ordinal,
                found,
            });
        }
        let mut device = 0;
        cuda!(cuDeviceGet(&mut device, ordinal as i32))?;
        let mut name = [0u8; 128];
        cuda!(cuDeviceGetName(name.as_mut_ptr().cast(), 127, device))?;
        let attribute = |which: Attribute| {
            let mut value = 0;
            cuda!(cuDeviceGetAttribute(&mut value, which, device)).map(|()| u32::try_from(value).unwrap_or(0))
        };
        let capability = (
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        );
        let multiprocessors = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        let mut context = ptr::null_mut();
        // SAFETY: fills the context.
        let opened = unsafe { sys::cuDevicePrimaryCtxRetain(&mut context, device) };
        check("cuDevicePrimaryCtxRetain", opened)
            .map_err(|error| not_opened(ordinal, opened).unwrap_or(error))?;
        let name = CStr::from_bytes_until_nul(&name)
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let device = Self {
            context,
            name,
            capability,
            multiprocessors,
        };
        device.bind()?;
        Ok(device)
    }

    /// Makes the card current on this thread.
    pub fn bind(&self) -> Result<(), CudaError> {
        cuda!(cuCtxSetCurrent(self.context))
    }

    /// Free and total memory in bytes.
    pub fn memory(&self) -> Result<(u64, u64), CudaError> {
        let (mut free, mut total) = (0, 0);
        cuda!(cuMemGetInfo_v2(&mut free, &mut total))?;
        Ok((free as u64, total as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_driver_answers_becomes_words() {
        let taken = not_opened(1, CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE)
            .unwrap()
            .to_string();
        assert!(taken.contains("GPU 1"), "{taken}");
        let full = not_opened(0, CUresult::CUDA_ERROR_OUT_OF_MEMORY)
            .unwrap()
            .to_string();
        assert!(full.contains("GPU 0"), "{full}");
        assert_eq!(not_opened(0, CUresult::CUDA_ERROR_INVALID_DEVICE), None);
        let none = not_started(CUresult::CUDA_ERROR_NO_DEVICE, String::new());
        assert_eq!(none, CudaError::Device { wanted: 0, found: 0 });
        assert_eq!(
            not_started(CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, String::new()),
            CudaError::Mismatch
        );
        let other = not_started(CUresult::CUDA_ERROR_UNKNOWN, "odd".to_owned());
        assert!(other.to_string().contains("odd"), "{other}");
    }
}
