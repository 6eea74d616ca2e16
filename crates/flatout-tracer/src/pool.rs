//! The buffers that CUPTI fills. Their number is bounded: without one, CUPTI drops records and counts them.
//!
//! CUPTI asks for a buffer on the thread that launches a kernel, so the pool has a lock of its own that no slow work holds.

use std::alloc::{Layout, alloc};
use std::sync::{Mutex, PoisonError};

/// Bytes per buffer: about 4,800 kernels.
pub const BUFFER_BYTES: usize = 1 << 20;
/// Buffers at most.
const LIMIT: usize = 32;
/// CUPTI wants 8.
const ALIGNMENT: usize = 64;

struct Pool {
    free: Vec<usize>,
    /// Addresses that CUPTI holds.
    lent: Vec<usize>,
}

static POOL: Mutex<Pool> = Mutex::new(Pool {
    free: Vec::new(),
    lent: Vec::new(),
});

/// A buffer for CUPTI, or null.
pub fn lend() -> *mut u8 {
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let address = match pool.free.pop() {
        Some(address) => address,
        None if pool.lent.len() < LIMIT => match Layout::from_size_align(BUFFER_BYTES, ALIGNMENT) {
            // SAFETY: the size is not zero.
            Ok(layout) => (unsafe { alloc(layout) }) as usize,
            Err(_) => 0,
        },
        None => 0,
    };
    if address != 0 {
        pool.lent.push(address);
    }
    address as *mut u8
}

/// Takes a buffer back. Another tool's buffer, which CUPTI may return to us, is left alone.
pub fn take_back(buffer: *mut u8) {
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(at) = pool.lent.iter().position(|&lent| lent == buffer as usize) {
        let address = pool.lent.swap_remove(at);
        pool.free.push(address);
    }
}

/// How many buffers CUPTI holds.
pub fn lent() -> usize {
    POOL.lock().unwrap_or_else(PoisonError::into_inner).lent.len()
}

/// Forgets the buffers that a finalized CUPTI did not return. Their memory is leaked, not freed: nothing promises that CUPTI
/// has stopped writing. At most one buffer was seen per finalization.
pub fn abandon() {
    POOL.lock().unwrap_or_else(PoisonError::into_inner).lent.clear();
}
