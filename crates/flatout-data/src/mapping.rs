//! A file mapped into memory, private to this process: what is written to it stays here and never reaches the file.
//!
//! Only files of the prepared cache are mapped. They are never changed in place, so a mapping cannot be cut short under us.

use memmap2::{MmapOptions, MmapRaw};
use std::fs::File;
use std::io;

#[derive(Debug)]
pub struct Mapping(MmapRaw);

impl Mapping {
    pub fn new(file: &File) -> io::Result<Self> {
        if file.metadata()?.len() == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // SAFETY: files of the cache are never changed in place, see above.
        let map = unsafe { MmapOptions::new().map_copy(file)? };
        Ok(Self(map.into()))
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: mapped for this length as long as `self` lives.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr(), self.0.len()) }
    }

    /// Who writes to it is decided by the owner of the `Block`s over it.
    pub fn pointer(&self) -> *mut u8 {
        self.0.as_mut_ptr()
    }
}
