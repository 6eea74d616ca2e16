//! What one input may use: CPU time of the process, which a busy machine does not lengthen, and memory, counted by the allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

pub const MOST_CPU: Duration = Duration::from_secs(2);
/// Builds without optimization are about ten times slower.
pub const MOST_CPU_UNOPTIMIZED: Duration = Duration::from_secs(20);
pub const MOST_BYTES: usize = 500_000_000;
/// An input that is not done by then never will be: the process ends, and its input stays where it is.
const HANGS: Duration = Duration::from_secs(300);

pub struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        NOW.fetch_sub(layout.size(), Relaxed);
        grown(size);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

fn grown(bytes: usize) {
    let now = NOW.fetch_add(bytes, Relaxed) + bytes;
    MOST.fetch_max(now, Relaxed);
}

/// The use of one input.
pub struct Use {
    cpu: Duration,
    bytes: usize,
}

impl Use {
    pub fn begin() -> Self {
        let bytes = NOW.load(Relaxed);
        MOST.store(bytes, Relaxed);
        BEGUN_MS.store(since_start_ms(), Relaxed);
        Self { cpu: cpu(), bytes }
    }

    /// CPU time, and the most memory at a time, since the beginning.
    pub fn end(&self) -> (Duration, usize) {
        BEGUN_MS.store(IDLE, Relaxed);
        let bytes = MOST.load(Relaxed).saturating_sub(self.bytes);
        (cpu().saturating_sub(self.cpu), bytes)
    }
}

fn cpu() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a local variable.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    assert_eq!(result, 0, "no clock of CPU time");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

const IDLE: u64 = u64::MAX;
static BEGUN_MS: AtomicU64 = AtomicU64::new(IDLE);

fn since_start_ms() -> u64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_millis() as u64
}

/// Ends the process when an input hangs.
pub fn watch() {
    static WATCHING: std::sync::Once = std::sync::Once::new();
    WATCHING.call_once(|| {
        since_start_ms();
        std::thread::spawn(|| {
            loop {
                std::thread::sleep(Duration::from_secs(5));
                let begun = BEGUN_MS.load(Relaxed);
                if begun != IDLE && since_start_ms().saturating_sub(begun) > HANGS.as_millis() as u64 {
                    eprintln!("an input hangs");
                    std::process::abort();
                }
            }
        });
    });
}
