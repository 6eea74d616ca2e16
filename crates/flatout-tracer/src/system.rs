//! The few C functions that the tracer needs. Declared here because the shipped library has no dependencies.

use std::ffi::{CStr, c_char, c_int, c_void};

const CLOCK_MONOTONIC: c_int = 1;
const CLOCK_REALTIME: c_int = 0;
const RTLD_NOW: c_int = 2;
const RTLD_NOLOAD: c_int = 4;

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

unsafe extern "C" {
    fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int;
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// CLOCK_MONOTONIC in nanoseconds: the clock of Python's `time.monotonic_ns`.
pub fn monotonic() -> u64 {
    clock(CLOCK_MONOTONIC)
}

/// CLOCK_REALTIME in nanoseconds: CUPTI's own default on Linux.
pub fn realtime() -> u64 {
    clock(CLOCK_REALTIME)
}

fn clock(clock: c_int) -> u64 {
    let mut time = Timespec {
        seconds: 0,
        nanoseconds: 0,
    };
    // SAFETY: `time` is a valid timespec of the 64-bit ABI.
    unsafe { clock_gettime(clock, &raw mut time) };
    time.seconds.cast_unsigned() * 1_000_000_000 + time.nanoseconds.cast_unsigned()
}

/// An open shared library. Never closed: its code may run on other threads at any time.
#[derive(Clone, Copy)]
pub struct Library(*mut c_void);

// SAFETY: a dlopen handle may be used from any thread.
unsafe impl Send for Library {}

impl Library {
    /// The library if the process has loaded it.
    pub fn loaded(name: &CStr) -> Option<Self> {
        // SAFETY: `name` is a C string; NOLOAD runs no initializers.
        let handle = unsafe { dlopen(name.as_ptr(), RTLD_NOW | RTLD_NOLOAD) };
        (!handle.is_null()).then_some(Self(handle))
    }

    /// Loads the library.
    pub fn load(path: &CStr) -> Option<Self> {
        // SAFETY: `path` is a C string; the caller names a library to be run in this process.
        let handle = unsafe { dlopen(path.as_ptr(), RTLD_NOW) };
        (!handle.is_null()).then_some(Self(handle))
    }

    /// The address of a function, in this library or in one that it links.
    pub fn symbol(self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: the handle is open, `name` is a C string.
        let address = unsafe { dlsym(self.0, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    }
}
