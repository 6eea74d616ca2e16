//! How many threads a step runs on. The steps of a small model are too short to be shared out: handing the work over costs more than
//! it saves. A short measurement finds out. What a training computes does not depend on it, to the last bit.

use crate::batch_size::fitting;
use crate::data::TrainingData;
use crate::device::{self, Opened};
use crate::{Settings, TrainError, speed};
use flatout_core::{Message, message, units};
use std::time::Instant;

/// A step of more work than this is worth all threads: nothing is measured.
const SMALL_STEP_FLOPS: f64 = 1e9;
/// Of one number of threads. Threads that share their CPUs with other programs wait for one another, so the mean counts.
const MEASURED_S: f64 = 0.04;
/// For the search, before it is confirmed.
const LONGEST_S: f64 = 0.3;
/// Another program that wakes for a moment makes all threads wait: fewer ones are taken only if they win again.
const CONFIRMATIONS: usize = 2;
/// Fewer threads are better only if they are by this much.
const GAIN_RATIO: f64 = 0.03;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chosen {
    pub threads: usize,
    pub samples_s: f64,
    /// With all usable CPUs.
    pub all: usize,
    pub all_samples_s: f64,
}

/// Whether the number of threads is left to us, and matters.
pub fn is_open(settings: &Settings, opened: &Opened) -> bool {
    opened.device == "cpu"
        && settings.threads.is_none()
        && !settings.naive
        && device::usable_threads() > 1
        && opened.session.plan().flops_per_step() < SMALL_STEP_FLOPS
}

/// The fastest number of threads for steps of a size.
pub fn choose(settings: &Settings, data: &TrainingData, size: usize) -> Result<Chosen, TrainError> {
    let all = with(settings, data, size, device::usable_threads())?;
    fastest(settings, data, size, all)
}

/// The same where it is known how fast all threads are.
pub fn fastest(
    settings: &Settings,
    data: &TrainingData,
    size: usize,
    all_samples_s: f64,
) -> Result<Chosen, TrainError> {
    let (begun, all) = (Instant::now(), device::usable_threads());
    let mut best = Chosen {
        threads: all,
        samples_s: all_samples_s,
        all,
        all_samples_s,
    };
    let mut without_gain = 0;
    for threads in halves(all) {
        let samples_s = with(settings, data, size, threads)?;
        if samples_s > best.samples_s * (1.0 + GAIN_RATIO) {
            (best.threads, best.samples_s) = (threads, samples_s);
            without_gain = 0;
        } else {
            without_gain += 1;
        }
        if without_gain == 2 || begun.elapsed().as_secs_f64() > LONGEST_S {
            break;
        }
    }
    if best.threads == all {
        return Ok(best);
    }
    let mut rounds = (vec![best.samples_s], vec![all_samples_s]);
    for _ in 0..CONFIRMATIONS {
        rounds.0.push(with(settings, data, size, best.threads)?);
        rounds.1.push(with(settings, data, size, all)?);
    }
    Ok(best.confirmed(rounds))
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or(0.0)
}

/// Half of all, a quarter, … one.
fn halves(all: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(all / 2), |threads| Some(threads / 2)).take_while(|threads| *threads > 0)
}

fn with(settings: &Settings, data: &TrainingData, size: usize, threads: usize) -> Result<f64, TrainError> {
    let settings = Settings {
        device: "cpu".to_owned(),
        threads: Some(threads),
        ..settings.clone()
    };
    let mut session = fitting::open_once(&settings, data, size)?.session;
    Ok(speed::measure(&mut *session, data, size, settings.seed, MEASURED_S)?.mean)
}

impl Chosen {
    /// The smaller number only if it stays the faster one, by the medians of several rounds.
    fn confirmed(self, (fewer, all): (Vec<f64>, Vec<f64>)) -> Self {
        let (fewer, all_samples_s) = (median(fewer), median(all));
        let kept = fewer > all_samples_s * (1.0 + GAIN_RATIO);
        Self {
            threads: if kept { self.threads } else { self.all },
            samples_s: if kept { fewer } else { all_samples_s },
            all: self.all,
            all_samples_s,
        }
    }

    /// Nothing is said of what everybody expects.
    pub fn told(&self) -> Option<Message> {
        let (threads, all) = (self.threads, self.all);
        let (rate, all_rate) = (units::count(self.samples_s), units::count(self.all_samples_s));
        (threads < all).then(|| {
            message!(
                en: "threads: {threads}, because steps this short run faster on fewer CPUs ({rate} samples/s \
                against {all_rate} on {all}; override with --threads N)",
                zh: "线程数 {threads}：步骤太短，用更少的 CPU 反而更快（{rate} 样本/秒，用 {all} 个时为 \
                {all_rate}；可用 --threads N 指定）"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_threads_are_halved_down_to_one() {
        assert_eq!(halves(12).collect::<Vec<_>>(), [6, 3, 1]);
        assert_eq!(halves(1).count(), 0);
    }

    #[test]
    fn one_bad_moment_decides_nothing() {
        let one = Chosen {
            threads: 1,
            samples_s: 19.0,
            all: 2,
            all_samples_s: 12.0,
        };
        let chosen = one.confirmed((vec![19.0, 20.0, 21.0], vec![12.0, 38.0, 40.0]));
        assert_eq!((chosen.threads, chosen.samples_s), (2, 38.0));
        let chosen = one.confirmed((vec![19.0, 20.0, 21.0], vec![12.0, 11.0, 40.0]));
        assert_eq!((chosen.threads, chosen.samples_s), (1, 20.0));
    }

    #[test]
    fn reports_thread_count_only_when_reduced() {
        let chosen = |threads| Chosen {
            threads,
            samples_s: 2e4,
            all: 2,
            all_samples_s: 1e4,
        };
        assert!(chosen(2).told().is_none());
        assert!(
            chosen(1)
                .told()
                .unwrap()
                .en
                .contains("20k samples/s against 10k on 2")
        );
    }
}
