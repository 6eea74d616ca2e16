//! The trace file of one window. Everything is little endian.
//!
//! ```text
//! header    128 bytes, written at the start and again when the window closes
//! blocks    64 bytes each, until the end of the file:
//!             an activity record (kind 1 to 8), or
//!             a name (kind 255), followed by its text in as many blocks as it needs, padded with zeros
//! ```
//!
//! Names are stored before the first record that uses them, so a process killed inside a window leaves a readable file: the
//! header then lacks the `CLOSED` flag, and the reader takes every whole block.
//!
//! Header:
//! ```text
//!   0  magic "FLTRACER"      8  u32 version          12  u32 header bytes     16  u32 block bytes
//!  20  u32 flags            24  u64 start ns         32  u64 stop ns
//!  40  i64 offset at start  48  i64 offset at stop   56  u64 uncertainty of the offset, ns
//!  64  u64 records          72  u64 dropped by CUPTI 80  u64 dropped here     88  u64 incomplete
//!  96  u64 outside         104  u32 CUPTI version   108  u32 process id
//! 112  u32 kinds requested 116  u32 kinds enabled   120  u32 unknown records 124  u32 buffers CUPTI kept
//! ```
//! Start and stop are CLOCK_MONOTONIC. Record times are CLOCK_MONOTONIC too if `OWN_CLOCK` is set; else they are in CUPTI's
//! clock, and the reader adds the mean of the two offsets (the first one if the window was not closed).
//!
//! Record:
//! ```text
//!  0  u8 kind   1  u8 detail   2  u8 source memory   3  u8 destination memory   4  u16 device   6  u16 registers per thread
//!  8  u32 stream (API calls: thread)   12  u32 correlation   16  u64 start ns   24  u64 end ns
//! 32  u64 value: kernels name id; copies and memsets bytes; API calls callback id; event synchronizations event id
//! 40  u32 graph id   44  u32 context   48  u32 blocks in the grid   52  u32 threads per block   56  u32 shared memory bytes
//! 60  u32 reserved
//! ```
//! Name: 0 u8 kind, 8 u32 id, 12 u32 length in bytes. Ids count from 0.

use std::io;
use std::path::Path;

/// The first bytes of every trace file.
pub const MAGIC: [u8; 8] = *b"FLTRACER";
/// The version of the file format.
pub const VERSION: u32 = 1;
/// Bytes in the header.
pub const HEADER_BYTES: usize = 128;
/// Bytes in a block.
pub const BLOCK_BYTES: usize = 64;
/// Header flag: the window was closed, the counts are final.
pub const CLOSED: u32 = 1;
/// Header flag: CUPTI took its timestamps from the tracer's clock, CLOCK_MONOTONIC.
pub const OWN_CLOCK: u32 = 2;
/// The device of records that have none.
pub const NO_DEVICE: u16 = u16::MAX;
/// The kind of a block that introduces a name.
pub const NAME: u8 = 255;
/// The longest stored name. Names of fused CUTLASS kernels reach several kilobytes.
pub const NAME_BYTES: usize = 16 << 10;

/// What a record describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Activity {
    Kernel = 1,
    /// `detail` is CUPTI's copy kind: 1 HtoD, 2 DtoH, 8 DtoD, 9 HtoH, 10 peer to peer.
    Copy = 2,
    Memset = 3,
    /// `detail`: 1 event, 2 stream waits for event (does not block the host), 3 stream, 4 context.
    Synchronization = 4,
    /// `detail`: 1 compilation in the driver, 17 flush, 18 instrumentation, 19 resource, 20 module loading, 21 lazy loading,
    /// 22 command buffer full, 23 buffer request, 24 unified memory.
    Overhead = 5,
    Runtime = 6,
    Driver = 7,
    /// One launch of a whole CUDA graph.
    Graph = 8,
}

impl Activity {
    /// The activity with this number in the file.
    pub fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Kernel,
            2 => Self::Copy,
            3 => Self::Memset,
            4 => Self::Synchronization,
            5 => Self::Overhead,
            6 => Self::Runtime,
            7 => Self::Driver,
            8 => Self::Graph,
            _ => return None,
        })
    }
}

/// CUPTI's number for pageable host memory, in `source` and `destination`.
pub const PAGEABLE: u8 = 1;
/// CUPTI's number for pinned host memory.
pub const PINNED: u8 = 2;
/// CUPTI's number for device memory.
pub const DEVICE: u8 = 3;

/// One activity. Fields that do not apply are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub activity: Activity,
    pub detail: u8,
    pub source: u8,
    pub destination: u8,
    pub device: u16,
    pub registers: u16,
    pub stream: u32,
    pub correlation: u32,
    pub start: u64,
    pub end: u64,
    pub value: u64,
    pub graph: u32,
    pub context: u32,
    pub grid: u32,
    pub block: u32,
    pub shared: u32,
}

impl Record {
    /// An empty record of this activity.
    pub fn new(activity: Activity) -> Self {
        Self {
            activity,
            detail: 0,
            source: 0,
            destination: 0,
            device: NO_DEVICE,
            registers: 0,
            stream: 0,
            correlation: 0,
            start: 0,
            end: 0,
            value: 0,
            graph: 0,
            context: 0,
            grid: 0,
            block: 0,
            shared: 0,
        }
    }

    /// The block that stores this record.
    pub fn encode(&self) -> [u8; BLOCK_BYTES] {
        let mut block = [0; BLOCK_BYTES];
        block[0] = self.activity as u8;
        block[1] = self.detail;
        block[2] = self.source;
        block[3] = self.destination;
        block[4..6].copy_from_slice(&self.device.to_le_bytes());
        block[6..8].copy_from_slice(&self.registers.to_le_bytes());
        let words = [self.stream, self.correlation];
        put32(&mut block[8..16], &words);
        put64(&mut block[16..40], &[self.start, self.end, self.value]);
        let words = [self.graph, self.context, self.grid, self.block, self.shared];
        put32(&mut block[40..60], &words);
        block
    }

    fn decode(block: &[u8; BLOCK_BYTES]) -> Option<Self> {
        Some(Self {
            activity: Activity::from_number(block[0])?,
            detail: block[1],
            source: block[2],
            destination: block[3],
            device: u16::from_le_bytes([block[4], block[5]]),
            registers: u16::from_le_bytes([block[6], block[7]]),
            stream: get32(block, 8),
            correlation: get32(block, 12),
            start: get64(block, 16),
            end: get64(block, 24),
            value: get64(block, 32),
            graph: get32(block, 40),
            context: get32(block, 44),
            grid: get32(block, 48),
            block: get32(block, 52),
            shared: get32(block, 56),
        })
    }
}

/// What the file states about its window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    pub flags: u32,
    pub start: u64,
    pub stop: u64,
    pub offset_start: i64,
    pub offset_stop: i64,
    pub uncertainty: u64,
    pub records: u64,
    /// Records that CUPTI lost because it had no buffer.
    pub dropped: u64,
    /// Records over the window's limit, or that could not be written.
    pub refused: u64,
    /// Activities that had not finished on the GPU when the window closed.
    pub incomplete: u64,
    /// Records with times outside of the window: left over from an earlier one, or in a clock that another tool changed.
    pub outside: u64,
    pub cupti: u32,
    pub process: u32,
    pub kinds_requested: u32,
    pub kinds_enabled: u32,
    pub unknown: u32,
    pub buffers_kept: u32,
}

impl Header {
    /// Whether the window was closed.
    pub fn closed(&self) -> bool {
        self.flags & CLOSED != 0
    }

    /// The bytes of this header.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        let sizes = [VERSION, HEADER_BYTES as u32, BLOCK_BYTES as u32, self.flags];
        put32(&mut bytes[8..24], &sizes);
        let longs = [
            self.start,
            self.stop,
            self.offset_start.cast_unsigned(),
            self.offset_stop.cast_unsigned(),
            self.uncertainty,
            self.records,
            self.dropped,
            self.refused,
            self.incomplete,
            self.outside,
        ];
        put64(&mut bytes[24..104], &longs);
        let words = [
            self.cupti,
            self.process,
            self.kinds_requested,
            self.kinds_enabled,
            self.unknown,
            self.buffers_kept,
        ];
        put32(&mut bytes[104..], &words);
        bytes
    }

    fn decode(bytes: &[u8; HEADER_BYTES]) -> Self {
        Self {
            flags: get32(bytes, 20),
            start: get64(bytes, 24),
            stop: get64(bytes, 32),
            offset_start: get64(bytes, 40).cast_signed(),
            offset_stop: get64(bytes, 48).cast_signed(),
            uncertainty: get64(bytes, 56),
            records: get64(bytes, 64),
            dropped: get64(bytes, 72),
            refused: get64(bytes, 80),
            incomplete: get64(bytes, 88),
            outside: get64(bytes, 96),
            cupti: get32(bytes, 104),
            process: get32(bytes, 108),
            kinds_requested: get32(bytes, 112),
            kinds_enabled: get32(bytes, 116),
            unknown: get32(bytes, 120),
            buffers_kept: get32(bytes, 124),
        }
    }

    /// What to add to a record's time to get CLOCK_MONOTONIC.
    fn offset(&self) -> i64 {
        if self.flags & OWN_CLOCK != 0 {
            0
        } else if self.closed() {
            self.offset_start
                .wrapping_add(self.offset_stop.wrapping_sub(self.offset_start) / 2)
        } else {
            self.offset_start
        }
    }
}

/// The blocks that store a name.
pub fn encode_name(id: u32, name: &[u8]) -> Vec<u8> {
    let name = &name[..name.len().min(NAME_BYTES)];
    let mut blocks = vec![0; BLOCK_BYTES];
    blocks[0] = NAME;
    put32(&mut blocks[8..16], &[id, name.len() as u32]);
    blocks.extend_from_slice(name);
    blocks.resize(blocks.len().next_multiple_of(BLOCK_BYTES), 0);
    blocks
}

/// A window that was read back: record times are CLOCK_MONOTONIC nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    pub header: Header,
    pub records: Vec<Record>,
    names: Vec<String>,
    /// The file ends in the middle of a block, or holds fewer records than its header states.
    pub truncated: bool,
}

impl Trace {
    /// The mangled name of a kernel.
    pub fn name(&self, record: &Record) -> Option<&str> {
        if record.activity != Activity::Kernel {
            return None;
        }
        let id = usize::try_from(record.value).ok()?;
        self.names.get(id).map(String::as_str)
    }

    /// Reads the bytes of a trace file. A damaged file gives what is left of it; only bytes that are no trace are refused.
    pub fn parse(bytes: &[u8]) -> io::Result<Self> {
        let refuse = |text: &str| Err(io::Error::new(io::ErrorKind::InvalidData, text));
        let Some((head, body)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return refuse("too short for a trace file");
        };
        if head[..8] != MAGIC {
            return refuse("not a trace file");
        }
        let sizes = [get32(head, 8), get32(head, 12), get32(head, 16)];
        if sizes != [VERSION, HEADER_BYTES as u32, BLOCK_BYTES as u32] {
            return refuse("a trace file of another version");
        }
        let header = Header::decode(head);
        let mut trace = Self {
            header,
            ..Self::default()
        };
        let (blocks, rest) = body.as_chunks::<BLOCK_BYTES>();
        trace.truncated = !rest.is_empty();
        let offset = header.offset();
        let mut at = 0;
        while let Some(block) = blocks.get(at) {
            at += 1;
            if block[0] == NAME {
                let (id, length) = (get32(block, 8) as usize, get32(block, 12) as usize);
                let text = &blocks[at..];
                if id != trace.names.len() || length > NAME_BYTES || length > text.as_flattened().len() {
                    trace.truncated = true;
                    break;
                }
                let name = &text.as_flattened()[..length];
                trace.names.push(String::from_utf8_lossy(name).into_owned());
                at += length.div_ceil(BLOCK_BYTES);
            } else if let Some(mut record) = Record::decode(block) {
                record.start = record.start.saturating_add_signed(offset);
                record.end = record.end.saturating_add_signed(offset);
                trace.records.push(record);
            }
        }
        trace.truncated |= header.closed() && header.records != trace.records.len() as u64;
        Ok(trace)
    }
}

/// Reads a trace file.
pub fn read(path: impl AsRef<Path>) -> io::Result<Trace> {
    Trace::parse(&std::fs::read(path)?)
}

fn put32(bytes: &mut [u8], values: &[u32]) {
    for (slot, value) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(values) {
        *slot = value.to_le_bytes();
    }
}

fn put64(bytes: &mut [u8], values: &[u64]) {
    for (slot, value) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(values) {
        *slot = value.to_le_bytes();
    }
}

fn get32<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    let mut value = [0; 4];
    value.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(value)
}

fn get64<const N: usize>(bytes: &[u8; N], at: usize) -> u64 {
    let mut value = [0; 8];
    value.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(value: u64) -> Record {
        Record {
            value,
            start: 1_000,
            end: 2_000,
            stream: 7,
            device: 1,
            grid: 64,
            ..Record::new(Activity::Kernel)
        }
    }

    fn sample() -> Vec<u8> {
        let header = Header {
            flags: CLOSED,
            offset_start: 100,
            offset_stop: 200,
            records: 3,
            ..Header::default()
        };
        let mut bytes = header.encode().to_vec();
        bytes.extend(encode_name(0, b"gemm"));
        bytes.extend(kernel(0).encode());
        bytes.extend(encode_name(1, &[b'x'; 130]));
        bytes.extend(kernel(1).encode());
        bytes.extend(kernel(9).encode());
        bytes
    }

    #[test]
    fn reads_back_what_was_written() {
        let trace = Trace::parse(&sample()).unwrap();
        assert!(!trace.truncated);
        assert_eq!(trace.header.records, 3);
        let names: Vec<_> = trace.records.iter().map(|record| trace.name(record)).collect();
        assert_eq!(names, [Some("gemm"), Some("x".repeat(130).as_str()), None]);
        assert_eq!((trace.records[0].start, trace.records[0].end), (1_150, 2_150));
        assert_eq!((trace.records[0].stream, trace.records[0].grid), (7, 64));
    }

    #[test]
    fn takes_every_whole_record_of_a_truncated_file() {
        let bytes = sample();
        for length in 0..bytes.len() {
            match Trace::parse(&bytes[..length]) {
                Ok(trace) => assert!(trace.truncated && length >= HEADER_BYTES, "{length}"),
                Err(_) => assert!(length < HEADER_BYTES, "{length}"),
            }
        }
        let trace = Trace::parse(&bytes[..HEADER_BYTES + 3 * BLOCK_BYTES + 5]).unwrap();
        assert_eq!(trace.records.len(), 1);
    }

    #[test]
    fn survives_any_damage() {
        // xorshift64: the same damage in every run.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let whole = sample();
        for _ in 0..200_000 {
            let mut bytes = whole.clone();
            for _ in 0..1 + random() % 8 {
                let at = (random() % bytes.len() as u64) as usize;
                bytes[at] = random() as u8;
            }
            if random() % 4 == 0 {
                bytes.truncate((random() % bytes.len() as u64) as usize);
            }
            if let Ok(trace) = Trace::parse(&bytes) {
                for record in &trace.records {
                    let _ = trace.name(record);
                }
            }
        }
    }
}
