//! Measures batch sizes by training with them: real samples, real steps, on sessions of their own, so that the training that
//! follows begins untouched.

use crate::batch_size::fitting;
use crate::data::TrainingData;
use crate::indices::BatchIndices;
use crate::{Settings, TrainError, memory};
use flatout_data::{EpochOrder, Position};
use flatout_engine::{EngineError, Session};
use std::time::Instant;

/// For all sizes together, as long as the first two have been measured.
const LONGEST_S: f64 = 3.0;
/// Of one size, after the warm-up.
const MEASURED_S: f64 = 0.12;
/// The first steps fault pages in, tune and record.
const WARM_UP_STEPS: u64 = 2;
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
        let rate = match steps(&mut *opened.session, data, size, settings.seed) {
            Err(TrainError::Engine(EngineError::OutOfMemory { .. })) => break,
            other => other?,
        };
        let room = memory::beside(&*opened.session, &settings);
        if !sizes.is_empty() && room.is_some_and(|room| !room.leaves_enough()) {
            break;
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

/// Samples a second.
fn steps(session: &mut dyn Session, data: &TrainingData, size: usize, seed: u64) -> Result<f64, TrainError> {
    let order = EpochOrder::new(data.train.clone(), size, true, Some(seed));
    let mut indices = BatchIndices::new(size, size, session.plan());
    let mut batch = 0;
    let mut step = |session: &mut dyn Session| -> Result<(), TrainError> {
        let position = Position {
            epoch: 0,
            batch: batch % order.batches_per_epoch().max(1),
        };
        indices.fill(data, &order, position, session)?;
        // A rate of nothing: the arithmetic is the same, and nothing can run away.
        session.step(0.0)?;
        batch += 1;
        Ok(())
    };
    for _ in 0..WARM_UP_STEPS {
        step(session)?;
    }
    session.take_loss();
    // The best of several short stretches: another program only ever makes one slower.
    let (mut best, begun) = (0f64, Instant::now());
    let mut stretch_steps = 1;
    loop {
        let began = Instant::now();
        for _ in 0..stretch_steps {
            step(session)?;
        }
        session.take_loss();
        let seconds = began.elapsed().as_secs_f64().max(1e-9);
        best = best.max((stretch_steps as usize * size) as f64 / seconds);
        if begun.elapsed().as_secs_f64() >= MEASURED_S {
            return Ok(best);
        }
        if seconds < MEASURED_S / 8.0 {
            stretch_steps *= 2;
        }
    }
}
