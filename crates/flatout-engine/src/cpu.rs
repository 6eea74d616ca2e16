//! The CPU back end: walks the plan with a thread pool of fixed size. Every sum has an order that depends on sizes alone, so
//! runs are bit-equal whatever the timing and however many threads there are.

pub(crate) mod aligned;
pub(crate) mod dropout;
pub(crate) mod functions;
pub(crate) mod gemm;
pub(crate) mod guarded;
pub(crate) mod io;
pub(crate) mod losses;
pub(crate) mod memory;
pub(crate) mod pool;
pub(crate) mod real;
mod session;
pub(crate) mod sums;
pub(crate) mod vectorised;

pub use real::Real;
pub use session::CpuSession;
