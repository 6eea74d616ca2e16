//! Takes samples one by one and keeps what the verdict needs, in constant memory.

use super::clock::Clock;
use super::gpu::GpuGatherer;
use super::host::HostGatherer;
use super::{SCHEMA, Verdict};
use flatout_record::{RunInfo, Sample};
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub struct Gatherer {
    clock: Clock,
    info: RunInfo,
    gpus: BTreeMap<u32, GpuGatherer>,
    host: HostGatherer,
    /// The first sample of a record that does not say its interval waits for the second.
    first: Option<Box<Sample>>,
}

impl Gatherer {
    pub fn new(info: &RunInfo) -> Self {
        Self {
            clock: Clock::new(info.interval_s),
            info: info.clone(),
            gpus: BTreeMap::new(),
            host: HostGatherer::default(),
            first: None,
        }
    }

    /// More is known of the run: a GPU's name, its memory.
    pub fn describe(&mut self, info: &RunInfo) {
        self.info = info.clone();
    }

    pub fn add(&mut self, sample: &Sample) {
        if self.clock.is_waiting() {
            match self.first.take() {
                None => {
                    self.first = Some(Box::new(sample.clone()));
                    return;
                }
                Some(first) if sample.t > first.t => {
                    self.clock.start_with(sample.t - first.t);
                    self.count(&first);
                }
                Some(first) => {
                    self.first = Some(first);
                    return;
                }
            }
        }
        self.count(sample);
    }

    fn count(&mut self, sample: &Sample) {
        let Some(seconds) = self.clock.advance(sample.t) else {
            return;
        };
        let interval_s = self.clock.interval_s().unwrap_or(seconds);
        // Values of an earlier tick, because the driver did not answer in time, are not counted twice.
        for (index, gpu) in sample.gpus.iter().filter(|(_, gpu)| gpu.age_s.is_none()) {
            let gatherer = self
                .gpus
                .entry(*index)
                .or_insert_with(|| GpuGatherer::new(interval_s));
            gatherer.add(sample.t, seconds, gpu);
        }
        self.host.add(seconds, &sample.host);
    }

    /// The verdict so far. More samples may follow.
    pub fn verdict(&self) -> Verdict {
        if let Some(first) = &self.first {
            let mut alone = self.clone();
            alone.first = None;
            alone.clock.start_with(1.0);
            alone.count(first);
            return alone.verdict();
        }
        let gpus = self.gpus.iter().map(|(index, gpu)| {
            let info = self.info.gpus.get(index);
            (*index, gpu.verdict(info))
        });
        Verdict {
            schema: SCHEMA,
            duration_s: self.clock.covered_s + self.clock.missed_s,
            ticks: self.clock.ticks,
            missed_s: self.clock.missed_s,
            gpus: gpus.collect(),
            host: self.host.verdict(),
        }
    }
}
