//! Watching a machine or a record while it plays.
//!
//! - [`watch`]: the loop from ticks to record, view and verdict, live or replayed.
//! - [`screen`]: the terminal screen.
//! - [`lines`]: ticks as plain, JSON and CSV lines.

pub mod lines;
pub mod screen;
pub mod watch;
