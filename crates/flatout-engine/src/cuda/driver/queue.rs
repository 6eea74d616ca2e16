//! Queues of work, marks in them, and work recorded to run with one call.

use super::check;
use crate::cuda::error::CudaError;
use crate::cuda::libraries;
use crate::cuda::recording_lock::exclusive;
use cudarc::driver::sys::{self, CUresult};
use std::ffi::c_void;
use std::ptr;
use std::sync::OnceLock;

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
        exclusive(|| self.record(work))
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

impl Drop for Stream {
    fn drop(&mut self) {
        // The driver lets go of it when what is in it has run.
        let _ = exclusive(|| cuda!(cuStreamDestroy_v2(self.raw)));
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
        let _ = exclusive(|| cuda!(cuGraphExecDestroy(self.raw)));
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
