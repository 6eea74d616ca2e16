//! The fields that the tracer reads from CUPTI's records.
//!
//! Every field has the same offset in all headers from CUDA 11.8 to 13.4: newer versions only append fields
//! (CUpti_ActivityKernel8 to 13, Memcpy5 to 7, Memset4 and 5, Overhead to Overhead3, GraphTrace and GraphTrace2,
//! Synchronization and Synchronization2). Checked with `tests/offsets.sh` on 2026-11-18 against cupti 11.8.87, 12.1.105,
//! 12.4.127, 12.6.80, 12.8.90, 12.9.79, 13.0.85, 13.2.86 and 13.4.92. Records are packed and 8-byte aligned.

use crate::format::{Activity, NO_DEVICE, Record};
use std::ffi::{CStr, c_char};

/// CUPTI's numbers of activity kinds.
pub const MEMCPY: u32 = 1;
pub const MEMSET: u32 = 2;
pub const KERNEL: u32 = 3;
pub const DRIVER: u32 = 4;
pub const RUNTIME: u32 = 5;
pub const CONCURRENT_KERNEL: u32 = 10;
pub const OVERHEAD: u32 = 17;
pub const MEMCPY_PEER: u32 = 22;
pub const SYNCHRONIZATION: u32 = 38;
pub const GRAPH_TRACE: u32 = 51;

/// A record inside a buffer that CUPTI has completed.
#[derive(Clone, Copy)]
pub struct Raw(*const u8);

impl Raw {
    /// # Safety
    /// `record` must come from `cuptiActivityGetNextRecord`, and its buffer must outlive the result.
    pub unsafe fn new(record: *const u8) -> Self {
        Self(record)
    }

    fn u8(self, at: usize) -> u8 {
        self.field(at)
    }

    fn u16(self, at: usize) -> u16 {
        self.field(at)
    }

    fn u32(self, at: usize) -> u32 {
        self.field(at)
    }

    fn u64(self, at: usize) -> u64 {
        self.field(at)
    }

    fn field<T: Copy>(self, at: usize) -> T {
        // SAFETY: `new` demands a whole record, and every offset below is inside the smallest struct of its kind.
        unsafe { self.0.add(at).cast::<T>().read_unaligned() }
    }

    /// The kernel's mangled name, where this is a kernel.
    pub fn name(self) -> *const c_char {
        self.field(104)
    }

    /// The record in the file's terms, without the name of a kernel. None for a kind that the tracer does not know.
    pub fn record(self) -> Option<Record> {
        let record = match self.u32(0) {
            KERNEL | CONCURRENT_KERNEL => Record {
                registers: self.u16(6),
                start: self.u64(16),
                end: self.u64(24),
                device: device(self.u32(40)),
                context: self.u32(44),
                stream: self.u32(48),
                grid: product([self.u32(52), self.u32(56), self.u32(60)]),
                block: product([self.u32(64), self.u32(68), self.u32(72)]),
                shared: self.u32(76).saturating_add(self.u32(80)),
                correlation: self.u32(92),
                graph: self.u32(156),
                ..Record::new(Activity::Kernel)
            },
            kind @ (MEMCPY | MEMCPY_PEER) => Record {
                detail: self.u8(4),
                source: self.u8(5),
                destination: self.u8(6),
                value: self.u64(8),
                start: self.u64(16),
                end: self.u64(24),
                device: device(self.u32(32)),
                context: self.u32(36),
                stream: self.u32(40),
                correlation: self.u32(if kind == MEMCPY { 44 } else { 60 }),
                graph: self.u32(if kind == MEMCPY { 72 } else { 80 }),
                ..Record::new(Activity::Copy)
            },
            MEMSET => Record {
                value: self.u64(8),
                start: self.u64(16),
                end: self.u64(24),
                device: device(self.u32(32)),
                context: self.u32(36),
                stream: self.u32(40),
                correlation: self.u32(44),
                destination: self.u16(50) as u8,
                graph: self.u32(72),
                ..Record::new(Activity::Memset)
            },
            SYNCHRONIZATION => Record {
                detail: self.u32(4) as u8,
                start: self.u64(8),
                end: self.u64(16),
                correlation: self.u32(24),
                context: self.u32(28),
                stream: self.u32(32),
                value: u64::from(self.u32(36)),
                ..Record::new(Activity::Synchronization)
            },
            OVERHEAD => Record {
                // Values are 0, 1 and n << 16.
                detail: match self.u32(4) {
                    kind if kind < 1 << 16 => kind as u8,
                    kind => (kind >> 16).saturating_add(16).min(254) as u8,
                },
                start: self.u64(24),
                end: self.u64(32),
                ..Record::new(Activity::Overhead)
            },
            kind @ (RUNTIME | DRIVER) => Record {
                value: u64::from(self.u32(4)),
                start: self.u64(8),
                end: self.u64(16),
                stream: self.u32(28),
                correlation: self.u32(32),
                ..Record::new(if kind == RUNTIME {
                    Activity::Runtime
                } else {
                    Activity::Driver
                })
            },
            GRAPH_TRACE => Record {
                correlation: self.u32(4),
                start: self.u64(8),
                end: self.u64(16),
                device: device(self.u32(24)),
                graph: self.u32(28),
                context: self.u32(32),
                stream: self.u32(36),
                ..Record::new(Activity::Graph)
            },
            _ => return None,
        };
        Some(record)
    }
}

/// The text of a kernel name.
///
/// # Safety
/// `name` must be null or a C string that CUPTI keeps alive.
pub unsafe fn name_bytes<'a>(name: *const c_char) -> &'a [u8] {
    if name.is_null() {
        return b"";
    }
    // SAFETY: see above.
    unsafe { CStr::from_ptr(name) }.to_bytes()
}

fn device(number: u32) -> u16 {
    u16::try_from(number).unwrap_or(NO_DEVICE)
}

fn product(sizes: [u32; 3]) -> u32 {
    sizes
        .into_iter()
        .fold(1, |product: u32, size| product.saturating_mul(size))
}
