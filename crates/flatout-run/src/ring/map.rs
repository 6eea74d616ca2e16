//! A shared memory map of a file that another process writes. Only this file is unsafe.

use memmap2::{MmapOptions, MmapRaw};
use std::fs::OpenOptions;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The memory is shared with another process anyway, and only ever touched through atomics.
pub struct Map(MmapRaw);

impl Map {
    /// Maps a plain file of exactly this size.
    pub fn open(path: &Path, length: usize) -> Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
            .open(path)?;
        if file.metadata()?.len() != length as u64 {
            return Err(Error::from(ErrorKind::InvalidData));
        }
        // A file cut short later would raise SIGBUS; the files lie in a folder of our own that only the probe writes, and
        // it never cuts.
        MmapOptions::new().len(length).map_raw(&file).map(Self)
    }

    fn word(&self, index: usize) -> Option<&AtomicU64> {
        if (index + 1) * 8 > self.0.len() {
            return None;
        }
        // SAFETY: within the map, which is page-aligned, so the word is aligned; the map lives as long as `self`.
        Some(unsafe { AtomicU64::from_ptr(self.0.as_mut_ptr().cast::<u64>().add(index)) })
    }

    /// The word's value; the writer is little-endian, as every machine flatout runs on.
    pub fn load(&self, index: usize) -> u64 {
        self.word(index).map_or(0, |word| word.load(Ordering::Acquire))
    }

    pub fn store(&self, index: usize, value: u64) {
        if let Some(word) = self.word(index) {
            word.store(value, Ordering::Release);
        }
    }

    /// A copy of some bytes, or `None` outside of the map.
    pub fn copy(&self, at: usize, length: usize) -> Option<Vec<u8>> {
        if at.checked_add(length)? > self.0.len() {
            return None;
        }
        let byte = |offset| {
            // SAFETY: within the map, checked above; single bytes need no alignment.
            let byte = unsafe { AtomicU8::from_ptr(self.0.as_mut_ptr().add(at + offset)) };
            byte.load(Ordering::Relaxed)
        };
        Some((0..length).map(byte).collect())
    }
}
