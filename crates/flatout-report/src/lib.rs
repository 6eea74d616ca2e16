//! Showing. Nothing here measures or decides: it gets samples, verdicts and findings and makes them readable.
//!
//! - [`text`]: findings, verdicts and tables as text, for terminals and pipes, with Chinese aligned.
//! - [`watch`]: the loop from ticks to record, view and verdict, live or replayed.
//! - [`screen`]: the terminal screen.
//! - [`lines`]: ticks as plain, JSON and CSV lines.

pub mod lines;
pub mod screen;
pub mod text;
pub mod watch;
