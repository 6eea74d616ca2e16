//! Measures batch sizes by training with them: real samples, real steps, on sessions of their own, so that the training that
//! follows begins untouched.

use crate::batch_size::fitting;
use crate::data::TrainingData;
use crate::{Settings, TrainError, memory, speed, threads};
use flatout_engine::EngineError;
use std::time::Instant;

/// For all sizes together, as long as the first two have been measured.
const LONGEST_S: f64 = 3.0;
/// Of one size, after the warm-up.
const MEASURED_S: f64 = 0.12;
/// A size is better only if it is by this much.
const GAIN_RATIO: f64 = 0.03;
pub const FIRST_ON_CPU: usize = 32;
const FIRST_ON_CUDA: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    pub size: usize,
    pub samples_s: f64,
}

pub struct Measurements {
    pub sizes: Vec<Measured>,
    pub seconds: f64,
}

/// Doubles the size up to `largest`, until it no longer helps, memory or time runs out.
pub fn measure(settings: &Settings, data: &TrainingData, largest: usize) -> Result<Measurements, TrainError> {
    let begun = Instant::now();
    let mut settings = settings.clone();
    let (mut sizes, mut best, mut without_gain): (Vec<Measured>, f64, usize) = (Vec::new(), 0.0, 0);
    let mut size = largest.min(FIRST_ON_CPU);
    while size <= largest && without_gain < 2 {
        let one_began = Instant::now();
        let mut opened = match fitting::open_once(&settings, data, size) {
            Err(TrainError::Engine(EngineError::OutOfMemory { .. })) => break,
            other => other?,
        };
        if sizes.is_empty() && opened.device == "cuda" && size < FIRST_ON_CUDA.min(largest) {
            // A card is never full with so little.
            size = FIRST_ON_CUDA.min(largest);
            settings.device = opened.name;
            continue;
        }
        settings.device.clone_from(&opened.name);
        let speed = match speed::measure(&mut *opened.session, data, size, settings.seed, MEASURED_S) {
            Err(TrainError::Engine(EngineError::OutOfMemory { .. })) => break,
            other => other?,
        };
        let mut rate = speed.best;
        let room = memory::beside(&*opened.session, &settings);
        if !sizes.is_empty() && room.is_some_and(|room| !room.leaves_enough()) {
            break;
        }
        if threads::is_open(&settings, &opened) {
            // The training that follows will not waste time on too many threads either.
            drop(opened);
            let chosen = threads::fastest(&settings, data, size, speed.mean)?;
            if chosen.threads < chosen.all {
                rate = chosen.samples_s;
            }
        }
        without_gain = if rate > best * (1.0 + GAIN_RATIO) {
            0
        } else {
            without_gain + 1
        };
        best = best.max(rate);
        sizes.push(Measured {
            size,
            samples_s: rate,
        });
        // The next one takes up to twice as long.
        let (last, so_far) = (one_began.elapsed().as_secs_f64(), begun.elapsed().as_secs_f64());
        if sizes.len() >= 2 && so_far + 2.0 * last > LONGEST_S {
            break;
        }
        size *= 2;
    }
    Ok(Measurements {
        sizes,
        seconds: begun.elapsed().as_secs_f64(),
    })
}
