//! Blocking reads of the device, by source line, over the window.

use flatout_core::Place;
use flatout_record::{EventKind, RunData};
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub struct SyncSite {
    /// `item`, `cpu`, `print` …
    pub what: String,
    pub place: Place,
    pub count: u64,
    pub blocked_s: f64,
    /// Steps in the same time.
    pub steps: u64,
}

impl SyncSite {
    pub fn per_step(&self) -> f64 {
        if self.steps == 0 {
            0.0
        } else {
            self.count as f64 / self.steps as f64
        }
    }
}

/// The sites, the most blocking first.
pub fn digest(data: &RunData, (start_s, end_s): (f64, f64)) -> Vec<SyncSite> {
    let mut sites: BTreeMap<(Place, String), SyncSite> = BTreeMap::new();
    for event in data
        .events
        .iter()
        .filter(|event| event.t > start_s && event.t <= end_s + 1.0)
    {
        let EventKind::Sync {
            what,
            place,
            count,
            blocked_ms,
            steps,
            device,
        } = &event.kind
        else {
            continue;
        };
        // A read of a tensor in host memory waits for nothing.
        if device.as_deref() == Some("cpu") {
            continue;
        }
        let site = sites
            .entry((place.clone(), what.clone()))
            .or_insert_with(|| SyncSite {
                what: what.clone(),
                place: place.clone(),
                count: 0,
                blocked_s: 0.0,
                steps: 0,
            });
        site.count += count;
        site.blocked_s += blocked_ms / 1e3;
        site.steps += steps;
    }
    let mut sites: Vec<SyncSite> = sites.into_values().collect();
    sites.sort_by(|a, b| b.blocked_s.total_cmp(&a.blocked_s));
    sites
}
