//! The window that is being recorded: its file, the names already stored, and the counts.
//!
//! CUPTI completes buffers on a thread of its own, or inside a flush. Records are converted and written there, so memory does
//! not grow with the window. A buffer that arrives after the window closed is only counted.

use crate::cupti::Cupti;
use crate::format::{Activity, Header, OWN_CLOCK, encode_name};
use crate::layout::{Raw, name_bytes};
use crate::system;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

pub struct Window {
    file: File,
    pub header: Header,
    /// The limit of `header.records`.
    limit: u64,
    /// When the window began, in the clock of the records.
    floor: u64,
    /// Name ids by address: a lookup per kernel. Addresses hold for one window, because modules come and go.
    by_address: HashMap<usize, u32>,
    by_name: HashMap<Box<[u8]>, u32>,
    bytes: Vec<u8>,
    failure: Option<io::Error>,
    pub graphs: bool,
}

/// CUPTI converts GPU times to the host's clock by interpolation, so a record may seem to end a little after the present.
const SLACK: u64 = 1_000_000;

static WINDOW: Mutex<Option<Window>> = Mutex::new(None);

impl Window {
    /// Creates the file, private to the user. An existing file is refused, so a link cannot lead elsewhere.
    pub fn create(path: &Path, header: Header, limit: u64) -> io::Result<Self> {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        file.write_all(&header.encode())?;
        Ok(Self {
            file,
            header,
            limit,
            floor: 0,
            by_address: HashMap::new(),
            by_name: HashMap::new(),
            bytes: Vec::new(),
            failure: None,
            graphs: false,
        })
    }

    /// Makes this the window that completed buffers go to. `floor` is the present, in the records' clock.
    pub fn open(mut self, floor: u64) {
        self.floor = floor;
        *lock() = Some(self);
    }

    /// Stores a record that ended by `now`, in its own clock.
    fn add(&mut self, raw: Raw, now: u64) {
        let Some(mut record) = raw.record() else {
            self.header.unknown = self.header.unknown.saturating_add(1);
            return;
        };
        if record.start == 0 || record.end < record.start {
            self.header.incomplete += 1;
            return;
        }
        if record.end < self.floor || record.end > now.saturating_add(SLACK) {
            self.header.outside += 1;
            return;
        }
        if self.header.records >= self.limit || self.failure.is_some() {
            self.header.refused += 1;
            return;
        }
        if record.activity == Activity::Kernel {
            record.value = u64::from(self.name(raw));
        }
        self.graphs |= record.graph != 0;
        self.header.records += 1;
        self.bytes.extend_from_slice(&record.encode());
    }

    fn name(&mut self, raw: Raw) -> u32 {
        let address = raw.name();
        if let Some(&id) = self.by_address.get(&(address as usize)) {
            return id;
        }
        // SAFETY: CUPTI keeps a kernel's name alive while a buffer that mentions it is being read.
        let name = unsafe { name_bytes(address) };
        let id = match self.by_name.get(name) {
            Some(&id) => id,
            None => {
                let id = self.by_name.len() as u32;
                self.by_name.insert(name.into(), id);
                self.bytes.extend_from_slice(&encode_name(id, name));
                id
            }
        };
        self.by_address.insert(address as usize, id);
        id
    }

    fn write(&mut self, before: u64) {
        if self.failure.is_none()
            && let Err(error) = self.file.write_all(&self.bytes)
        {
            self.failure = Some(error);
            self.header.refused += self.header.records - before;
            self.header.records = before;
        }
        self.bytes.clear();
    }

    /// Rewrites the header with its final counts. None of the file is left open.
    pub fn finish(mut self) -> Result<u64, io::Error> {
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&self.header.encode())?;
        match self.failure {
            Some(error) => Err(error),
            None => Ok(self.header.records),
        }
    }
}

/// Stores what a completed buffer holds.
///
/// # Safety
/// `buffer` must be a buffer that CUPTI has just completed, with `valid` bytes.
pub unsafe fn complete(cupti: &Cupti, buffer: *mut u8, valid: usize) {
    let mut window = lock();
    let Some(window) = window.as_mut() else {
        return;
    };
    let before = window.header.records;
    let now = if window.header.flags & OWN_CLOCK != 0 {
        system::monotonic()
    } else {
        cupti.timestamp().unwrap_or(u64::MAX)
    };
    let mut record = std::ptr::null_mut();
    // SAFETY: the caller's promise; `record` comes from the same buffer.
    while let Some(next) = unsafe { cupti.next(buffer, valid, record) } {
        record = next;
        // SAFETY: as above, and the buffer outlives this loop.
        window.add(unsafe { Raw::new(record) }, now);
    }
    window.write(before);
}

/// Ends the window: later buffers no longer reach it.
pub fn close() -> Option<Window> {
    lock().take()
}

fn lock() -> std::sync::MutexGuard<'static, Option<Window>> {
    WINDOW.lock().unwrap_or_else(PoisonError::into_inner)
}
