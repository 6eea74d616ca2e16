//! One contiguous run of numbers: what a trainer uploads in one copy. It is owned, or lies in a mapped file of the cache.

use crate::mapping::Mapping;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Numbers whose every bit pattern is a value: they may be read from a file as they are.
///
/// # Safety
/// Only for such types.
pub unsafe trait Plain: Copy + 'static {}
// SAFETY: integers and floats have no invalid bit patterns.
unsafe impl Plain for u8 {}
// SAFETY: see above.
unsafe impl Plain for i32 {}
// SAFETY: see above.
unsafe impl Plain for u32 {}
// SAFETY: see above.
unsafe impl Plain for i64 {}
// SAFETY: see above.
unsafe impl Plain for u64 {}
// SAFETY: see above.
unsafe impl Plain for f32 {}

/// Zeros for a block that is about to be filled, in pages of 2 MiB where the system has them: gathering from all over a block
/// otherwise spends a good part of its time looking up pages.
pub fn zeroed<T: Plain + Default>(count: usize) -> Vec<T> {
    let values = vec![T::default(); count];
    const PAGE_BYTES: usize = 2 << 20;
    let start = (values.as_ptr() as usize).next_multiple_of(PAGE_BYTES);
    let end = (values.as_ptr() as usize + std::mem::size_of_val(&values[..])) & !(PAGE_BYTES - 1);
    if start < end {
        // SAFETY: whole pages within our own allocation; the advice changes no contents, and a refusal is no failure.
        unsafe { libc::madvise(start as *mut _, end - start, libc::MADV_HUGEPAGE) };
    }
    values
}

/// Numbers in one piece.
pub struct Block<T> {
    storage: Storage<T>,
}

enum Storage<T> {
    Owned(Vec<T>),
    Mapped {
        mapping: Arc<Mapping>,
        pointer: *mut T,
        length: usize,
    },
}

// SAFETY: the pointer leads into the mapping that the block keeps alive; no other block covers the same range.
unsafe impl<T: Send> Send for Block<T> {}
// SAFETY: see above.
unsafe impl<T: Sync> Sync for Block<T> {}

impl<T> Block<T> {
    /// The numbers for writing. In a mapped block the change is private to this process.
    pub fn to_mut(&mut self) -> &mut [T] {
        match &mut self.storage {
            Storage::Owned(values) => values,
            // SAFETY: within the mapping, aligned and plain (checked by `mapped`), and borrowed exclusively.
            Storage::Mapped { pointer, length, .. } => unsafe {
                std::slice::from_raw_parts_mut(*pointer, *length)
            },
        }
    }

    pub fn size_bytes(&self) -> usize {
        std::mem::size_of_val(&self[..])
    }

    /// Whether the numbers lie in a file of the cache.
    pub fn is_mapped(&self) -> bool {
        matches!(&self.storage, Storage::Mapped { mapping, .. } if !mapping.bytes().is_empty())
    }
}

impl<T: Plain> Block<T> {
    pub fn into_vec(self) -> Vec<T> {
        match self.storage {
            Storage::Owned(values) => values,
            Storage::Mapped { .. } => self.to_vec(),
        }
    }

    /// A range of a mapped file; `None` when it is not aligned, not whole, or not within the file. Ranges of one mapping
    /// must not overlap.
    pub(crate) fn mapped(mapping: &Arc<Mapping>, offset: usize, bytes: usize) -> Option<Self> {
        let size = std::mem::size_of::<T>();
        let end = offset.checked_add(bytes)?;
        if end > mapping.bytes().len() || !bytes.is_multiple_of(size) || !offset.is_multiple_of(size) {
            return None;
        }
        // SAFETY: `offset` lies within the mapping.
        let pointer = unsafe { mapping.pointer().add(offset) }.cast::<T>();
        Some(Self {
            storage: Storage::Mapped {
                mapping: Arc::clone(mapping),
                pointer,
                length: bytes / size,
            },
        })
    }
}

impl<T> Default for Block<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<T> From<Vec<T>> for Block<T> {
    fn from(storage: Vec<T>) -> Self {
        Self {
            storage: Storage::Owned(storage),
        }
    }
}

impl<T> Deref for Block<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.storage {
            Storage::Owned(values) => values,
            // SAFETY: within the mapping, aligned and plain (checked by `mapped`).
            Storage::Mapped { pointer, length, .. } => unsafe {
                std::slice::from_raw_parts(*pointer, *length)
            },
        }
    }
}

impl<T> AsRef<[T]> for Block<T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<T: fmt::Debug> fmt::Debug for Block<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self[..], f)
    }
}
