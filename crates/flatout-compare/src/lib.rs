//! The one definition of "faster", for `compare`, `tune` and `check`. Pure: no I/O, no clock.
//!
//! A measurement is a mean with the 95% interval that its own blocks of time give ([`Estimate`], [`Rate`]). Of two measurements the
//! [`Ratio`] counts: the second is **faster** when the 95% interval of the ratio is above 1, and faster **by** a quarter when, besides,
//! the ratio itself is at least 1.25. Everything else is noise.
//!
//! - [`estimate`]: a mean with its interval, also of a quotient of sums over blocks
//! - [`rate`]: the rate of a trial, and several measurements of the same
//! - [`ratio`]: faster, slower, noise
//! - [`change`]: one figure of two runs
//! - [`limit`]: `slower=3%`, `faster=25%`
//! - [`mod@throughput`]: the rate of a recorded run

pub mod change;
pub mod estimate;
pub mod limit;
pub mod rate;
pub mod ratio;
pub mod throughput;

pub use change::{Change, Outcome, Scale};
pub use estimate::Estimate;
pub use limit::{Limit, LimitError};
pub use rate::Rate;
pub use ratio::Ratio;
pub use throughput::{Throughput, throughput};
