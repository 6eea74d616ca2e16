//! Each `DataLoader` of the run: its settings, where it was built, what was taken from it and what that cost.

use super::facts::{Facts, as_switch, as_text};
use flatout_core::Place;
use flatout_record::{EventKind, RunData};
use std::collections::BTreeMap;

/// Two workers that read everything repeat half of the samples.
pub const REPEATED: f64 = 0.4;

#[derive(Clone, Debug, Default)]
pub struct Loader {
    pub id: u64,
    /// Where it was built.
    pub place: Option<Place>,
    pub num_workers: Option<u64>,
    pub batch_size: Option<u64>,
    pub pin_memory: Option<bool>,
    pub persistent_workers: Option<bool>,
    pub prefetch_factor: Option<u64>,
    pub dataset: Option<String>,
    /// Its workers begin anew, with nothing of the program; unless it is said, they are forked.
    pub spawned: bool,
    /// Workers that are spawned could begin: the program guards its main module, and nothing was seen that cannot be pickled.
    pub can_spawn: Option<bool>,
    /// Its data set is an `IterableDataset`, whose workers each iterate by themselves.
    pub iterable: bool,
    /// Of such a data set: its workers share the samples among them, because it asks which one it runs in. `None` where nobody knows.
    pub sharded: Option<bool>,
    /// The part of the first samples that an earlier batch had, with several workers.
    pub repeated: Option<f64>,
    /// Samples in its data set.
    pub length: Option<u64>,
    /// It feeds the steps, not an evaluation.
    pub feeds_training: bool,
    /// Times its iterator was made within the window, and the seconds until the first batches.
    pub starts: u64,
    pub start_s: f64,
    /// Batches the steps took within the window, and the seconds they waited for them.
    pub batches: u64,
    pub wait_s: f64,
    /// Batches taken for evaluation.
    pub eval_batches: u64,
    /// Seconds in `__getitem__` and `collate_fn` within the window, all workers together.
    pub fetch_s: f64,
    pub collate_s: f64,
    /// Of those seconds, collecting garbage; where workers tell.
    pub garbage_s: Option<f64>,
    /// Batches those seconds were measured on.
    pub prepared: u64,
}

impl Loader {
    /// Whether each worker would read everything, so that samples come once per worker.
    pub fn repeats_per_worker(&self) -> bool {
        let measured = self.repeated.map(|part| part >= REPEATED);
        self.iterable && measured.unwrap_or(self.sharded != Some(true))
    }

    /// Milliseconds of work in a batch: items and collating.
    pub fn prepare_ms(&self) -> Option<f64> {
        (self.prepared > 0).then(|| (self.fetch_s + self.collate_s) * 1e3 / self.prepared as f64)
    }
}

/// Every loader by id; at most one of them feeds the training.
pub fn digest(data: &RunData, facts: &Facts, range: (f64, f64)) -> Vec<Loader> {
    let mut loaders: BTreeMap<u64, Loader> = BTreeMap::new();
    for (scope, scoped) in facts.scopes("loader.") {
        let Some(id) = scope.strip_prefix("loader.").and_then(|id| id.parse().ok()) else {
            continue;
        };
        let loader = loaders.entry(id).or_insert_with(|| Loader {
            id,
            ..Loader::default()
        });
        for fact in scoped {
            let whole = fact.value.as_u64();
            match fact.key.as_str() {
                "loader.num_workers" => loader.num_workers = whole,
                "loader.batch_size" => loader.batch_size = whole,
                "loader.prefetch_factor" => loader.prefetch_factor = whole,
                "loader.length" => loader.length = whole,
                "loader.pin_memory" => loader.pin_memory = as_switch(&fact.value),
                "loader.persistent_workers" => loader.persistent_workers = as_switch(&fact.value),
                "loader.multiprocessing_context" => {
                    loader.spawned = as_text(&fact.value).is_some_and(|name| name != "fork");
                }
                "loader.dataset" => loader.dataset = as_text(&fact.value),
                "loader.can_spawn" => loader.can_spawn = as_switch(&fact.value),
                "loader.iterable" => loader.iterable = as_switch(&fact.value) == Some(true),
                "loader.repeated" => loader.repeated = fact.value.as_f64(),
                "loader.sharded" => loader.sharded = as_switch(&fact.value),
                _ => {}
            }
            loader.place = loader.place.take().or_else(|| fact.place.clone());
        }
    }
    add_events(data, &mut loaders, range);
    let mut loaders: Vec<Loader> = loaders.into_values().collect();
    mark_training(&mut loaders);
    loaders
}

fn add_events(data: &RunData, loaders: &mut BTreeMap<u64, Loader>, (start_s, end_s): (f64, f64)) {
    // Sums are written at the end of a tick, so those of the window's last tick may come a moment after it.
    for event in data
        .events
        .iter()
        .filter(|event| event.t > start_s && event.t <= end_s + 0.5)
    {
        let id = match &event.kind {
            EventKind::LoaderStart { loader, .. }
            | EventKind::LoaderUse { loader, .. }
            | EventKind::Workers { loader, .. } => *loader,
            _ => continue,
        };
        let found = loaders.entry(id).or_insert_with(|| Loader {
            id,
            ..Loader::default()
        });
        match &event.kind {
            EventKind::LoaderStart {
                duration_ms, workers, ..
            } => {
                found.starts += 1;
                found.start_s += duration_ms / 1e3;
                found.num_workers = found.num_workers.or(Some(*workers));
            }
            EventKind::LoaderUse {
                batches, eval: true, ..
            } => found.eval_batches += batches,
            EventKind::LoaderUse { batches, wait_ms, .. } => {
                found.batches += batches;
                found.wait_s += wait_ms / 1e3;
            }
            EventKind::Workers {
                fetch_ms,
                collate_ms,
                garbage_ms,
                batches,
                ..
            } => {
                if let Some(spent_ms) = garbage_ms {
                    *found.garbage_s.get_or_insert(0.0) += spent_ms / 1e3;
                }
                found.fetch_s += fetch_ms / 1e3;
                found.collate_s += collate_ms / 1e3;
                found.prepared += batches;
            }
            _ => {}
        }
    }
}

/// The training loader: the one the steps waited for longest, else took most from; without any count, the only or
/// first one that no evaluation took from.
fn mark_training(loaders: &mut [Loader]) {
    let candidate = loaders
        .iter()
        .enumerate()
        .filter(|(_, loader)| loader.eval_batches == 0 || loader.batches > loader.eval_batches)
        .max_by(|(_, a), (_, b)| {
            let key = |loader: &Loader| {
                (
                    loader.batches > 0,
                    loader.wait_s,
                    loader.batches.max(loader.prepared) as f64,
                )
            };
            let (a, b) = (key(a), key(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.total_cmp(&b.2))
        })
        .map(|(index, _)| index);
    if let Some(index) = candidate {
        loaders[index].feeds_training = true;
    }
}

#[cfg(test)]
mod tests {
    use crate::Analysis;
    use crate::testing::Build;
    use serde_json::json;

    #[test]
    fn the_loader_that_is_waited_for_feeds_the_training() {
        let data = Build::steady(20)
            .loader(0, json!({"num_workers": 4}))
            .loader(1, json!({"num_workers": 2}))
            .loader_use(1, 100, 400.0)
            .done();
        let analysis = Analysis::new(&data);
        assert_eq!(analysis.train_loader().unwrap().num_workers, Some(2));
        assert!(analysis.train_loader().unwrap().wait_s > 0.3);
    }
}
