//! Starts and stops windows, and detaches CUPTI after the last one.
//!
//! Two locks, never nested the other way around: `SESSION` is held by start and stop for their whole duration, the window's
//! lock only while a buffer is stored. CUPTI's callbacks take the window's lock alone, so a flush inside stop cannot deadlock.

use crate::cupti::{self, Cupti, Missing, SUCCESS};
use crate::format::{CLOSED, Header, OWN_CLOCK};
use crate::layout;
use crate::window::{self, Window};
use crate::{pool, system};
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Bits of `kinds`. 0 stands for `DEFAULT`.
pub mod kinds {
    pub const KERNEL: u32 = 1;
    pub const MEMCPY: u32 = 1 << 1;
    pub const MEMSET: u32 = 1 << 2;
    pub const SYNCHRONIZATION: u32 = 1 << 3;
    pub const OVERHEAD: u32 = 1 << 4;
    /// Runtime functions that launch, copy, wait, allocate or free. Needs CUPTI of CUDA 12.6 or later.
    pub const RUNTIME: u32 = 1 << 5;
    /// The same of the driver API.
    pub const DRIVER: u32 = 1 << 6;
    /// One record per graph launch instead of one per node.
    pub const GRAPH_TRACE: u32 = 1 << 7;
    /// Record although another subscriber exists: the caller knows that it is an idle one. CUPTI is then never finalized.
    pub const SHARED: u32 = 1 << 16;
    pub const DEFAULT: u32 = KERNEL | MEMCPY | MEMSET | SYNCHRONIZATION;
}

/// Why a call did not do its work: the return values of the C interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Reason {
    NoCupti = 1,
    HeldByAnother = 2,
    OldCupti = 3,
    File = 4,
    Running = 5,
    Cupti = 6,
    NotRunning = 7,
    Forked = 8,
    Panicked = 9,
}

/// The values of `flatout_tracer_status`.
pub mod status {
    pub const IDLE: i32 = 0;
    pub const RUNNING: i32 = 1;
    pub const FINALIZED: i32 = 2;
}

/// Records take 64 bytes each: a file of at most 64 MB.
const DEFAULT_LIMIT: u64 = 1_000_000;
/// cudaMalloc, Free, MallocHost, FreeHost, HostAlloc, Memcpy, MemcpyAsync, StreamSynchronize, EventSynchronize,
/// DeviceSynchronize, LaunchKernel, LaunchCooperativeKernel, GraphLaunch, LaunchKernelExC. Ids never change.
const RUNTIME_FUNCTIONS: &[u32] = &[20, 22, 25, 26, 27, 31, 41, 131, 137, 165, 211, 269, 311, 430];
/// cuCtxSynchronize, EventSynchronize, StreamSynchronize, MemAlloc_v2, MemFree_v2, MemHostAlloc_v2, LaunchKernel,
/// GraphLaunch, LaunchKernelEx.
const DRIVER_FUNCTIONS: &[u32] = &[17, 121, 126, 243, 245, 271, 307, 514, 652];
/// Set where a tool is attached that needs CUPTI for itself.
const OTHER_TOOLS: &[&str] = &["CUDA_INJECTION64_PATH", "NSYS_PROFILING_SESSION_ID"];

struct Session {
    running: bool,
    path: PathBuf,
    enabled: u32,
    shared: bool,
    own_clock: bool,
    /// A window has seen a CUDA graph.
    graphs: bool,
}

static SESSION: Mutex<Session> = Mutex::new(Session {
    running: false,
    path: PathBuf::new(),
    enabled: 0,
    shared: false,
    own_clock: false,
    graphs: false,
});
/// Set once CUPTI was found; the callbacks need it without a lock.
static CUPTI: OnceLock<Cupti> = OnceLock::new();
static STATUS: AtomicI32 = AtomicI32::new(status::IDLE);
/// The process that started the first window. CUDA does not survive a fork, and a lock may be held in the child.
static OWNER: AtomicU32 = AtomicU32::new(0);
/// No process has this id.
const NOBODY: u32 = u32::MAX;
static FAILURE: Mutex<String> = Mutex::new(String::new());

/// True in a child forked after the first start: nothing may be touched there, no lock either, because another thread of the
/// parent may have held it.
pub fn forked() -> bool {
    let owner = OWNER.load(Ordering::Acquire);
    owner != 0 && owner != std::process::id()
}

/// Makes a forked child inert for good, its own children included.
pub fn after_fork() {
    if forked() {
        OWNER.store(NOBODY, Ordering::Release);
        STATUS.store(status::IDLE, Ordering::Release);
    }
}

/// What `flatout_tracer_status` returns.
pub fn current_status() -> i32 {
    STATUS.load(Ordering::Acquire)
}

/// The text of the last failure.
pub fn failure() -> String {
    FAILURE.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn fail(reason: Reason, text: impl Into<String>) -> Reason {
    *FAILURE.lock().unwrap_or_else(PoisonError::into_inner) = text.into();
    reason
}

/// Opens a window whose records go to a new file at `path`.
pub fn start(path: &Path, limit: u64, kinds: u32) -> Result<(), Reason> {
    if forked() {
        return Err(Reason::Forked);
    }
    OWNER.store(std::process::id(), Ordering::Release);
    let mut session = SESSION.lock().unwrap_or_else(PoisonError::into_inner);
    if session.running {
        return Err(fail(Reason::Running, "a window is already open"));
    }
    if let Some(tool) = OTHER_TOOLS
        .iter()
        .find(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
    {
        return Err(fail(Reason::HeldByAnother, format!("{tool} is set")));
    }
    let cupti = find()?;
    let shared = match cupti.subscribe(on_driver_call) {
        Ok(_) => false,
        Err(result) if !cupti::held_by_another(result) => {
            return Err(fail(
                Reason::Cupti,
                format!("cuptiSubscribe: {}", cupti.explain(result)),
            ));
        }
        Err(_) if kinds & kinds::SHARED != 0 => true,
        Err(_) => return Err(fail(Reason::HeldByAnother, "CUPTI has another subscriber")),
    };
    let requested = match kinds & !kinds::SHARED {
        0 => kinds::DEFAULT,
        requested => requested,
    };
    let header = Header {
        start: system::monotonic(),
        cupti: cupti.version,
        process: std::process::id(),
        kinds_requested: requested,
        ..Header::default()
    };
    let limit = if limit == 0 { DEFAULT_LIMIT } else { limit };
    let mut window = Window::create(path, header, limit)
        .map_err(|error| fail(Reason::File, format!("{}: {error}", path.display())))?;
    // Buffers of an earlier tool go back to that tool before ours replace its callbacks.
    cupti.flush(false);
    let own_clock = cupti.use_clock(monotonic_clock);
    let (offset, uncertainty, floor) = if own_clock {
        window.header.flags |= OWN_CLOCK;
        (0, 0, window.header.start)
    } else {
        offset(cupti)
    };
    window.header.offset_start = offset;
    window.header.uncertainty = uncertainty;
    cupti.dropped();
    let result = cupti.register(request_buffer, complete_buffer);
    let enabled = if result == SUCCESS {
        window.open(floor);
        enable(cupti, requested)
    } else {
        Err(result)
    };
    match enabled {
        Ok(enabled) => {
            *session = Session {
                running: true,
                path: path.to_owned(),
                enabled,
                shared,
                own_clock,
                graphs: session.graphs,
            };
            STATUS.store(status::RUNNING, Ordering::Release);
            Ok(())
        }
        Err(result) => {
            cupti.flush(true);
            window::close();
            let _ = std::fs::remove_file(path);
            let reason = if cupti::held_by_another(result) {
                Reason::HeldByAnother
            } else {
                Reason::Cupti
            };
            Err(fail(reason, cupti.explain(result)))
        }
    }
}

/// Closes the window and returns the number of its records. With `finalize`, detaches CUPTI afterwards; the caller has
/// synchronized the GPU then. Without a window, `finalize` alone is done.
pub fn stop(finalize: bool) -> Result<u64, Reason> {
    if forked() {
        return Err(Reason::Forked);
    }
    let mut session = SESSION.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(cupti) = CUPTI.get() else {
        return Err(fail(Reason::NotRunning, "no window is open"));
    };
    let records = if session.running {
        close(cupti, &mut session)
    } else if finalize {
        Ok(0)
    } else {
        return Err(fail(Reason::NotRunning, "no window is open"));
    };
    if finalize && STATUS.load(Ordering::Acquire) != status::FINALIZED {
        detach(cupti, &session);
        if STATUS.load(Ordering::Acquire) != status::FINALIZED {
            restore_clock(cupti, &session);
        }
    }
    records
}

fn close(cupti: &Cupti, session: &mut Session) -> Result<u64, Reason> {
    disable(cupti, session.enabled);
    cupti.flush(false);
    if pool::lent() > 0 {
        // The rest: activities that the GPU has not finished are counted as incomplete.
        cupti.flush(true);
    }
    let dropped = cupti.dropped();
    let window = window::close();
    session.running = false;
    STATUS.store(status::IDLE, Ordering::Release);
    let Some(mut window) = window else {
        return Err(fail(Reason::NotRunning, "no window is open"));
    };
    if !session.own_clock {
        let (offset, uncertainty, _) = offset(cupti);
        window.header.offset_stop = offset;
        window.header.uncertainty = window.header.uncertainty.max(uncertainty);
    }
    session.graphs |= window.graphs;
    let header = &mut window.header;
    header.flags |= CLOSED;
    header.stop = system::monotonic();
    header.kinds_enabled = session.enabled;
    header.dropped = DROPPED.swap(0, Ordering::AcqRel) + dropped;
    header.buffers_kept = pool::lent() as u32;
    window
        .finish()
        .map_err(|error| fail(Reason::File, format!("{}: {error}", session.path.display())))
}

fn find() -> Result<&'static Cupti, Reason> {
    if let Some(cupti) = CUPTI.get() {
        return Ok(cupti);
    }
    match Cupti::find() {
        Ok(cupti) => Ok(CUPTI.get_or_init(|| cupti)),
        Err(Missing::Library) => Err(fail(Reason::NoCupti, "no libcupti is loaded in this process")),
        Err(Missing::Symbol(name)) => Err(fail(
            Reason::OldCupti,
            format!("libcupti lacks {}", name.to_string_lossy()),
        )),
        Err(Missing::Version(version)) => Err(fail(
            Reason::OldCupti,
            format!("libcupti has API version {version}; 18 (CUDA 11.8) is needed"),
        )),
    }
}

/// Which CUPTI kinds a bit turns on.
fn activities(bit: u32) -> &'static [u32] {
    match bit {
        kinds::KERNEL => &[layout::CONCURRENT_KERNEL],
        kinds::MEMCPY => &[layout::MEMCPY, layout::MEMCPY_PEER],
        kinds::MEMSET => &[layout::MEMSET],
        kinds::SYNCHRONIZATION => &[layout::SYNCHRONIZATION],
        kinds::OVERHEAD => &[layout::OVERHEAD],
        kinds::GRAPH_TRACE => &[layout::GRAPH_TRACE],
        _ => &[],
    }
}

fn bits(kinds: u32) -> impl Iterator<Item = u32> {
    (0..u32::BITS)
        .map(|bit| 1 << bit)
        .filter(move |bit| kinds & bit != 0)
}

/// Enables what was asked for and returns what could be enabled. Kernels, copies, memsets and synchronizations are needed;
/// where one of them is refused, nothing stays enabled.
fn enable(cupti: &Cupti, requested: u32) -> Result<u32, u32> {
    let mut enabled = 0;
    for bit in bits(requested) {
        let result = match bit {
            kinds::RUNTIME => selected(cupti, false, RUNTIME_FUNCTIONS, true),
            kinds::DRIVER => selected(cupti, true, DRIVER_FUNCTIONS, true),
            _ => match activities(bit) {
                [first, more @ ..] => {
                    if bit == kinds::SYNCHRONIZATION {
                        // The NCCL watchdog and the caching allocator query events all the time.
                        cupti.record_queries(false);
                    }
                    for &kind in more {
                        cupti.enable(kind);
                    }
                    cupti.enable(*first)
                }
                [] => continue,
            },
        };
        if result == SUCCESS {
            enabled |= bit;
        } else if bit & kinds::DEFAULT != 0 {
            disable(cupti, enabled | bit);
            return Err(result);
        }
    }
    Ok(enabled)
}

fn disable(cupti: &Cupti, enabled: u32) {
    for bit in bits(enabled) {
        match bit {
            kinds::RUNTIME => _ = selected(cupti, false, RUNTIME_FUNCTIONS, false),
            kinds::DRIVER => _ = selected(cupti, true, DRIVER_FUNCTIONS, false),
            _ => {
                for &kind in activities(bit) {
                    cupti.disable(kind);
                }
            }
        }
        if bit == kinds::SYNCHRONIZATION {
            cupti.record_queries(true);
        }
    }
}

fn selected(cupti: &Cupti, driver: bool, functions: &[u32], on: bool) -> u32 {
    let count = functions
        .iter()
        .filter(|&&function| cupti.select(driver, function, on))
        .count();
    u32::from(count == 0)
}

/// CLOCK_MONOTONIC minus CUPTI's clock, how far that may be off, and the present in CUPTI's clock. The narrowest of several
/// brackets counts: a thread may lose its CPU between two reads.
fn offset(cupti: &Cupti) -> (i64, u64, u64) {
    let mut best = (0, u64::MAX, 0);
    for _ in 0..9 {
        let before = system::monotonic();
        let Some(time) = cupti.timestamp() else { continue };
        let width = system::monotonic().saturating_sub(before);
        if width < best.1 {
            best = ((before + width / 2).wrapping_sub(time).cast_signed(), width, time);
        }
    }
    best
}

/// Leaves a CUPTI that is not finalized with the clock it had: a callback cannot be removed, but replaced by the default. Not
/// done between windows, because CUPTI interpolates GPU times between readings of this clock, old ones included.
fn restore_clock(cupti: &Cupti, session: &Session) {
    if session.own_clock {
        cupti.use_clock(realtime_clock);
    }
}

/// The thread that runs `detach`, 0 for none, and cuptiFinalize's result + 1, 0 before it.
static DETACHING: AtomicU64 = AtomicU64::new(0);
static DETACHED: AtomicU64 = AtomicU64::new(0);

/// Detaches CUPTI: enabled once, it slows every launch by about 8% until then. NVIDIA recommends to do this in the exit
/// callback of a CUDA function, so the tracer subscribes to `cuDriverGetVersion`, which costs and changes nothing, and calls
/// it. Left undone where another tool is subscribed, because it would lose its subscription too, and where a CUDA graph ran
/// in a window: replaying it afterwards fails with "unspecified launch failure" (H200, CUDA 13.0, 2026-11-18). Replays are as
/// fast as before without it.
fn detach(cupti: &Cupti, session: &Session) {
    if session.graphs {
        fail(
            Reason::Cupti,
            "not finalized: that would break the program's CUDA graphs",
        );
        return;
    }
    let subscriber = match cupti.subscribe(on_driver_call) {
        Ok(subscriber) if !session.shared => subscriber,
        _ => {
            fail(
                Reason::HeldByAnother,
                "not finalized: CUPTI has another subscriber",
            );
            return;
        }
    };
    DETACHED.store(0, Ordering::Release);
    DETACHING.store(thread_number(), Ordering::Release);
    if subscriber.watch_driver_version() {
        call_driver();
    }
    DETACHING.store(0, Ordering::Release);
    let result = match DETACHED.load(Ordering::Acquire) {
        0 => {
            drop(subscriber);
            cupti.finalize()
        }
        done => {
            subscriber.forget();
            u32::try_from(done - 1).ok()
        }
    };
    match result {
        Some(SUCCESS) => {
            pool::abandon();
            STATUS.store(status::FINALIZED, Ordering::Release);
        }
        Some(result) => _ = fail(Reason::Cupti, format!("cuptiFinalize: {}", cupti.explain(result))),
        None => _ = fail(Reason::OldCupti, "libcupti lacks cuptiFinalize"),
    }
}

/// A number that only this thread has.
fn thread_number() -> u64 {
    thread_local!(static PLACE: u8 = const { 0 });
    PLACE.with(|place| std::ptr::from_ref(place) as u64)
}

fn call_driver() {
    let function =
        system::Library::loaded(c"libcuda.so.1").and_then(|library| library.symbol(c"cuDriverGetVersion"));
    if let Some(address) = function {
        let mut version = 0_i32;
        // SAFETY: `cuDriverGetVersion` takes a pointer to an int.
        unsafe {
            let function = std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut i32) -> i32>(address);
            function(&raw mut version);
        }
    }
}

extern "C" fn on_driver_call(_: *mut c_void, _domain: u32, _function: u32, data: *const c_void) {
    const EXIT: u32 = 1;
    if data.is_null() || DETACHING.load(Ordering::Acquire) != thread_number() {
        return;
    }
    // SAFETY: CUpti_CallbackData begins with its call site, a 32-bit enum.
    let site = unsafe { data.cast::<u32>().read_unaligned() };
    if site == EXIT
        && let Some(cupti) = CUPTI.get()
        && DETACHED.load(Ordering::Acquire) == 0
        && let Some(result) = cupti.finalize()
    {
        DETACHED.store(u64::from(result) + 1, Ordering::Release);
    }
}

static DROPPED: AtomicU64 = AtomicU64::new(0);

extern "C" fn request_buffer(buffer: *mut *mut u8, size: *mut usize, max_records: *mut usize) {
    let lent = std::panic::catch_unwind(pool::lend).unwrap_or(std::ptr::null_mut());
    // SAFETY: CUPTI passes three valid pointers.
    unsafe {
        *buffer = lent;
        *size = if lent.is_null() { 0 } else { pool::BUFFER_BYTES };
        *max_records = 0;
    }
}

extern "C" fn complete_buffer(_: *mut c_void, _stream: u32, buffer: *mut u8, _size: usize, valid: usize) {
    if buffer.is_null() || forked() {
        return;
    }
    let _ = std::panic::catch_unwind(|| {
        if let Some(cupti) = CUPTI.get() {
            if valid > 0 {
                // SAFETY: CUPTI has completed this buffer with `valid` bytes.
                unsafe { window::complete(cupti, buffer, valid) };
            }
            DROPPED.fetch_add(cupti.dropped(), Ordering::AcqRel);
        }
    });
    let _ = std::panic::catch_unwind(|| pool::take_back(buffer));
}

extern "C" fn monotonic_clock() -> u64 {
    system::monotonic()
}

extern "C" fn realtime_clock() -> u64 {
    system::realtime()
}
