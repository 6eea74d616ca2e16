//! The CUPTI tracer. The probe opens it with `ctypes` inside the user's training process; it records kernels, copies,
//! memsets and synchronizations in short windows, into a file that [`read`] understands.
//!
//! CUPTI is not linked: the tracer uses the libcupti that the process has already loaded (PyTorch's wheels link it). Nothing
//! here panics across the C interface, prints, or survives a fork.
//!
//! - `abi`: the C interface, [`flatout_tracer_start`](abi::flatout_tracer_start) and its siblings.
//! - `session`: starts and stops windows, finalizes CUPTI.
//! - `cupti`, `layout`: the CUPTI functions and the record fields that the tracer reads.
//! - `pool`, `window`: activity buffers, and the file of the current window.
//! - [`mod@format`]: the file format, shared by writer and reader.

pub mod abi;
mod cupti;
pub mod format;
#[cfg(all(feature = "shared-library", target_arch = "x86_64", target_env = "gnu"))]
mod glibc;
mod layout;
mod pool;
mod session;
mod system;
mod window;

pub use format::{Activity, Header, Record, Trace, read};
