//! What the loaders cost since the last tick: the workers' preparing, added up for the process that feeds on them.

use crate::ring::layout::LoaderCounters;
use flatout_record::EventKind;
use std::collections::BTreeMap;

/// Growth by the process that iterates the loader, then by loader.
#[derive(Default)]
pub struct Loaders {
    grown: BTreeMap<u32, BTreeMap<u64, Sum>>,
}

#[derive(Default)]
struct Sum {
    counters: LoaderCounters,
    /// Worker processes' collecting of garbage; `None` where there are none.
    garbage_ns: Option<u64>,
}

impl Loaders {
    /// A process's growth, told to the process that feeds on it: itself, or a worker's parent.
    pub fn add(&mut self, owner: u32, grown: &[LoaderCounters]) {
        for growth in grown.iter().filter(|growth| **growth != idle(growth)) {
            let Some(loader) = growth.loader else { continue };
            let sum = &mut self.sum(owner, loader).counters;
            sum.fetch_ns += growth.fetch_ns;
            sum.collate_ns += growth.collate_ns;
            sum.prepared += growth.prepared;
            sum.batches += growth.batches;
            sum.wait_ns += growth.wait_ns;
            sum.eval_batches += growth.eval_batches;
            sum.eval_wait_ns += growth.eval_wait_ns;
        }
    }

    /// What a worker spent collecting garbage. It works for one loader only.
    pub fn add_garbage(&mut self, owner: u32, grown: &[LoaderCounters], garbage_ns: u64) {
        if let Some(loader) = grown.iter().find_map(|growth| growth.loader) {
            *self.sum(owner, loader).garbage_ns.get_or_insert(0) += garbage_ns;
        }
    }

    fn sum(&mut self, owner: u32, loader: u64) -> &mut Sum {
        self.grown.entry(owner).or_default().entry(loader).or_default()
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

fn events(loader: u64, sum: &Sum) -> Vec<EventKind> {
    let ms = |ns: u64| ns as f64 / 1e6;
    let mut events = Vec::new();
    let (garbage_ns, sum) = (sum.garbage_ns, &sum.counters);
    if sum.prepared > 0 || garbage_ns.is_some_and(|spent| spent > 0) {
        events.push(EventKind::Workers {
            loader,
            fetch_ms: ms(sum.fetch_ns),
            collate_ms: ms(sum.collate_ns),
            garbage_ms: garbage_ns.map(ms),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(batches: u64) -> LoaderCounters {
        LoaderCounters {
            loader: Some(1),
            fetch_ns: 5_000_000 * batches,
            prepared: batches,
            ..LoaderCounters::default()
        }
    }

    fn garbage(events: &[EventKind]) -> Option<f64> {
        events.iter().find_map(|kind| match kind {
            EventKind::Workers { garbage_ms, .. } => *garbage_ms,
            _ => None,
        })
    }

    #[test]
    fn reports_garbage_collection_of_all_workers() {
        let mut loaders = Loaders::default();
        for garbage_ns in [2_000_000, 3_000_000] {
            loaders.add(7, &[prepared(1)]);
            loaders.add_garbage(7, &[prepared(1)], garbage_ns);
        }
        assert_eq!(garbage(&loaders.events_of(7)), Some(5.0));
        // A collection that lasts longer than a tick.
        loaders.add_garbage(7, &[prepared(0)], 9_000_000);
        assert_eq!(garbage(&loaders.events_of(7)), Some(9.0));
        // Without worker processes nothing is known.
        loaders.add(7, &[prepared(3)]);
        assert_eq!(garbage(&loaders.events_of(7)), None);
    }
}
