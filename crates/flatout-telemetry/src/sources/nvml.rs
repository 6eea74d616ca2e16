//! NVIDIA GPUs, through the driver's own library. It runs in a thread of its own: a driver call may take seconds, and the
//! host, the screen and the schedule do not wait for it.
//!
//! Every value is optional. What a GPU does not support is asked once, and the reason is kept for `run.json`.

mod details;
mod gpm;
mod gpu;
mod library;
mod pcie;
mod processes;
mod select;

use super::background::Port;
use super::fields::Trouble;
use super::gpus::{self, GpuProblem, GpuReading, GpuSource, Table, lock};
use crate::scope::GpuScope;
use gpu::Gpu;
use nvml_wrapper::error::NvmlError;
use std::sync::Mutex;
use std::time::Duration;

pub use details::versions;
pub use library::{NvmlProblem, library_path, open};

/// Begins to open the driver and returns at once.
pub fn start(scope: GpuScope, interval: Duration) -> GpuSource {
    GpuSource::start("nvml", move |port, table| serve(&scope, interval, port, table))
}

impl From<NvmlError> for Trouble {
    fn from(error: NvmlError) -> Self {
        match error {
            NvmlError::GpuLost | NvmlError::ResetRequired => Self::Lost(error.to_string()),
            NvmlError::NotSupported => Self::not_supported(),
            NvmlError::FunctionNotFound | NvmlError::FailedToLoadSymbol(_) => Self::not_in_driver(),
            NvmlError::NoPermission => Self::not_permitted(),
            NvmlError::InvalidArg => Self::Never(error.to_string()),
            NvmlError::NoData | NvmlError::NotFound | NvmlError::InsufficientSize(_) => Self::Nothing,
            _ => Self::Passing(error.to_string()),
        }
    }
}

/// The thread: opens the driver, then reads all GPUs whenever asked.
fn serve(scope: &GpuScope, interval: Duration, port: Port<GpuReading>, table: &Mutex<Table>) {
    let give_up = |problem: NvmlProblem| lock(table).give_up(GpuProblem::Nvml(problem));
    let nvml = match open() {
        Ok(nvml) => nvml,
        Err(problem) => return give_up(problem),
    };
    let selection = match select::select(&nvml, scope) {
        Ok(selection) => selection,
        Err(problem) => return give_up(problem),
    };
    lock(table).note(selection.notes);
    let gpus: Vec<Gpu<'_>> = selection
        .devices
        .into_iter()
        .map(|chosen| Gpu::new(chosen, interval))
        .collect();
    gpus::serve(gpus, details::versions(&nvml), port, table);
}
