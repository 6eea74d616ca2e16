//! The calls of cuDNN's graph interface, found at run time. Numbers are those of cudnn_graph.h, the same since version 8.

use crate::cuda::driver::Stream;
use crate::cuda::error::CudaError;
use crate::cuda::libraries::{self, Found};
use crate::cuda::recording_lock::exclusive;
use std::ffi::{CStr, c_char, c_void};
use std::ptr;

type Raw = *mut c_void;

/// cuDNN's functions.
#[derive(Clone, Copy)]
pub(super) struct Api {
    create: unsafe extern "C" fn(*mut Raw) -> i32,
    set_stream: unsafe extern "C" fn(Raw, Raw) -> i32,
    destroy: unsafe extern "C" fn(Raw) -> i32,
    error_string: unsafe extern "C" fn(i32) -> *const c_char,
    version: unsafe extern "C" fn() -> usize,
    create_descriptor: unsafe extern "C" fn(i32, *mut Raw) -> i32,
    destroy_descriptor: unsafe extern "C" fn(Raw) -> i32,
    finalize: unsafe extern "C" fn(Raw) -> i32,
    set: unsafe extern "C" fn(Raw, i32, i32, i64, *const c_void) -> i32,
    get: unsafe extern "C" fn(Raw, i32, i32, i64, *mut i64, *mut c_void) -> i32,
    execute: unsafe extern "C" fn(Raw, Raw, Raw) -> i32,
}

/// The library bound to one queue.
pub(super) struct Handle {
    raw: Raw,
    api: Api,
}

// SAFETY: used by one session at a time.
unsafe impl Send for Handle {}

/// A descriptor of the library.
pub(super) struct Descriptor {
    raw: Raw,
    api: Api,
}

// SAFETY: as for the handle.
unsafe impl Send for Descriptor {}

/// What an attribute's values are.
#[derive(Clone, Copy)]
#[repr(i32)]
pub(super) enum Type {
    Handle = 0,
    Number = 1,
    Long = 3,
    Float = 4,
    Pointer = 6,
    Mode = 7,
    HeuristicMode = 8,
    NumericalNote = 11,
    Descriptor = 15,
}

impl Api {
    #[allow(clippy::missing_transmute_annotations, reason = "each field says its type")]
    pub fn open() -> Result<(Self, Found), CudaError> {
        let (library, found) = libraries::open_by_name("cudnn", &["libcudnn.so.9"])?;
        macro_rules! find {
            ($name:literal) => {{
                let symbol = library.symbol(concat!($name, "\0")).ok_or(CudaError::Call {
                    call: $name,
                    reason: "not in libcudnn".to_owned(),
                })?;
                // SAFETY: the function of this name has this signature in every version of the library that has it.
                unsafe { std::mem::transmute(symbol) }
            }};
        }
        let api = Self {
            create: find!("cudnnCreate"),
            set_stream: find!("cudnnSetStream"),
            destroy: find!("cudnnDestroy"),
            error_string: find!("cudnnGetErrorString"),
            version: find!("cudnnGetVersion"),
            create_descriptor: find!("cudnnBackendCreateDescriptor"),
            destroy_descriptor: find!("cudnnBackendDestroyDescriptor"),
            finalize: find!("cudnnBackendFinalize"),
            set: find!("cudnnBackendSetAttribute"),
            get: find!("cudnnBackendGetAttribute"),
            execute: find!("cudnnBackendExecute"),
        };
        Ok((api, found))
    }

    pub fn version(&self) -> usize {
        // SAFETY: takes nothing, returns a number.
        unsafe { (self.version)() }
    }

    fn check(&self, call: &'static str, status: i32) -> Result<(), CudaError> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: the library hands out a static string.
        let text = unsafe { CStr::from_ptr((self.error_string)(status)) };
        let reason = text.to_string_lossy().into_owned();
        Err(CudaError::Call { call, reason })
    }

    pub fn create(&self, stream: &Stream) -> Result<Handle, CudaError> {
        let mut raw = ptr::null_mut();
        // SAFETY: fills the handle.
        self.check("cudnnCreate", unsafe { (self.create)(&mut raw) })?;
        let handle = Handle { raw, api: *self };
        // SAFETY: both are alive.
        let set = unsafe { (self.set_stream)(raw, stream.raw().cast()) };
        self.check("cudnnSetStream", set)?;
        Ok(handle)
    }

    pub fn descriptor(&self, kind: i32) -> Result<Descriptor, CudaError> {
        let mut raw = ptr::null_mut();
        // SAFETY: fills the descriptor.
        let made = unsafe { (self.create_descriptor)(kind, &mut raw) };
        self.check("cudnnBackendCreateDescriptor", made)?;
        Ok(Descriptor { raw, api: *self })
    }

    pub fn execute(&self, handle: &Handle, plan: &Descriptor, pack: &Descriptor) -> Result<(), CudaError> {
        // SAFETY: all are alive; the pack's addresses hold tensors of the plan's sizes.
        let done = unsafe { (self.execute)(handle.raw, plan.raw, pack.raw) };
        self.check("cudnnBackendExecute", done)
    }
}

impl Descriptor {
    /// Sets an attribute to some values of the type that it has in the library.
    pub fn set<T: Copy>(&self, attribute: i32, of: Type, values: &[T]) -> Result<(), CudaError> {
        // SAFETY: the library copies the values.
        let set = unsafe {
            (self.api.set)(
                self.raw,
                attribute,
                of as i32,
                values.len() as i64,
                values.as_ptr().cast(),
            )
        };
        self.api.check("cudnnBackendSetAttribute", set)
    }

    pub fn set_descriptors(&self, attribute: i32, others: &[&Self]) -> Result<(), CudaError> {
        let raws: Vec<Raw> = others.iter().map(|other| other.raw).collect();
        self.set(attribute, Type::Descriptor, &raws)
    }

    pub fn set_handle(&self, attribute: i32, handle: &Handle) -> Result<(), CudaError> {
        self.set(attribute, Type::Handle, &[handle.raw])
    }

    pub fn finalize(self) -> Result<Self, CudaError> {
        // SAFETY: made by this library.
        let done = unsafe { (self.api.finalize)(self.raw) };
        self.api.check("cudnnBackendFinalize", done)?;
        Ok(self)
    }

    /// Fills `values`; gives how many there are.
    pub fn get<T: Copy>(&self, attribute: i32, of: Type, values: &mut [T]) -> Result<usize, CudaError> {
        let mut count = 0i64;
        let place = values.as_mut_ptr().cast();
        // SAFETY: the library writes at most as many values as there is room for.
        let got = unsafe {
            (self.api.get)(
                self.raw,
                attribute,
                of as i32,
                values.len() as i64,
                &mut count,
                place,
            )
        };
        self.api.check("cudnnBackendGetAttribute", got)?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// Fills descriptors made for it; gives how many it filled.
    pub fn get_descriptors(&self, attribute: i32, into: &[Self]) -> Result<usize, CudaError> {
        let mut raws: Vec<Raw> = into.iter().map(|descriptor| descriptor.raw).collect();
        self.get(attribute, Type::Descriptor, &mut raws)
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: made by this library, used by nobody else.
        exclusive(|| unsafe { (self.api.destroy_descriptor)(self.raw) });
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Closing the library waits for the whole card, which a recording does not survive.
        // SAFETY: as above.
        exclusive(|| unsafe { (self.api.destroy)(self.raw) });
    }
}
