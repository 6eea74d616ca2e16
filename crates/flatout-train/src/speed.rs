//! How fast a session trains: real samples, real steps, and a learning rate of nothing. The session is not fit for training afterwards.

use crate::TrainError;
use crate::data::TrainingData;
use crate::indices::BatchIndices;
use flatout_data::{EpochOrder, Position};
use flatout_engine::Session;
use std::time::Instant;

/// The first steps fault pages in, tune and record.
const WARM_UP_STEPS: u64 = 2;

/// Samples a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// Of the best of several short stretches: another program only ever makes one slower.
    pub best: f64,
    /// Over all of them: what the machine gives as it is now, other programs and all.
    pub mean: f64,
}

/// The speed in batches of a size, measured for about so many seconds after a warm-up.
pub fn measure(
    session: &mut dyn Session,
    data: &TrainingData,
    size: usize,
    seed: u64,
    measured_s: f64,
) -> Result<Speed, TrainError> {
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
    let (mut best, mut steps, begun) = (0f64, 0, Instant::now());
    let mut stretch_steps = 1;
    loop {
        let began = Instant::now();
        for _ in 0..stretch_steps {
            step(session)?;
        }
        session.take_loss();
        let rate =
            |steps: usize, since: Instant| (steps * size) as f64 / since.elapsed().as_secs_f64().max(1e-9);
        best = best.max(rate(stretch_steps, began));
        steps += stretch_steps;
        if begun.elapsed().as_secs_f64() >= measured_s {
            let mean = rate(steps, begun);
            return Ok(Speed { best, mean });
        }
        if began.elapsed().as_secs_f64() < measured_s / 8.0 {
            stretch_steps *= 2;
        }
    }
}
