//! The CUDA side: the same plan, walked once into a graph on the card. Everything of CUDA is found and opened at run time, so
//! this builds and starts on machines without it; [`CudaSession::new`] then says what is missing.
//!
//! The map: `libraries` finds CUDA, `driver` and `blas` are its calls, `compiler` turns kernels into machine code,
//! `machine` is a card ready for one precision, `memory` the plan's buffers on it, `session` runs the plan.

mod blas;
pub mod compiler;
mod control;
mod driver;
mod error;
mod half;
pub(crate) mod io;
mod libraries;
mod machine;
mod memory;
mod session;

pub(crate) use blas::{Matrix, Number};
pub(crate) use driver::{Argument, Block};
pub use error::CudaError;
pub use libraries::{Found, open as open_libraries, open_compiler};
pub use machine::{Kernel, Machine, Precision, kernels};
pub(crate) use memory::{Kind, Memory};
pub use session::CudaSession;
