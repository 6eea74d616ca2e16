//! Runs any program unchanged and records it: the process tree, the probe's counters, what it says.
//!
//! - [`program`]: starting a program so that it notices nothing: stdio, signals, exit code.
//! - [`probe`]: the Python files carried inside the binary, and the environment that brings them into every Python process.
//! - [`ring`]: the memory-mapped files through which a probe speaks.
//! - [`collect`]: rings become steps, events and facts of the record.
//! - [`profile`]: the trace of PyTorch's profiler, read as a stream.
//! - [`stacks`]: where Python programs stand, read from outside.
//! - `timeline`: one step of a window, event by event.
//! - [`auto`]: what `--auto` may change, and its report.
//! - [`slurm`]: the same as a batch job.
//! - [`session`]: one run from its start to its end, and the first finding while it runs.
//! - [`trial`]: a short run with some settings, for `flatout tune`.
//!
//! Nothing here judges: findings come from `flatout-diagnose`, out of the record. Linux only.

mod applied;
pub mod apply;
pub mod auto;
pub mod collect;
mod error;
mod gpu_window;
pub mod probe;
pub mod profile;
pub mod program;
pub mod ring;
pub mod session;
pub mod slurm;
mod source;
pub mod stacks;
mod timeline;
pub mod trial;

pub use applied::not_applied;
pub use error::RunError;
pub use session::{Ended, Live, OnHang, Options, Outcome, PATIENCE, guarded, run, run_name};
