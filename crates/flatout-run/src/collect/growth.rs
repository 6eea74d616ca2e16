//! What a process's counters grew by since the last tick.

use super::says_something;
use crate::ring::Counters;
use crate::ring::layout::{BUCKETS, LoaderCounters, PHASES};
use flatout_core::histogram::Histogram;
use flatout_record::{EventKind, Phase, PhaseTime, StepTick};

/// The counters already told.
#[derive(Default)]
pub struct Growth {
    told: Counters,
    told_sums_ns: [u64; PHASES],
    trains: bool,
}

/// The growth of one tick.
#[derive(Default)]
pub struct Grown {
    pub steps: u64,
    samples: u64,
    busy_ns: u64,
    busy_steps: u64,
    loss: Option<f64>,
    collections: u64,
    pub collections_ns: u64,
    phases_ns: [u64; PHASES],
    histograms: Vec<Histogram>,
    pub loaders: Vec<LoaderCounters>,
}

impl Growth {
    /// Takes the difference. With a time given, the phase under way counts up to it, so that a long wait shows while it lasts. What passed
    /// before the training begins is told with its beginning, since nobody writes it down by then.
    pub fn take(&mut self, counters: &Counters, now_ns: Option<u64>) -> Grown {
        self.trains |= counters.steps > 0 || counters.batches > 0 || counters.eval_batches > 0;
        let now_ns = now_ns.filter(|_| self.trains);
        let told = &self.told;
        let grown = Grown {
            steps: counters.steps.saturating_sub(told.steps),
            samples: counters.samples.saturating_sub(told.samples),
            busy_ns: counters.busy_ns.saturating_sub(told.busy_ns),
            busy_steps: counters.busy_steps.saturating_sub(told.busy_steps),
            loss: counters.loss.filter(|_| counters.losses > told.losses),
            collections: counters.collections.saturating_sub(told.collections),
            collections_ns: counters.collections_ns.saturating_sub(told.collections_ns),
            phases_ns: std::array::from_fn(|index| self.phase_growth(counters, index, now_ns)),
            histograms: (0..=PHASES)
                .map(|row| histogram_growth(counters, told, row))
                .collect(),
            loaders: counters
                .loaders
                .iter()
                .enumerate()
                .map(|(slot, now)| loader_growth(now, told.loaders.get(slot)))
                .filter(|growth| growth.loader.is_some())
                .collect(),
        };
        if self.trains {
            for (told, grown) in self.told_sums_ns.iter_mut().zip(grown.phases_ns) {
                *told += grown;
            }
        }
        self.told = counters.clone();
        grown
    }

    /// Whether this process trains or evaluates; a launcher or a loader's worker does not.
    pub fn trains(&self) -> bool {
        self.trains
    }

    /// The probe may move time from one phase to another once it knows better; what was told too much is then made up for by
    /// telling less, so that the sums come right.
    fn phase_growth(&self, counters: &Counters, index: usize, now_ns: Option<u64>) -> u64 {
        let under_way = match now_ns {
            Some(now) if counters.phase == index && counters.since_ns > 0 => {
                now.saturating_sub(counters.since_ns)
            }
            _ => 0,
        };
        (counters.sums_ns[index] + under_way).saturating_sub(self.told_sums_ns[index])
    }
}

fn histogram_growth(now: &Counters, told: &Counters, row: usize) -> Histogram {
    let mut histogram = Histogram::default();
    let Some(counts) = now.histograms.get(row) else {
        return histogram;
    };
    let before = told.histograms.get(row);
    for bucket in 0..BUCKETS.min(counts.len()) {
        let before = before.and_then(|counts| counts.get(bucket)).copied().unwrap_or(0);
        let count = counts[bucket].saturating_sub(before);
        if count > 0 {
            histogram.add_count(bucket as u16, count);
        }
    }
    histogram
}

fn loader_growth(now: &LoaderCounters, told: Option<&LoaderCounters>) -> LoaderCounters {
    let told = told
        .copied()
        .filter(|told| told.loader == now.loader)
        .unwrap_or_default();
    LoaderCounters {
        loader: now.loader,
        fetch_ns: now.fetch_ns.saturating_sub(told.fetch_ns),
        collate_ns: now.collate_ns.saturating_sub(told.collate_ns),
        prepared: now.prepared.saturating_sub(told.prepared),
        batches: now.batches.saturating_sub(told.batches),
        wait_ns: now.wait_ns.saturating_sub(told.wait_ns),
        eval_batches: now.eval_batches.saturating_sub(told.eval_batches),
        eval_wait_ns: now.eval_wait_ns.saturating_sub(told.eval_wait_ns),
    }
}

impl Grown {
    pub fn tick(&self, t: f64, dt: f64) -> Option<StepTick> {
        let phases = Phase::ALL.into_iter().zip(self.phases_ns).enumerate();
        let phases = phases.filter(|(_, (_, spent))| *spent > 0);
        let tick = StepTick {
            t,
            dt,
            steps: self.steps,
            samples: (self.samples > 0).then_some(self.samples),
            busy_ms: self.busy_ms(dt),
            phases: phases
                .map(|(index, (phase, spent))| {
                    let hist = self.histograms.get(index).cloned().unwrap_or_default();
                    let ms = spent as f64 / 1e6;
                    (phase, PhaseTime { ms, hist })
                })
                .collect(),
            step_hist: self.histograms.get(PHASES).cloned().unwrap_or_default(),
            loss: self.loss,
        };
        says_something(&tick).then_some(tick)
    }

    /// The sampled steps' device time, for all steps of the tick; never more than the tick is long.
    fn busy_ms(&self, dt: f64) -> Option<f64> {
        let sampled = self.busy_ns as f64 / 1e6 / self.busy_steps as f64;
        (self.busy_steps > 0 && self.steps > 0).then(|| (sampled * self.steps as f64).min(dt * 1e3))
    }

    pub fn collections(&self) -> Option<EventKind> {
        // Young generations are collected all the time and cost next to nothing: only what can be felt is told.
        (self.collections_ns > 10_000_000).then(|| EventKind::GarbageCollection {
            count: self.collections,
            duration_ms: self.collections_ns as f64 / 1e6,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(sums_ms: [u64; PHASES], phase: usize, since_ns: u64) -> Counters {
        Counters {
            steps: 1,
            phase,
            since_ns,
            sums_ns: sums_ms.map(|ms| ms * 1_000_000),
            histograms: vec![vec![0; BUCKETS]; PHASES + 1],
            ..Counters::default()
        }
    }

    #[test]
    fn shows_a_long_wait_while_it_lasts_and_only_once() {
        let mut growth = Growth::default();
        let data = Phase::Data as usize;
        let before = counters([5, 0, 0, 0, 0, 0, 0], data, 1_000_000_000);
        let first = growth.take(&before, Some(1_400_000_000));
        assert_eq!(first.phases_ns[data], 405_000_000);
        let after = counters([1005, 0, 0, 0, 0, 0, 0], 2, 2_000_000_000);
        assert_eq!(
            growth.take(&after, Some(2_000_000_000)).phases_ns[data],
            600_000_000
        );
    }

    #[test]
    fn reports_the_wait_for_the_first_batch() {
        let mut growth = Growth::default();
        let data = Phase::Data as usize;
        let before = Counters {
            steps: 0,
            ..counters([500, 0, 0, 0, 0, 0, 0], data, 1_000_000_000)
        };
        assert_eq!(
            growth.take(&before, Some(5_000_000_000)).phases_ns[data],
            500_000_000
        );
        assert!(!growth.trains());
        let after = counters([6000, 0, 0, 0, 0, 0, 0], 2, 7_000_000_000);
        let told = growth.take(&after, Some(7_000_000_000));
        assert_eq!(told.phases_ns[data], 6_000_000_000);
    }

    #[test]
    fn time_that_moves_to_another_phase_adds_up_in_the_end() {
        let mut growth = Growth::default();
        let (compute, eval) = (Phase::Compute as usize, Phase::Eval as usize);
        let steps = [
            counters([0, 0, 100, 0, 0, 0, 0], compute, 0),
            counters([0, 0, 40, 0, 80, 0, 0], compute, 0),
            counters([0, 0, 200, 0, 80, 0, 0], compute, 0),
        ];
        let mut told = [0u64; PHASES];
        for counters in &steps {
            let grown = growth.take(counters, None);
            told.iter_mut()
                .zip(grown.phases_ns)
                .for_each(|(sum, ns)| *sum += ns);
        }
        assert_eq!((told[compute], told[eval]), (200_000_000, 80_000_000));
    }

    #[test]
    fn busy_time_is_scaled_to_all_steps_and_bounded() {
        let grown = Grown {
            steps: 100,
            busy_ns: 8_000_000,
            busy_steps: 2,
            ..Grown::default()
        };
        assert_eq!(grown.busy_ms(1.0), Some(400.0));
        assert_eq!(grown.busy_ms(0.1), Some(100.0));
        assert_eq!(Grown::default().busy_ms(1.0), None);
    }
}
