//! Memory aligned to a cache line, zeroed, allocated once and never grown.

use crate::EngineError;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// A cache line, and the width of the widest vector.
const ALIGNMENT: usize = 64;

/// A fixed slice of plain numbers. `T` must be valid as all-zero bytes and need no drop, which every type here is: floats
/// and integers.
pub struct Aligned<T: Copy> {
    pointer: NonNull<T>,
    length: usize,
}

// SAFETY: it owns its memory alone, like `Vec<T>`.
unsafe impl<T: Copy + Send> Send for Aligned<T> {}
// SAFETY: as above; shared access only reads.
unsafe impl<T: Copy + Sync> Sync for Aligned<T> {}

/// Types whose all-zero bytes are the number zero.
pub trait ZeroBytes: Copy {}
impl ZeroBytes for f32 {}
impl ZeroBytes for f64 {}
impl ZeroBytes for i32 {}

impl<T: ZeroBytes> Aligned<T> {
    pub fn zeroed(length: usize) -> Result<Self, EngineError> {
        if length == 0 {
            return Ok(Self {
                pointer: NonNull::dangling(),
                length,
            });
        }
        let too_large = EngineError::OutOfMemory {
            wanted_bytes: (length as u64).saturating_mul(size_of::<T>() as u64),
        };
        let Some(layout) = layout::<T>(length) else {
            return Err(too_large);
        };
        // SAFETY: the layout has a size above zero.
        let pointer = unsafe { alloc_zeroed(layout) }.cast::<T>();
        NonNull::new(pointer)
            .map(|pointer| Self { pointer, length })
            .ok_or(too_large)
    }
}

fn layout<T>(length: usize) -> Option<Layout> {
    let bytes = length.checked_mul(size_of::<T>())?;
    Layout::from_size_align(bytes, ALIGNMENT).ok()
}

impl<T: Copy> Drop for Aligned<T> {
    fn drop(&mut self) {
        if let (true, Some(layout)) = (self.length > 0, layout::<T>(self.length)) {
            // SAFETY: allocated in `zeroed` with this very layout.
            unsafe { dealloc(self.pointer.as_ptr().cast(), layout) };
        }
    }
}

impl<T: Copy> Deref for Aligned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `length` values were allocated and zeroed, and zero is a value of T (see `ZeroBytes`).
        unsafe { std::slice::from_raw_parts(self.pointer.as_ptr(), self.length) }
    }
}

impl<T: Copy> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.as_ptr(), self.length) }
    }
}
