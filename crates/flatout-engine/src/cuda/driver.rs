//! The driver's calls the engine needs, each checked. Nothing here knows of plans.

use super::error::CudaError;
use super::libraries;
use super::turn::alone;
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute, CUresult};
use std::ffi::{CStr, CString, c_void};
use std::ptr;
use std::sync::OnceLock;

pub fn check(call: &'static str, result: CUresult) -> Result<(), CudaError> {
    if result == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    if result == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
        let (mut free, mut total) = (0, 0);
        // SAFETY: fills two numbers.
        let _ = unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) };
        return Err(CudaError::OutOfMemory {
            wanted_bytes: 0,
            free_bytes: free as u64,
        });
    }
    let mut text = ptr::null();
    // SAFETY: the driver hands out a static string.
    let reason = unsafe {
        match sys::cuGetErrorString(result, &mut text) {
            CUresult::CUDA_SUCCESS if !text.is_null() => CStr::from_ptr(text).to_string_lossy().into_owned(),
            _ => format!("{result:?}"),
        }
    };
    Err(CudaError::Call { call, reason })
}

/// Calls the driver and turns what it returns into a `Result`.
macro_rules! cuda {
    ($function:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: every pointer handed over is valid for the call; what the call keeps is owned by a type of this module.
        check(stringify!($function), unsafe { sys::$function($($argument),*) })
    };
}

/// The newest CUDA that the driver supports.
pub fn version() -> Result<(u32, u32), CudaError> {
    let mut number = 0;
    cuda!(cuDriverGetVersion(&mut number))?;
    let number = u32::try_from(number).unwrap_or(0);
    Ok((number / 1000, number % 1000 / 10))
}

/// What stands behind a card that does not open.
fn not_opened(ordinal: usize, result: CUresult) -> Option<CudaError> {
    match result {
        // Another program has it for itself (compute mode EXCLUSIVE_PROCESS), or nobody may use it (PROHIBITED).
        CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE => Some(CudaError::Taken { card: ordinal }),
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => Some(CudaError::Full { card: ordinal }),
        _ => None,
    }
}

/// Why the driver does not start.
fn not_started(result: CUresult, reason: String) -> CudaError {
    match result {
        CUresult::CUDA_ERROR_NO_DEVICE => CudaError::Device { wanted: 0, found: 0 },
        // The driver's library and its kernel module are of different versions, or a newer CUDA is asked for than it knows.
        CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH => CudaError::Mismatch,
        _ => CudaError::Driver { reason },
    }
}

/// A card with its primary context, current on the thread that opened it.
#[derive(Clone, Debug)]
pub struct Device {
    context: sys::CUcontext,
    pub name: String,
    pub capability: (u32, u32),
    pub multiprocessors: u32,
}

// SAFETY: a context may be used from any thread after `bind`.
unsafe impl Send for Device {}

impl Device {
    pub fn open(ordinal: usize) -> Result<Self, CudaError> {
        // SAFETY: takes a number.
        let started = unsafe { sys::cuInit(0) };
        check("cuInit", started).map_err(|error| not_started(started, error.to_string()))?;
        let mut count = 0;
        cuda!(cuDeviceGetCount(&mut count))?;
        let found = usize::try_from(count).unwrap_or(0);
        if ordinal >= found {
            return Err(CudaError::Device {
                wanted: ordinal,
                found,
            });
        }
        let mut device = 0;
        cuda!(cuDeviceGet(&mut device, ordinal as i32))?;
        let mut name = [0u8; 128];
        cuda!(cuDeviceGetName(name.as_mut_ptr().cast(), 127, device))?;
        let attribute = |which: Attribute| {
            let mut value = 0;
            cuda!(cuDeviceGetAttribute(&mut value, which, device)).map(|()| u32::try_from(value).unwrap_or(0))
        };
        let capability = (
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        );
        let multiprocessors = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        let mut context = ptr::null_mut();
        // SAFETY: fills the context.
        let opened = unsafe { sys::cuDevicePrimaryCtxRetain(&mut context, device) };
        check("cuDevicePrimaryCtxRetain", opened)
            .map_err(|error| not_opened(ordinal, opened).unwrap_or(error))?;
        let name = CStr::from_bytes_until_nul(&name)
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let device = Self {
            context,
            name,
            capability,
            multiprocessors,
        };
        device.bind()?;
        Ok(device)
    }

    /// Makes the card current on this thread.
    pub fn bind(&self) -> Result<(), CudaError> {
        cuda!(cuCtxSetCurrent(self.context))
    }

    /// Free and total memory in bytes.
    pub fn memory(&self) -> Result<(u64, u64), CudaError> {
        let (mut free, mut total) = (0, 0);
        cuda!(cuMemGetInfo_v2(&mut free, &mut total))?;
        Ok((free as u64, total as u64))
    }
}

/// A stretch of memory on the card.
#[derive(Debug)]
pub struct Block {
    address: u64,
    bytes: usize,
}

impl Block {
    pub fn new(bytes: usize) -> Result<Self, CudaError> {
        let mut address = 0;
        // An empty block still has an address of its own.
        alone(|| cuda!(cuMemAlloc_v2(&mut address, bytes.max(16)))).map_err(|error| match error {
            CudaError::OutOfMemory { free_bytes, .. } => CudaError::OutOfMemory {
                wanted_bytes: bytes as u64,
                free_bytes,
            },
            other => other,
        })?;
        Ok(Self { address, bytes })
    }

    pub fn address(&self) -> u64 {
        self.address
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // Freeing waits for the work that uses it; a failure at the end of a process has nobody to tell.
        let _ = alone(|| cuda!(cuMemFree_v2(self.address)));
    }
}

/// Memory of the host that the card can read by itself.
#[derive(Debug)]
pub struct Pinned {
    address: *mut u8,
    bytes: usize,
}

// SAFETY: plain memory with one owner.
unsafe impl Send for Pinned {}

impl Pinned {
    pub fn new(bytes: usize) -> Result<Self, CudaError> {
        let mut address: *mut c_void = ptr::null_mut();
        alone(|| cuda!(cuMemHostAlloc(&mut address, bytes.max(16), 0)))?;
        // SAFETY: freshly allocated, of that size.
        unsafe { ptr::write_bytes(address.cast::<u8>(), 0, bytes) };
        Ok(Self {
            address: address.cast(),
            bytes,
        })
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: owned, allocated and initialised at this size.
        unsafe { std::slice::from_raw_parts(self.address, self.bytes) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: owned, allocated and initialised at this size.
        unsafe { std::slice::from_raw_parts_mut(self.address, self.bytes) }
    }

    pub fn as_ptr(&self) -> *const u8 {
        self.address
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let _ = alone(|| cuda!(cuMemFreeHost(self.address.cast())));
    }
}

/// A queue of work. Not the default one: that could not be captured.
#[derive(Debug)]
pub struct Stream {
    raw: sys::CUstream,
}

// SAFETY: the driver's calls on a stream are thread-safe.
unsafe impl Send for Stream {}

impl Stream {
    /// The card takes blocks of an urgent queue first.
    pub fn new(urgent: bool) -> Result<Self, CudaError> {
        let (mut lowest, mut highest) = (0, 0);
        cuda!(cuCtxGetStreamPriorityRange(&mut lowest, &mut highest))?;
        let mut raw = ptr::null_mut();
        cuda!(cuStreamCreateWithPriority(
            &mut raw,
            sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32,
            if urgent { highest } else { lowest },
        ))?;
        Ok(Self { raw })
    }

    /// What comes next in this queue waits for the mark.
    pub fn wait_for(&self, event: &Event) -> Result<(), CudaError> {
        cuda!(cuStreamWaitEvent(self.raw, event.raw, 0))
    }

    /// From one place on the card to another.
    pub fn copy(&self, target: u64, source: u64, bytes: usize) -> Result<(), CudaError> {
        cuda!(cuMemcpyDtoDAsync_v2(target, source, bytes, self.raw))
    }

    pub fn raw(&self) -> sys::CUstream {
        self.raw
    }

    pub fn wait(&self) -> Result<(), CudaError> {
        cuda!(cuStreamSynchronize(self.raw))
    }

    pub fn clear(&self, address: u64, bytes: usize) -> Result<(), CudaError> {
        cuda!(cuMemsetD8Async(address, 0, bytes, self.raw))
    }

    /// Host to card. The source must stay as it is until the copy has run: pinned memory, or [`Stream::wait`] next.
    ///
    /// # Safety
    /// `source` is readable for `bytes` until then.
    pub unsafe fn upload(&self, address: u64, source: *const u8, bytes: usize) -> Result<(), CudaError> {
        cuda!(cuMemcpyHtoDAsync_v2(address, source.cast(), bytes, self.raw))
    }

    /// Card to host, not waited for.
    ///
    /// # Safety
    /// `target` is writable for `bytes` until the copy has run, and nobody reads it before.
    pub unsafe fn fetch(&self, target: *mut u8, address: u64, bytes: usize) -> Result<(), CudaError> {
        cuda!(cuMemcpyDtoHAsync_v2(target.cast(), address, bytes, self.raw))
    }

    /// Card to host, waited for.
    pub fn download<T: Copy>(&self, values: &mut [T], address: u64) -> Result<(), CudaError> {
        let bytes = size_of_val(values);
        cuda!(cuMemcpyDtoHAsync_v2(
            values.as_mut_ptr().cast(),
            address,
            bytes,
            self.raw
        ))?;
        self.wait()
    }

    /// Host to card, waited for.
    pub fn write<T: Copy>(&self, address: u64, values: &[T]) -> Result<(), CudaError> {
        // SAFETY: the slice lives until the wait has returned.
        unsafe { self.upload(address, values.as_ptr().cast(), size_of_val(values))? };
        self.wait()
    }

    /// Records what `work` puts into this stream instead of running it.
    pub fn capture<E: From<CudaError>>(&self, work: impl FnOnce() -> Result<(), E>) -> Result<Graph, E> {
        alone(|| self.record(work))
    }

    fn record<E: From<CudaError>>(&self, work: impl FnOnce() -> Result<(), E>) -> Result<Graph, E> {
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        cuda!(cuStreamBeginCapture_v2(self.raw, mode))?;
        let done = work();
        let mut graph = ptr::null_mut();
        let ended = cuda!(cuStreamEndCapture(self.raw, &mut graph));
        done?;
        ended?;
        let mut raw = ptr::null_mut();
        let made = cuda!(cuGraphInstantiateWithFlags(&mut raw, graph, 0));
        let _ = cuda!(cuGraphDestroy(graph));
        made?;
        Ok(Graph { raw })
    }
}

/// Recorded work that runs with one call.
#[derive(Debug)]
pub struct Graph {
    raw: sys::CUgraphExec,
}

// SAFETY: used by one owner at a time.
unsafe impl Send for Graph {}

impl Graph {
    pub fn launch(&self, stream: &Stream) -> Result<(), CudaError> {
        cuda!(cuGraphLaunch(self.raw, stream.raw))
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let _ = alone(|| cuda!(cuGraphExecDestroy(self.raw)));
    }
}

/// A mark in a stream.
#[derive(Debug)]
pub struct Event {
    raw: sys::CUevent,
}

// SAFETY: the driver's calls on an event are thread-safe.
unsafe impl Send for Event {}

impl Event {
    pub fn new() -> Result<Self, CudaError> {
        let mut raw = ptr::null_mut();
        cuda!(cuEventCreate(&mut raw, 0))?;
        Ok(Self { raw })
    }

    pub fn record(&self, stream: &Stream) -> Result<(), CudaError> {
        cuda!(cuEventRecord(self.raw, stream.raw))
    }

    pub fn wait(&self) -> Result<(), CudaError> {
        cuda!(cuEventSynchronize(self.raw))
    }

    /// Whether the mark has been reached.
    pub fn is_reached(&self) -> bool {
        // SAFETY: the event is alive.
        unsafe { sys::cuEventQuery(self.raw) == CUresult::CUDA_SUCCESS }
    }

    /// Milliseconds from `start` to this mark; both must have been reached.
    pub fn since(&self, start: &Self) -> Result<f64, CudaError> {
        let elapsed = elapsed().ok_or_else(|| CudaError::Call {
            call: "cuEventElapsedTime",
            reason: "not in libcuda.so.1".to_owned(),
        })?;
        let mut milliseconds = 0f32;
        // SAFETY: both events are alive, the number is ours.
        let result = unsafe { elapsed(&mut milliseconds, start.raw, self.raw) };
        check("cuEventElapsedTime", result)?;
        Ok(f64::from(milliseconds))
    }
}

type Elapsed = unsafe extern "C" fn(*mut f32, sys::CUevent, sys::CUevent) -> CUresult;

/// The call that every driver has: the one of this name in CUDA 13's header came with CUDA 12.8, and asking an older driver for
/// it would end the program.
fn elapsed() -> Option<Elapsed> {
    static FOUND: OnceLock<Option<Elapsed>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let symbol = libraries::of_system("libcuda.so.1")?.symbol("cuEventElapsedTime\0")?;
        // SAFETY: the function of this name has this signature in every version.
        Some(unsafe { std::mem::transmute::<*mut c_void, Elapsed>(symbol) })
    })
}

impl Drop for Event {
    fn drop(&mut self) {
        // What waits for it keeps waiting: the driver lets go of it when it has been reached.
        let _ = cuda!(cuEventDestroy_v2(self.raw));
    }
}

/// Compiled kernels on the card.
#[derive(Debug)]
pub struct Module {
    raw: sys::CUmodule,
}

// SAFETY: loaded code is read only.
unsafe impl Send for Module {}

impl Module {
    pub fn load(image: &[u8]) -> Result<Self, CudaError> {
        let mut raw = ptr::null_mut();
        alone(|| cuda!(cuModuleLoadData(&mut raw, image.as_ptr().cast())))?;
        Ok(Self { raw })
    }

    pub fn function(&self, name: &str) -> Result<Function, CudaError> {
        let text = CString::new(name).unwrap_or_default();
        let mut raw = ptr::null_mut();
        cuda!(cuModuleGetFunction(&mut raw, self.raw, text.as_ptr()))?;
        Ok(Function { raw })
    }
}

/// One kernel.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    raw: sys::CUfunction,
}

// SAFETY: a handle to loaded code.
unsafe impl Send for Function {}

impl Function {
    /// Allows more than the usual 48 KB of shared memory a block.
    pub fn allow_shared(&self, bytes: usize) -> Result<(), CudaError> {
        let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        cuda!(cuFuncSetAttribute(self.raw, attribute, bytes as i32))
    }

    /// Launches with arguments that are addresses, integers or floats.
    ///
    /// # Safety
    /// The arguments are what the kernel declares, and its accesses stay within living blocks.
    pub unsafe fn launch(
        &self,
        stream: &Stream,
        grid: (usize, usize),
        threads: usize,
        shared_bytes: usize,
        arguments: &[Argument],
    ) -> Result<(), CudaError> {
        let mut pointers: [*mut c_void; 20] = [ptr::null_mut(); 20];
        for (pointer, argument) in pointers.iter_mut().zip(arguments) {
            *pointer = argument.pointer();
        }
        cuda!(cuLaunchKernel(
            self.raw,
            grid.0 as u32,
            grid.1 as u32,
            1,
            threads as u32,
            1,
            1,
            shared_bytes as u32,
            stream.raw,
            pointers.as_mut_ptr(),
            ptr::null_mut(),
        ))
    }
}

/// A kernel's argument.
#[derive(Clone, Copy, Debug)]
pub enum Argument {
    Address(u64),
    Word(i32),
    Long(i64),
    Float(f32),
}

impl Argument {
    fn pointer(&self) -> *mut c_void {
        match self {
            Self::Address(value) => ptr::from_ref(value).cast_mut().cast(),
            Self::Word(value) => ptr::from_ref(value).cast_mut().cast(),
            Self::Long(value) => ptr::from_ref(value).cast_mut().cast(),
            Self::Float(value) => ptr::from_ref(value).cast_mut().cast(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_driver_answers_becomes_words() {
        let taken = not_opened(1, CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE)
            .unwrap()
            .to_string();
        assert!(taken.contains("GPU 1"), "{taken}");
        let full = not_opened(0, CUresult::CUDA_ERROR_OUT_OF_MEMORY)
            .unwrap()
            .to_string();
        assert!(full.contains("GPU 0"), "{full}");
        assert_eq!(not_opened(0, CUresult::CUDA_ERROR_INVALID_DEVICE), None);
        let none = not_started(CUresult::CUDA_ERROR_NO_DEVICE, String::new());
        assert_eq!(none, CudaError::Device { wanted: 0, found: 0 });
        assert_eq!(
            not_started(CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, String::new()),
            CudaError::Mismatch
        );
        let other = not_started(CUresult::CUDA_ERROR_UNKNOWN, "odd".to_owned());
        assert!(other.to_string().contains("odd"), "{other}");
    }
}
