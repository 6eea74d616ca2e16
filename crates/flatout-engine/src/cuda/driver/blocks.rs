//! Memory on the card, and memory of the host that the card reads by itself.

use super::check;
use crate::cuda::error::CudaError;
use crate::cuda::recording_lock::exclusive;
use cudarc::driver::sys;
use std::ffi::c_void;
use std::ptr;

/// A stretch of memory on the card.
#[derive(Debug)]
pub struct Block {
    address: u64,
    bytes: usize,
}

impl Block {
    pub fn new(bytes: usize) -> Result<Self, CudaError> {
        let mut address = 0;
        // An empty block still has an address of its own.
        exclusive(|| cuda!(cuMemAlloc_v2(&mut address, bytes.max(16)))).map_err(|error| match error {
            CudaError::OutOfMemory { free_bytes, .. } => CudaError::OutOfMemory {
                wanted_bytes: bytes as u64,
                free_bytes,
            },
            other => other,
        })?;
        Ok(Self { address, bytes })
    }

    pub fn address(&self) -> u64 {
        self.address
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // Freeing waits for the work that uses it; a failure at the end of a process has nobody to tell.
        let _ = exclusive(|| cuda!(cuMemFree_v2(self.address)));
    }
}

/// Memory of the host that the card can read by itself.
#[derive(Debug)]
pub struct Pinned {
    address: *mut u8,
    bytes: usize,
}

// SAFETY: plain memory with one owner.
unsafe impl Send for Pinned {}

impl Pinned {
    pub fn new(bytes: usize) -> Result<Self, CudaError> {
        let mut address: *mut c_void = ptr::null_mut();
        exclusive(|| cuda!(cuMemHostAlloc(&mut address, bytes.max(16), 0)))?;
        // SAFETY: freshly allocated, of that size.
        unsafe { ptr::write_bytes(address.cast::<u8>(), 0, bytes) };
        Ok(Self {
            address: address.cast(),
            bytes,
        })
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: owned, allocated and initialised at this size.
        unsafe { std::slice::from_raw_parts(self.address, self.bytes) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: owned, allocated and initialised at this size.
        unsafe { std::slice::from_raw_parts_mut(self.address, self.bytes) }
    }

    pub fn as_ptr(&self) -> *const u8 {
        self.address
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let _ = exclusive(|| cuda!(cuMemFreeHost(self.address.cast())));
    }
}
