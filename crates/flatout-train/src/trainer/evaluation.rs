//! A pass over the validation samples: forward only, scores out of sums.

use super::Trainer;
use crate::indices::BatchIndices;
use crate::metrics::{Meter, Scores};
use crate::{Settings, TrainError};
use flatout_data::{EpochOrder, Position};
use flatout_engine::Session;
use flatout_telemetry::{EventKind, Phase};
use std::time::Instant;

impl Trainer<'_> {
    pub(super) fn evaluate(
        &mut self,
        session: &mut dyn Session,
        settings: &Settings,
    ) -> Result<Option<Scores>, TrainError> {
        let began = Instant::now();
        let order = EpochOrder::new(self.data.validation.clone(), session.plan().batch(), false, None);
        let mut batch = BatchIndices::new(order.batch_size(), order.batch_size(), session.plan());
        let outputs = self.data.target().outputs();
        let mut meter = Meter::new(self.data.target(), self.data.is_sequence());
        let mut evaluated = Vec::new();
        for number in 0..order.batches_per_epoch() {
            let count = batch.fill(
                &self.data,
                &order,
                Position {
                    epoch: 0,
                    batch: number,
                },
                session,
            )?;
            session.set_valid_rows(count);
            // Predictions stay on the device until all are made: nothing is waited for batch by batch.
            session.evaluate_keeping("prediction")?;
            evaluated.extend_from_slice(&batch.samples[..count]);
            if settings.naive {
                self.recorder.flush_if_due();
            }
        }
        let predictions = session.take_kept()?;
        for (&sample, prediction) in evaluated.iter().zip(predictions.chunks_exact(outputs)) {
            meter.add(prediction, self.data.label(sample));
        }
        session.set_valid_rows(session.plan().batch());
        session.take_evaluation_loss();
        let seconds = began.elapsed().as_secs_f64();
        self.recorder.add(Phase::Eval, seconds);
        self.recorder.event(EventKind::Eval {
            duration_ms: seconds * 1e3,
            batches: Some(order.batches_per_epoch()),
            place: None,
        });
        let scores = meter.scores();
        self.last_scores = scores.or(self.last_scores);
        Ok(scores)
    }
}
