//! What workers supply when they are asked for nothing but batches, as measured: how much less each gets done beside the others, and
//! what handing a batch over costs, nobody can reckon.

use super::curve::{Curve, Line};
use crate::knobs::Situation;
use crate::trial;
use flatout_core::stats::quantile;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Supply {
    /// By numbers of workers, the fewest first.
    teams: Vec<Team>,
    /// What a batch costs the process of the steps.
    host: Option<Sizes>,
}

#[derive(Clone, Debug, PartialEq)]
struct Team {
    workers: f64,
    batch: Sizes,
}

/// Seconds by samples: a curve, or one size, from which others differ as making them does.
#[derive(Clone, Debug, PartialEq)]
enum Sizes {
    Several(Curve),
    One { samples: f64, seconds: f64 },
}

impl Supply {
    /// Of all trials, of each size the latest: neither what a step computes nor the loader's settings change it.
    pub fn of(situation: &Situation) -> Self {
        let measured = situation.measured_with(|_| true);
        Self::by(measured.flat_map(|measured| measured.supply.clone()))
    }

    /// The first of each number of workers and samples counts.
    pub fn by(all: impl IntoIterator<Item = trial::Supply>) -> Self {
        let mut kept: Vec<trial::Supply> = Vec::new();
        for one in all {
            let same = |known: &trial::Supply| known.workers == one.workers && known.samples == one.samples;
            if one.batch_s > 0.0 && one.workers > 0 && !kept.iter().any(same) {
                kept.push(one);
            }
        }
        kept.sort_by_key(|one| (one.workers, one.samples));
        let teams = kept.chunk_by(|a, b| a.workers == b.workers).filter_map(|team| {
            let points = team.iter().map(|one| (one.samples as f64, one.batch_s));
            Some(Team {
                workers: team[0].workers as f64,
                batch: Sizes::by(points.collect())?,
            })
        });
        Self {
            teams: teams.collect(),
            host: host(&kept),
        }
    }

    pub fn is_known(&self) -> bool {
        !self.teams.is_empty()
    }

    /// Seconds from batch to batch. Between numbers that were measured the rate lies on a line; more workers than the most that were
    /// asked supply no more. `load` is what making a batch takes alone.
    pub fn batch_s(&self, batch: f64, workers: u64, load: Line) -> Option<f64> {
        let rate = |team: &Team| 1.0 / team.batch.at(batch, load).max(f64::MIN_POSITIVE);
        let workers = (workers as f64).min(self.teams.last()?.workers);
        let above = self.teams.iter().find(|team| team.workers >= workers)?;
        let below = self.teams.iter().rev().find(|team| team.workers <= workers);
        let (from, least) = below.map_or((0.0, 0.0), |team| (team.workers, rate(team)));
        if above.workers <= from {
            return Some(1.0 / least);
        }
        let part = (workers - from) / (above.workers - from);
        Some(1.0 / (least + (rate(above) - least) * part))
    }

    /// What a batch costs the process of the steps.
    pub fn host_s(&self, batch: f64, load: Line) -> Option<f64> {
        Some(self.host.as_ref()?.at(batch, load))
    }
}

/// Whoever makes a batch, taking it over is the same work: of each size the middle.
fn host(all: &[trial::Supply]) -> Option<Sizes> {
    let mut by_size: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for one in all {
        by_size.entry(one.samples).or_default().push(one.host_s);
    }
    let points = by_size.into_iter().map(|(samples, mut seconds)| {
        seconds.sort_by(f64::total_cmp);
        (samples as f64, quantile(&seconds, 0.5))
    });
    Sizes::by(points.collect())
}

impl Sizes {
    fn by(points: Vec<(f64, f64)>) -> Option<Self> {
        let last = *points.last()?;
        let one = Self::One {
            samples: last.0,
            seconds: last.1,
        };
        Some(Curve::through(points).map_or(one, Self::Several))
    }

    fn at(&self, batch: f64, load: Line) -> f64 {
        match self {
            Self::Several(curve) => curve.at(batch),
            Self::One { samples, seconds } => {
                seconds * load.at(batch) / load.at(*samples).max(f64::MIN_POSITIVE)
            }
        }
    }
}
