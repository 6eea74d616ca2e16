//! A file mapped into memory, private to this process: what is written to it stays here and never reaches the file.
//!
//! Only files of the prepared cache are mapped. They are never changed in place, so a mapping cannot be cut short under us.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

#[derive(Debug)]
pub struct Mapping {
    pointer: *mut u8,
    length: usize,
}

// SAFETY: the mapping is plain memory; who writes to it is decided by the owner of the `Block`s over it.
unsafe impl Send for Mapping {}
// SAFETY: see above.
unsafe impl Sync for Mapping {}

impl Mapping {
    pub fn new(file: &File) -> io::Result<Self> {
        let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // SAFETY: a new private mapping of an open file; the result is checked.
        let pointer = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE,
                file.as_raw_fd(),
                0,
            )
        };
        if pointer == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            pointer: pointer.cast(),
            length,
        })
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: mapped for `length` bytes until drop.
        unsafe { std::slice::from_raw_parts(self.pointer, self.length) }
    }

    pub fn pointer(&self) -> *mut u8 {
        self.pointer
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length, and no `Block` is left: each holds an `Arc` of it.
        unsafe { libc::munmap(self.pointer.cast(), self.length) };
    }
}
