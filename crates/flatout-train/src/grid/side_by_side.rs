//! Whether several trainings at once get more done than one after the other. Measured with the first of those that are to be trained:
//! each alone, then all at the same time.

use crate::batch_size::{REFERENCE_BATCH, fitting};
use crate::data::TrainingData;
use crate::{Settings, TrainError, device, speed, threads};
use flatout_core::{Message, message};
use std::sync::Barrier;
use std::time::Instant;

const ALONE_S: f64 = 0.1;
const TOGETHER_S: f64 = 0.3;
/// Side by side must be worth the memory, and the lines of progress in each other's way.
const GAIN_RATIO: f64 = 0.05;

/// What was found out.
#[derive(Clone, Debug, PartialEq)]
pub struct SideBySide {
    /// How many at once; 1: one after the other.
    pub jobs: usize,
    /// Numbers that were tried, and how much of their speed alone all together had: above 1 is a gain.
    pub tried: Vec<(usize, f64)>,
    pub seconds: f64,
}

/// A training that is to be measured.
pub struct Candidate {
    pub settings: Settings,
    pub data: TrainingData,
}

/// The number of trainings at once, up to `most`, that get most done. Measured with the first candidates that can be trained: what
/// does not fit even alone is a failure of its own, reported when its turn comes.
pub fn measure(
    candidates: impl Iterator<Item = Result<Candidate, TrainError>>,
    most: usize,
) -> Result<SideBySide, TrainError> {
    let begun = Instant::now();
    let (mut fit, mut alone) = (Vec::new(), Vec::new());
    for candidate in candidates {
        let candidate = candidate?;
        let Ok(speed) = speed_alone(&candidate) else {
            continue;
        };
        fit.push(candidate);
        alone.push(speed);
        if fit.len() == most {
            break;
        }
    }
    let candidates = fit;
    let mut found = SideBySide {
        jobs: 1,
        tried: Vec::new(),
        seconds: 0.0,
    };
    let (mut best, mut jobs) = (1.0 + GAIN_RATIO, candidates.len());
    while jobs > 1 {
        // Memory for one is not memory for all: that is an answer too.
        let speeds = together(&candidates[..jobs]).unwrap_or_default();
        let shares = speeds.iter().zip(&alone);
        let gain: f64 = shares.map(|(together, alone)| together / alone.max(1e-9)).sum();
        found.tried.push((jobs, gain));
        if gain > best {
            (found.jobs, best) = (jobs, gain);
        }
        jobs /= 2;
    }
    found.seconds = begun.elapsed().as_secs_f64();
    Ok(found)
}

impl Candidate {
    fn size(&self) -> usize {
        let wanted = self.settings.batch_size.unwrap_or(REFERENCE_BATCH);
        wanted.min(self.data.train.len()).max(1)
    }

    fn run(&self, settings: &Settings, ready: Option<&Barrier>, seconds: f64) -> Result<f64, TrainError> {
        let opened = fitting::open_once(settings, &self.data, self.size());
        // Those that cannot be opened must not keep the others waiting.
        if let Some(ready) = ready {
            ready.wait();
        }
        let mut session = opened?.session;
        let speed = speed::measure(&mut *session, &self.data, self.size(), settings.seed, seconds)?;
        Ok(speed.mean)
    }
}

/// Samples a second with the whole machine, on as many threads as are fastest.
fn speed_alone(candidate: &Candidate) -> Result<f64, TrainError> {
    let Candidate { settings, data } = candidate;
    let opened = fitting::open_once(settings, data, candidate.size())?;
    if !threads::is_open(settings, &opened) {
        drop(opened);
        return candidate.run(settings, None, ALONE_S);
    }
    drop(opened);
    let chosen = threads::choose(settings, data, candidate.size())?;
    let settings = Settings {
        threads: Some(chosen.threads),
        ..settings.clone()
    };
    candidate.run(&settings, None, ALONE_S)
}

fn together(candidates: &[Candidate]) -> Result<Vec<f64>, TrainError> {
    let (ready, jobs) = (Barrier::new(candidates.len()), candidates.len());
    std::thread::scope(|scope| {
        let running: Vec<_> = candidates
            .iter()
            .map(|candidate| {
                let settings = Settings {
                    threads: candidate.settings.threads.or(Some(threads_of_one(jobs))),
                    ..candidate.settings.clone()
                };
                let ready = &ready;
                scope.spawn(move || candidate.run(&settings, Some(ready), TOGETHER_S))
            })
            .collect();
        let ends = running.into_iter().filter_map(|thread| thread.join().ok());
        ends.collect()
    })
}

/// The CPUs are shared out among the jobs.
pub fn threads_of_one(jobs: usize) -> usize {
    (device::usable_threads() / jobs.max(1)).max(1)
}

impl SideBySide {
    pub fn told(&self) -> Message {
        let tried: Vec<String> = self
            .tried
            .iter()
            .map(|(jobs, gain)| format!("{jobs}: {gain:.2}×"))
            .collect();
        let (jobs, tried, seconds) = (self.jobs, tried.join(", "), format!("{:.1}", self.seconds));
        match jobs {
            1 => {
                message!(en: "running one training at a time: more in parallel are no faster ({tried}; \
                measured in {seconds} s)", zh: "逐个训练：同时训练并不更快（{tried}；实测用时 {seconds} 秒）")
            }
            _ => {
                message!(en: "running {jobs} trainings in parallel: faster than one at a time ({tried}; \
                measured in {seconds} s)", zh: "同时训练 {jobs} 个：比逐个训练更快（{tried}；实测用时 {seconds} 秒）")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_the_choice_with_its_measurement() {
        let found = |jobs| SideBySide {
            jobs,
            tried: vec![(3, 1.84)],
            seconds: 0.9,
        };
        assert!(found(3).told().en.starts_with("running 3 trainings in parallel"));
        let one = found(1).told();
        assert!(
            one.en.starts_with("running one training at a time") && one.en.contains("3: 1.84×"),
            "{one:?}"
        );
    }
}
