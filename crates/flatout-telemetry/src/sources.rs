//! Where samples come from. A new source is a file here that implements [`Source`], and one line in [`all`].

use crate::sampler::SamplerOptions;
use flatout_record::{EventKind, RunInfo, Sample};
use std::time::{Duration, Instant};

pub mod accelerators;
pub mod background;
pub mod fields;
pub mod gpus;
pub mod host;
pub mod nvml;
pub mod proc_file;
pub mod process_tree;

/// Something that is read at every tick. What it cannot read it leaves out; it never fails a tick.
pub trait Source: Send {
    /// The tick is due: a source with a thread of its own wakes it, so that all sources read at the same time.
    fn begin(&mut self) {}

    /// Adds what is known to the sample. A source that has to wait gives up after `patience`.
    fn read(&mut self, tick: &TickTime, sample: &mut Sample, events: &mut Vec<EventKind>);

    /// Adds what does not change from tick to tick, and why things are unknown.
    fn describe(&self, _info: &mut RunInfo) {}

    /// What is known of the GPUs, from the source that reads them.
    fn gpus(&self) -> Option<gpus::GpuState> {
        None
    }

    /// Counts up whenever [`Source::describe`] has something new to say.
    fn revision(&self) -> u64 {
        0
    }
}

/// The moment of a tick, as sources see it.
#[derive(Clone, Copy, Debug)]
pub struct TickTime {
    pub now: Instant,
    pub interval: Duration,
    pub patience: Duration,
}

/// The sources of a sampler.
pub fn all(options: &SamplerOptions) -> Vec<Box<dyn Source>> {
    let mut sources: Vec<Box<dyn Source>> = Vec::new();
    if let Some(scope) = &options.gpus {
        sources.push(Box::new(
            accelerators::vendor().start(scope.clone(), options.interval),
        ));
    }
    if options.host {
        sources.push(Box::new(host::HostSource::new()));
    }
    if let Some(pid) = options.pid {
        sources.push(Box::new(process_tree::ProcessTreeSource::start(pid)));
    }
    sources
}
