//! Measures batch sizes by training with them: real samples, real steps, on sessions of their own, so that the training that
//! follows begins untouched.

use crate::batch_size::fitting;
use crate::data::TrainingData;
use crate::{Settings, TrainError, memory, speed, threads};
use flatout_engine::EngineError;
use std::time::Instant;

/// For all sizes together, as long as the first two have been measured. Opening the first session does not count: the one that trains
/// needs what it loads and compiles as well.
const LONGEST_S: f64 = 3.0;
/// Of one size, after the warm-up.
const MEASURED_S: f64 = 0.12;
/// A size is better only if it is by this much.
const GAIN_RATIO: f64 = 0.03;
pub const FIRST_ON_CPU: usize = 32;
/// A card is seldom full with less; where it is, smaller ones are tried too.
const FIRST_ON_CUDA: usize = 256;
/// Gradients of fewer samples, and batch norm over them, are mostly noise.
pub const SMALLEST: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    pub size: usize,
    pub samples_s: f64,
}

pub struct Measurements {
    /// From small to large.
    pub sizes: Vec<Measured>,
    pub seconds: f64,
}

struct Probe<'a> {
    settings: Settings,
    data: &'a TrainingData,
    sizes: Vec<Measured>,
    /// Since the first session was open.
    clock: Option<Instant>,
    last_s: f64,
}

/// Doubles the size up to `largest`, until it no longer helps, memory or time runs out; then halves it as long as that costs nothing.
pub fn measure(settings: &Settings, data: &TrainingData, largest: usize) -> Result<Measurements, TrainError> {
    let begun = Instant::now();
    let mut probe = Probe {
        settings: settings.clone(),
        data,
        sizes: Vec::new(),
        clock: None,
        last_s: 0.0,
    };
    let first = probe.first(largest)?;
    probe.climb(first, largest)?;
    probe.descend(first)?;
    probe.sizes.sort_by_key(|one| one.size);
    Ok(Measurements {
        sizes: probe.sizes,
        seconds: begun.elapsed().as_secs_f64(),
    })
}

impl Probe<'_> {
    /// Where to begin. A device that is left to us is chosen here, once.
    fn first(&mut self, largest: usize) -> Result<usize, TrainError> {
        if self.settings.device == "auto" {
            match fitting::open_once(&self.settings, self.data, 1) {
                Err(TrainError::Engine(EngineError::OutOfMemory { .. })) => {}
                opened => self.settings.device = opened?.name,
            }
        }
        let first = if self.settings.device == "cpu" {
            FIRST_ON_CPU
        } else {
            FIRST_ON_CUDA
        };
        Ok(first.min(largest))
    }

    fn climb(&mut self, first: usize, largest: usize) -> Result<(), TrainError> {
        let (mut size, mut best, mut without_gain) = (first, 0.0, 0);
        while size <= largest && without_gain < 2 {
            let Some(rate) = self.one(size)? else { break };
            without_gain = if rate > best * (1.0 + GAIN_RATIO) {
                0
            } else {
                without_gain + 1
            };
            best = f64::max(best, rate);
            // The next one takes up to twice as long.
            if self.sizes.len() >= 2 && self.spent_s() + 2.0 * self.last_s > LONGEST_S {
                break;
            }
            size *= 2;
        }
        Ok(())
    }

    /// Smaller ones than the first, where the first is already as good as any.
    fn descend(&mut self, first: usize) -> Result<(), TrainError> {
        let mut size = first;
        while super::choose(&self.sizes).is_some_and(|chosen| chosen.size == size)
            && size > SMALLEST
            && self.spent_s() + self.last_s < LONGEST_S
        {
            size = (size / 2).max(SMALLEST);
            if self.one(size)?.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn spent_s(&self) -> f64 {
        self.clock.map_or(0.0, |clock| clock.elapsed().as_secs_f64())
    }

    /// Samples a second with a size; `None` where memory is too small for it.
    fn one(&mut self, size: usize) -> Result<Option<f64>, TrainError> {
        let began = Instant::now();
        let (settings, data) = (&self.settings, self.data);
        let mut opened = match fitting::open_once(settings, data, size) {
            Err(TrainError::Engine(EngineError::OutOfMemory { .. })) => return Ok(None),
            other => other?,
        };
        self.clock.get_or_insert_with(Instant::now);
        let speed = match speed::measure(&mut *opened.session, data, size, settings.seed, MEASURED_S) {
            Err(TrainError::Engine(EngineError::OutOfMemory { .. })) => return Ok(None),
            other => other?,
        };
        let room = memory::beside(&*opened.session, settings);
        if !self.sizes.is_empty() && room.is_some_and(|room| !memory::leaves_enough(room)) {
            return Ok(None);
        }
        let mut samples_s = speed.best;
        if threads::is_open(settings, &opened) {
            // The training that follows will not waste time on too many threads either.
            drop(opened);
            let chosen = threads::fastest(settings, data, size, speed.mean)?;
            if chosen.threads < chosen.all {
                samples_s = chosen.samples_s;
            }
        }
        log::debug!("batch {size}: {samples_s:.0} samples/s");
        self.sizes.push(Measured { size, samples_s });
        self.last_s = began.elapsed().as_secs_f64();
        Ok(Some(samples_s))
    }
}
