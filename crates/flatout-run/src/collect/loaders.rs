//! What the loaders cost since the last tick: the workers' preparing, added up for the process that feeds on them.

use crate::ring::layout::LoaderCounters;
use flatout_telemetry::EventKind;
use std::collections::BTreeMap;

/// Growth by the process that iterates the loader, then by loader.
#[derive(Default)]
pub struct Loaders {
    grown: BTreeMap<u32, BTreeMap<u64, LoaderCounters>>,
}

impl Loaders {
    /// A process's growth, told to the process that feeds on it: itself, or a worker's parent.
    pub fn add(&mut self, owner: u32, grown: &[LoaderCounters]) {
        for growth in grown.iter().filter(|growth| **growth != idle(growth)) {
            let Some(loader) = growth.loader else { continue };
            let sum = self.grown.entry(owner).or_default().entry(loader).or_default();
            sum.fetch_ns += growth.fetch_ns;
            sum.collate_ns += growth.collate_ns;
            sum.prepared += growth.prepared;
            sum.batches += growth.batches;
            sum.wait_ns += growth.wait_ns;
            sum.eval_batches += growth.eval_batches;
            sum.eval_wait_ns += growth.eval_wait_ns;
        }
    }

    /// What a process's loaders cost since it was last asked.
    pub fn events_of(&mut self, pid: u32) -> Vec<EventKind> {
        let grown = self.grown.remove(&pid).unwrap_or_default();
        grown
            .into_iter()
            .flat_map(|(loader, sum)| events(loader, &sum))
            .collect()
    }
}

fn idle(growth: &LoaderCounters) -> LoaderCounters {
    LoaderCounters {
        loader: growth.loader,
        ..LoaderCounters::default()
    }
}

fn events(loader: u64, sum: &LoaderCounters) -> Vec<EventKind> {
    let ms = |ns: u64| ns as f64 / 1e6;
    let mut events = Vec::new();
    if sum.prepared > 0 {
        events.push(EventKind::Workers {
            loader,
            fetch_ms: ms(sum.fetch_ns),
            collate_ms: ms(sum.collate_ns),
            batches: sum.prepared,
        });
    }
    for (batches, wait_ns, eval) in [
        (sum.batches, sum.wait_ns, false),
        (sum.eval_batches, sum.eval_wait_ns, true),
    ] {
        if batches > 0 {
            events.push(EventKind::LoaderUse {
                loader,
                batches,
                wait_ms: ms(wait_ns),
                eval,
            });
        }
    }
    events
}
