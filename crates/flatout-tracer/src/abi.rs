//! The C interface. Functions may be called from any thread; start and stop exclude each other.

use crate::session::{self, Reason};
use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// The version of this interface.
pub const VERSION: u32 = 1;

/// Runs `work`; a panic becomes `Reason::Panicked`, silently: stderr belongs to the user's program.
fn guarded<T>(work: impl FnOnce() -> Result<T, Reason>) -> Result<T, Reason> {
    // The shared library has its own copy of std, so this hook is nobody else's.
    #[cfg(feature = "shared-library")]
    {
        static SILENCE: std::sync::Once = std::sync::Once::new();
        SILENCE.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    }
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(Reason::Panicked))
}

/// The version of this interface.
#[unsafe(no_mangle)]
pub extern "C" fn flatout_tracer_version() -> u32 {
    VERSION
}

/// Opens a window that records into a new file at `path`, `max_records` at most (0: one million). `kinds` is a set of
/// [`kinds`] bits, 0 for the default. Returns 0, or a positive reason: 1 no libcupti in this process,
/// 2 another tool holds CUPTI, 3 libcupti too old, 4 the file cannot be created, 5 a window is open, 6 another CUPTI error,
/// 8 forked child, 9 internal error.
///
/// # Safety
/// `path` must be null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flatout_tracer_start(path: *const c_char, max_records: u64, kinds: u32) -> i32 {
    let result = guarded(|| {
        if path.is_null() {
            return Err(Reason::File);
        }
        // SAFETY: the caller's promise.
        let path = unsafe { CStr::from_ptr(path) };
        session::start(Path::new(OsStr::from_bytes(path.to_bytes())), max_records, kinds)
    });
    result.map_or_else(|reason| reason as i32, |()| 0)
}

/// Closes the window. With `finalize` not 0, detaches CUPTI afterwards, so that later steps run at full speed: synchronize
/// the GPU first. Returns the number of records in the file, or a negative reason: -4 the file could not be written, -7 no
/// window is open, -8 forked child, -9 internal error. `flatout_tracer_status` tells whether CUPTI was finalized.
#[unsafe(no_mangle)]
pub extern "C" fn flatout_tracer_stop(finalize: i32) -> i64 {
    let result = guarded(|| session::stop(finalize != 0));
    result.map_or_else(
        |reason| -i64::from(reason as i32),
        |records| i64::try_from(records).unwrap_or(i64::MAX),
    )
}

/// For a forked child: the tracer never does anything again there if the parent had started it.
#[unsafe(no_mangle)]
pub extern "C" fn flatout_tracer_after_fork() {
    // Every entry point compares process ids, so a child that does not call this is inert too.
    session::after_fork();
}

/// 0 idle, 1 a window is open, 2 idle and CUPTI is finalized, -8 forked child.
#[unsafe(no_mangle)]
pub extern "C" fn flatout_tracer_status() -> i32 {
    if session::forked() {
        -(Reason::Forked as i32)
    } else {
        session::current_status()
    }
}

/// Copies the text of the last failure, cut to `length` and ended by NUL, and returns its whole length in bytes.
///
/// # Safety
/// `buffer` must be null or valid for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flatout_tracer_error(buffer: *mut c_char, length: usize) -> usize {
    let text = if session::forked() {
        Ok("the process was forked".to_owned())
    } else {
        guarded(|| Ok(session::failure()))
    };
    let text = text.unwrap_or_default();
    if !buffer.is_null() && length > 0 {
        let count = text.len().min(length - 1);
        // SAFETY: `count` is below `length`, and the two do not overlap.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast::<u8>(), count);
            buffer.add(count).write(0);
        }
    }
    text.len()
}

pub use session::{kinds, status};
