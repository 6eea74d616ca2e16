//! The CUDA side: the same plan, walked once into a graph on the card. Everything of CUDA is found and opened at run time, so
//! this builds and starts on machines without it; [`CudaSession::new`] then says what is missing.
//!
//! The map: `libraries` finds CUDA, `driver`, `blas` and `dnn` are its calls, `compiler` turns kernels into machine code,
//! `machine` is a card ready for one precision, `memory` the plan's buffers on it, `fusion` what is done together, `session`
//! runs the plan.

mod blas;
pub mod ceilings;
pub(crate) mod columns;
pub mod compiler;
mod control;
pub(crate) mod dnn;
mod driver;
mod error;
mod fusion;
mod half;
pub(crate) mod io;
mod libraries;
pub(crate) mod losses;
mod machine;
mod memory;
mod recording_lock;
mod session;

pub use crate::ops::recurrent::{Way, force_recurrence};
pub(crate) use blas::{Matrix, Number};
pub(crate) use driver::{Argument, Block, Event};
pub use error::CudaError;
pub use libraries::{Found, open as open_libraries, open_compiler};
pub(crate) use machine::COMMON;
pub use machine::{Kernel, Machine, Precision, kernels};
pub(crate) use memory::{Kind, Memory};
pub use session::CudaSession;
