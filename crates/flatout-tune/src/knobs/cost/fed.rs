//! Steps that a trial had fed by so many workers. How workers, the step's threads and the copies between processes act on each other
//! depends on the machine and the data: the costs give the shape, and are stretched to meet what was measured.

use super::points::computing;
use crate::knobs::Situation;
use crate::trial::Fed;

/// How many times longer than reckoned so many workers and threads took, for a number of samples.
#[derive(Clone, Debug, Default)]
pub struct Feeding(Vec<(Fed, f64)>);

impl Feeding {
    /// By the latest trial that computes the same. `reckoned` gives a step's seconds for its workers, threads and samples.
    pub fn of(situation: &Situation, reckoned: impl Fn(&Fed) -> f64) -> Self {
        let now = computing(situation.settings);
        let mut told = situation
            .measured_with(move |settings| computing(settings) == now)
            .map(|measured| &measured.fed);
        let fed = told.find(|fed| !fed.is_empty());
        Self::meeting(fed.into_iter().flatten().copied(), reckoned)
    }

    pub fn meeting(fed: impl IntoIterator<Item = Fed>, reckoned: impl Fn(&Fed) -> f64) -> Self {
        let ratio = |one: Fed| (one, one.step_s / reckoned(&one));
        let mut all: Vec<(Fed, f64)> = fed.into_iter().map(ratio).collect();
        all.retain(|(_, ratio)| ratio.is_finite() && *ratio > 0.0);
        all.sort_by_key(|(one, _)| one.samples);
        Self(all)
    }

    /// Whether several numbers of workers can be held against each other.
    pub fn compares(&self) -> bool {
        let mut workers = self.0.iter().map(|(one, _)| one.workers);
        workers
            .next()
            .is_some_and(|first| workers.any(|other| other != first))
    }

    pub fn knows(&self, workers: u64) -> bool {
        self.0.iter().any(|(one, _)| one.workers == workers)
    }

    /// 1 for workers that nothing is known of. With other threads, as with those that were measured.
    pub fn factor(&self, batch: f64, workers: u64, threads: f64) -> f64 {
        let of = |same_threads: bool| {
            let points = self.0.iter().filter(move |(one, _)| {
                one.workers == workers && (!same_threads || one.threads as f64 == threads)
            });
            points.map(|(one, ratio)| (one.samples as f64, *ratio))
        };
        let points: Vec<(f64, f64)> = of(of(true).next().is_some()).collect();
        let above = points.iter().find(|(samples, _)| *samples >= batch);
        let below = points.iter().rev().find(|(samples, _)| *samples <= batch);
        match (below, above) {
            (Some(below), Some(above)) if above.0 > below.0 => {
                let part = (batch / below.0).ln() / (above.0 / below.0).ln();
                below.1 + (above.1 - below.1) * part
            }
            (Some(one), _) | (None, Some(one)) => one.1,
            (None, None) => 1.0,
        }
    }
}
