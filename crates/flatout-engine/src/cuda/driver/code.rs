//! Compiled kernels on the card, and their launch.

use super::check;
use super::queue::Stream;
use crate::cuda::error::CudaError;
use crate::cuda::recording_lock::exclusive;
use cudarc::driver::sys;
use std::ffi::{CString, c_void};
use std::ptr;

/// Compiled kernels on the card.
#[derive(Debug)]
pub struct Module {
    raw: sys::CUmodule,
}

// SAFETY: loaded code is read only.
unsafe impl Send for Module {}

impl Module {
    pub fn load(image: &[u8]) -> Result<Self, CudaError> {
        let mut raw = ptr::null_mut();
        exclusive(|| cuda!(cuModuleLoadData(&mut raw, image.as_ptr().cast())))?;
        Ok(Self { raw })
    }

    pub fn function(&self, name: &str) -> Result<Function, CudaError> {
        let text = CString::new(name).unwrap_or_default();
        let mut raw = ptr::null_mut();
        cuda!(cuModuleGetFunction(&mut raw, self.raw, text.as_ptr()))?;
        Ok(Function { raw })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        let _ = exclusive(|| cuda!(cuModuleUnload(self.raw)));
    }
}

/// Arguments of one launch; they are passed without an allocation.
const MOST_ARGUMENTS: usize = 20;

/// One kernel.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    raw: sys::CUfunction,
}

// SAFETY: a handle to loaded code.
unsafe impl Send for Function {}

impl Function {
    /// Allows more than the usual 48 KB of shared memory a block.
    pub fn allow_shared(&self, bytes: usize) -> Result<(), CudaError> {
        let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        cuda!(cuFuncSetAttribute(self.raw, attribute, bytes as i32))
    }

    /// Launches with arguments that are addresses, integers or floats.
    ///
    /// # Safety
    /// The arguments are what the kernel declares, and its accesses stay within living blocks.
    pub unsafe fn launch(
        &self,
        stream: &Stream,
        grid: (usize, usize),
        threads: usize,
        shared_bytes: usize,
        arguments: &[Argument],
    ) -> Result<(), CudaError> {
        if arguments.len() > MOST_ARGUMENTS {
            return Err(CudaError::Call {
                call: "cuLaunchKernel",
                reason: format!("{} arguments; at most {MOST_ARGUMENTS}", arguments.len()),
            });
        }
        let mut pointers: [*mut c_void; MOST_ARGUMENTS] = [ptr::null_mut(); MOST_ARGUMENTS];
        for (pointer, argument) in pointers.iter_mut().zip(arguments) {
            *pointer = argument.pointer();
        }
        cuda!(cuLaunchKernel(
            self.raw,
            grid.0 as u32,
            grid.1 as u32,
            1,
            threads as u32,
            1,
            1,
            shared_bytes as u32,
            stream.raw(),
            pointers.as_mut_ptr(),
            ptr::null_mut(),
        ))
    }
}

/// A kernel's argument.
#[derive(Clone, Copy, Debug)]
pub enum Argument {
    Address(u64),
    Word(i32),
    Long(i64),
    Float(f32),
}

impl Argument {
    fn pointer(&self) -> *mut c_void {
        match self {
            Self::Address(value) => ptr::from_ref(value).cast_mut().cast(),
            Self::Word(value) => ptr::from_ref(value).cast_mut().cast(),
            Self::Long(value) => ptr::from_ref(value).cast_mut().cast(),
            Self::Float(value) => ptr::from_ref(value).cast_mut().cast(),
        }
    }
}
