//! A shared memory map of a file that another process writes. Only this file is unsafe.

use std::fs::OpenOptions;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

pub struct Map {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the memory is shared with another process anyway and is only ever touched through atomics.
unsafe impl Send for Map {}

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
        // SAFETY: a fresh shared map of an open file; the kernel picks the address. A file cut short later would raise
        // SIGBUS; the files lie in a folder of our own that only the probe writes, and it never cuts.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(Error::last_os_error());
        }
        match NonNull::new(start.cast()) {
            Some(start) => Ok(Self { start, length }),
            None => Err(Error::from(ErrorKind::InvalidData)),
        }
    }

    fn word(&self, index: usize) -> Option<&AtomicU64> {
        if (index + 1) * 8 > self.length {
            return None;
        }
        // SAFETY: within the map, which is page-aligned, so the word is aligned; the map lives as long as `self`.
        Some(unsafe { AtomicU64::from_ptr(self.start.as_ptr().cast::<u64>().add(index)) })
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
        if at.checked_add(length)? > self.length {
            return None;
        }
        let byte = |offset| {
            // SAFETY: within the map, checked above; single bytes need no alignment.
            let byte = unsafe { AtomicU8::from_ptr(self.start.as_ptr().add(at + offset)) };
            byte.load(Ordering::Relaxed)
        };
        Some((0..length).map(byte).collect())
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: unmaps what `open` mapped, once.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}
