//! A stand-in for `libnvidia-ml.so`: NVML's C ABI, answered out of a recording. Tests and machines without a GPU load it
//! where they would load the driver's library:
//!
//! ```text
//! FLATOUT_NVML_LIB=target/debug/libflatout_fake_nvml.so flatout monitor
//! ```
//!
//! | variable | |
//! | --- | --- |
//! | `FLATOUT_FAKE_NVML` | a run record's folder to play, over and over; without it a built-in trace of two GPUs |
//! | `FLATOUT_FAKE_NVML_GPUS` | show this many GPUs: those of the trace again and again, shifted in time |
//! | `FLATOUT_FAKE_NVML_FAULT` | faults, see [`fault`] |
//!
//! Other tools (nvitop, gpustat) use it under the name `libnvidia-ml.so.1` on `LD_LIBRARY_PATH`.
//!
//! A test finds the library without knowing cargo's folders: name this crate as a dev-dependency, and
//! `libflatout_fake_nvml.so` lies beside the test's own executable.
//!
//! It only answers questions: nothing that would change a GPU is here.

mod api;
pub mod fault;
mod trace;
mod world;
