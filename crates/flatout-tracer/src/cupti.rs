//! CUPTI's functions, found at run time in the library that the process already uses.

use crate::system::Library;
use std::ffi::{CStr, CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;

pub const SUCCESS: u32 = 0;
const MAX_LIMIT_REACHED: u32 = 12;
const MULTIPLE_SUBSCRIBERS: u32 = 39;
/// The API version of CUDA 11.8: older record layouts were not checked.
const OLDEST: u32 = 18;
/// The driver API's callback domain, and its id of `cuDriverGetVersion`.
const DRIVER_DOMAIN: u32 = 1;
const DRIVER_GET_VERSION: u32 = 2;

pub type RequestBuffer = extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
pub type CompleteBuffer = extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);
pub type Callback = extern "C" fn(*mut c_void, u32, u32, *const c_void);
pub type Clock = extern "C" fn() -> u64;

/// Why a CUPTI cannot be used.
pub enum Missing {
    Library,
    Symbol(&'static CStr),
    Version(u32),
}

macro_rules! functions {
    (required { $($name:ident $symbol:literal ($($argument:ty),*);)* }
     optional { $($maybe:ident $maybe_symbol:literal ($($maybe_argument:ty),*);)* }) => {
        /// The functions in use. All return a CUptiResult.
        #[derive(Clone, Copy)]
        pub struct Cupti {
            pub version: u32,
            $($name: unsafe extern "C" fn($($argument),*) -> u32,)*
            $($maybe: Option<unsafe extern "C" fn($($maybe_argument),*) -> u32>,)*
        }

        impl Cupti {
            fn bind(library: Library) -> Result<Self, Missing> {
                $(let $name = library.symbol($symbol).ok_or(Missing::Symbol($symbol))?;)*
                $(let $maybe = library.symbol($maybe_symbol);)*
                Ok(Self {
                    version: 0,
                    // SAFETY: the signatures are those of cupti_activity.h and cupti_callbacks.h.
                    $($name: unsafe {
                        std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> u32>($name)
                    },)*
                    // SAFETY: as above.
                    $($maybe: $maybe.map(|address| unsafe {
                        std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($maybe_argument),*) -> u32>(address)
                    }),)*
                })
            }
        }
    };
}

functions! {
    required {
        get_version c"cuptiGetVersion" (*mut u32);
        activity_enable c"cuptiActivityEnable" (u32);
        activity_disable c"cuptiActivityDisable" (u32);
        flush_all c"cuptiActivityFlushAll" (u32);
        next_record c"cuptiActivityGetNextRecord" (*mut u8, usize, *mut *mut u8);
        dropped_records c"cuptiActivityGetNumDroppedRecords" (*mut c_void, u32, *mut usize);
        register_buffers c"cuptiActivityRegisterCallbacks" (RequestBuffer, CompleteBuffer);
        get_timestamp c"cuptiGetTimestamp" (*mut u64);
        result_string c"cuptiGetResultString" (u32, *mut *const c_char);
        subscribe c"cuptiSubscribe" (*mut *mut c_void, Callback, *mut c_void);
        unsubscribe c"cuptiUnsubscribe" (*mut c_void);
        enable_callback c"cuptiEnableCallback" (u32, *mut c_void, u32, u32);
    }
    optional {
        register_clock c"cuptiActivityRegisterTimestampCallback" (Clock);
        finalize c"cuptiFinalize" ();
        enable_runtime c"cuptiActivityEnableRuntimeApi" (u32, u8);
        enable_driver c"cuptiActivityEnableDriverApi" (u32, u8);
        all_synchronizations c"cuptiActivityEnableAllSyncRecords" (u8);
    }
}

impl Cupti {
    /// The CUPTI of this process. `FLATOUT_CUPTI` names another one; tests use it.
    pub fn find() -> Result<Self, Missing> {
        let library = match std::env::var_os("FLATOUT_CUPTI") {
            Some(path) => CString::new(path.as_bytes())
                .ok()
                .and_then(|path| Library::load(&path)),
            None => loaded(),
        };
        let mut cupti = Self::bind(library.ok_or(Missing::Library)?)?;
        let mut version = 0;
        // SAFETY: `version` is valid for the write.
        unsafe { (cupti.get_version)(&raw mut version) };
        if version < OLDEST {
            return Err(Missing::Version(version));
        }
        cupti.version = version;
        Ok(cupti)
    }

    pub fn enable(&self, kind: u32) -> u32 {
        // SAFETY: takes a number.
        unsafe { (self.activity_enable)(kind) }
    }

    pub fn disable(&self, kind: u32) -> u32 {
        // SAFETY: takes a number.
        unsafe { (self.activity_disable)(kind) }
    }

    /// Delivers the buffers whose records are all complete; `forced` delivers the others too.
    pub fn flush(&self, forced: bool) -> u32 {
        // SAFETY: takes a number; the buffer callbacks may run before it returns.
        unsafe { (self.flush_all)(u32::from(forced)) }
    }

    /// The record after `record`, or the first one after null. None at the end of the buffer.
    ///
    /// # Safety
    /// `buffer` must be a completed buffer with `valid` bytes, and `record` null or one of its records.
    pub unsafe fn next(&self, buffer: *mut u8, valid: usize, mut record: *mut u8) -> Option<*mut u8> {
        // SAFETY: the caller's promise.
        let result = unsafe { (self.next_record)(buffer, valid, &raw mut record) };
        (result == SUCCESS && !record.is_null()).then_some(record)
    }

    /// Records lost since the last call for lack of a buffer.
    pub fn dropped(&self) -> u64 {
        let mut count = 0;
        // SAFETY: `count` is valid for the write; a null context asks for the global queue.
        let result = unsafe { (self.dropped_records)(std::ptr::null_mut(), 0, &raw mut count) };
        if result == SUCCESS { count as u64 } else { 0 }
    }

    pub fn register(&self, request: RequestBuffer, complete: CompleteBuffer) -> u32 {
        // SAFETY: both functions are static.
        unsafe { (self.register_buffers)(request, complete) }
    }

    /// Makes CUPTI take its timestamps from `clock`. False where it cannot.
    pub fn use_clock(&self, clock: Clock) -> bool {
        // SAFETY: the function is static.
        self.register_clock
            .is_some_and(|register| unsafe { register(clock) } == SUCCESS)
    }

    pub fn timestamp(&self) -> Option<u64> {
        let mut time = 0;
        // SAFETY: `time` is valid for the write.
        let result = unsafe { (self.get_timestamp)(&raw mut time) };
        (result == SUCCESS).then_some(time)
    }

    /// Turns records of one runtime (or driver) function on or off. False where this CUPTI cannot choose functions.
    pub fn select(&self, driver: bool, function: u32, on: bool) -> bool {
        let select = if driver {
            self.enable_driver
        } else {
            self.enable_runtime
        };
        // SAFETY: takes numbers.
        select.is_some_and(|select| unsafe { select(function, u8::from(on)) } == SUCCESS)
    }

    /// Whether queries of unfinished events and streams are recorded too. The default is yes.
    pub fn record_queries(&self, on: bool) {
        if let Some(set) = self.all_synchronizations {
            // SAFETY: takes a number.
            unsafe { set(u8::from(on)) };
        }
    }

    /// Subscribes to the callback interface. CUPTI allows one subscriber, so this also shows whether another tool is there.
    pub fn subscribe(&self, callback: Callback) -> Result<Subscriber<'_>, u32> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: `handle` is valid for the write, `callback` is static.
        let result = unsafe { (self.subscribe)(&raw mut handle, callback, std::ptr::null_mut()) };
        if result == SUCCESS {
            Ok(Subscriber { cupti: self, handle })
        } else {
            Err(result)
        }
    }

    pub fn finalize(&self) -> Option<u32> {
        // SAFETY: the caller has stopped every window and synchronized the GPU.
        self.finalize.map(|finalize| unsafe { finalize() })
    }

    /// CUPTI's name of a result.
    pub fn explain(&self, result: u32) -> String {
        let mut text = std::ptr::null();
        // SAFETY: `text` is valid for the write and then names a static string.
        let found = unsafe { (self.result_string)(result, &raw mut text) } == SUCCESS && !text.is_null();
        if found {
            // SAFETY: a static C string, see above.
            unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
        } else {
            format!("CUPTI error {result}")
        }
    }
}

/// A subscription; ends when dropped, unless CUPTI was finalized meanwhile.
pub struct Subscriber<'a> {
    cupti: &'a Cupti,
    handle: *mut c_void,
}

impl Subscriber<'_> {
    /// Asks for a callback whenever `cuDriverGetVersion` is entered or left.
    pub fn watch_driver_version(&self) -> bool {
        // SAFETY: the handle is subscribed.
        let result =
            unsafe { (self.cupti.enable_callback)(1, self.handle, DRIVER_DOMAIN, DRIVER_GET_VERSION) };
        result == SUCCESS
    }

    /// Forgets the handle, after `cuptiFinalize` has destroyed it.
    pub fn forget(self) {
        std::mem::forget(self);
    }
}

impl Drop for Subscriber<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is subscribed.
        unsafe { (self.cupti.unsubscribe)(self.handle) };
    }
}

/// Whether a result of `cuptiSubscribe` or `cuptiActivityEnable` means that another tool holds CUPTI.
pub fn held_by_another(result: u32) -> bool {
    result == MULTIPLE_SUBSCRIBERS || result == MAX_LIMIT_REACHED
}

/// The loaded libcupti. PyTorch's own comes first: a process may hold a second one, such as Triton's.
fn loaded() -> Option<Library> {
    let usable = |library: &Library| library.symbol(c"cuptiActivityEnable").is_some();
    let names = [
        c"libtorch_cpu.so",
        c"libcupti.so.13",
        c"libcupti.so.12",
        c"libcupti.so.11.8",
    ];
    names
        .into_iter()
        .filter_map(Library::loaded)
        .find(usable)
        .or_else(|| {
            mapped_path()
                .and_then(|path| Library::loaded(&path))
                .filter(usable)
        })
}

/// The path of a mapped libcupti, whatever its name.
fn mapped_path() -> Option<CString> {
    let maps = std::fs::read("/proc/self/maps").ok()?;
    let path = maps.split(|&byte| byte == b'\n').find_map(|line| {
        let start = line.iter().position(|&byte| byte == b'/')?;
        let path = &line[start..];
        let name = path.rsplit(|&byte| byte == b'/').next()?;
        (name.starts_with(b"libcupti") && name.windows(3).any(|part| part == b".so")).then_some(path)
    })?;
    CString::new(path).ok()
}
