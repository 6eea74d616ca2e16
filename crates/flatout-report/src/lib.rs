//! Showing. Nothing here measures or decides: it gets samples, verdicts and findings and makes them readable.
//!
//! - [`text`]: findings, verdicts and tables as text, for terminals and pipes, with Chinese aligned.
//! - [`analyze`]: runs, jobs and other tools' logs as statistics.
//! - [`digest`]: a record boiled down to what is shown of it.
//! - [`fleet`]: a cluster's GPU-hours by user, account and cause.
//! - [`compare`]: digests of several runs against the first.
//! - [`ranks`]: the ranks of one job side by side.
//! - [`page`]: a digest as one HTML file; [`markdown`]: as Markdown; [`json`]: for programs; [`words`]: what these share.
//! - [`serve`]: all runs of a folder in a browser, live.
//! - [`tracking`]: a run for experiment trackers.
//! - [`picture`]: charts as a PNG file; [`trace`]: a run for trace viewers.

pub mod analyze;
pub mod compare;
pub mod digest;
pub mod fleet;
pub mod json;
pub mod markdown;
pub mod page;
pub mod picture;
pub mod ranks;
pub mod serve;
#[cfg(test)]
mod testing;
pub mod text;
pub mod trace;
pub mod tracking;
pub mod words;
