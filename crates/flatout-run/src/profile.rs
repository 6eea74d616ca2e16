//! PyTorch's profiler: its trace becomes a [`Profile`].
//!
//! - [`scan`]: the events of a trace, one at a time, whatever its size.
//! - [`event`]: the fields of an event that matter.
//! - [`tally`]: what is kept of the events; bounded.
//! - [`gaps`]: why nothing ran on the device.
//!
//! Memory: one event, plus 24 bytes a kernel, 16 a launch and 24 an operator, of at most a million each: below 100 MB
//! whatever the trace's size. Beyond that only sums grow.

mod event;
mod gaps;
pub(crate) mod kernels;
mod operators;
mod scan;
mod tally;

use flatout_record::Profile;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use tally::Tally;

/// Where the probe leaves the trace, inside the record; it has another name until it is whole.
pub const TRACE: &str = "trace.json";
pub const UNFINISHED: &str = "trace.json.part";

/// Reads the trace of a record; `None` when there is none, or none of its events could be read.
pub fn of_record(folder: &Path) -> Option<Profile> {
    let file = [TRACE, UNFINISHED]
        .iter()
        .find_map(|name| File::open(folder.join(name)).ok())?;
    match read(file) {
        Ok(profile) => (profile.events > 0).then_some(profile),
        Err(error) => {
            log::warn!("the profiler's trace could not be read: {error}");
            None
        }
    }
}

/// Reads a trace as PyTorch's profiler writes it. One that was cut short gives what was there.
pub fn read(trace: impl Read) -> std::io::Result<Profile> {
    let mut tally = Tally::default();
    let complete = scan::events(trace, |text| tally.add(text))?;
    let mut profile = tally.finish();
    profile.cut_short = !complete;
    Ok(profile)
}

#[cfg(test)]
mod tests;
