//! A pass over the validation samples: forward only, scores out of sums.

use super::{Report, Trainer};
use crate::checkpoint;
use crate::indices::BatchIndices;
use crate::metrics::{self, Meter, Scores};
use crate::{Settings, TrainError};
use flatout_core::files::write_atomically;
use flatout_data::{EpochOrder, Position};
use flatout_engine::{Readback, Session};
use flatout_record::{EventKind, Phase};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// A pass that has been sent.
pub(super) struct Evaluation {
    predictions: Box<dyn Readback<Vec<f32>>>,
    /// In the order of their predictions.
    samples: Vec<u32>,
    batches: u64,
    began: Instant,
}

impl Evaluation {
    pub(super) fn is_ready(&self) -> bool {
        self.predictions.is_ready()
    }
}

impl Trainer<'_> {
    /// Sends samples behind the steps so far.
    pub(super) fn send_evaluation(
        &mut self,
        session: &mut dyn Session,
        settings: &Settings,
        part: Arc<[u32]>,
    ) -> Result<Evaluation, TrainError> {
        if settings.ema.is_none() {
            return self.send_samples(session, settings, part);
        }
        session.exchange_averages()?;
        let sent = self.send_samples(session, settings, part);
        // Also after an error: where memory ran out the training goes on.
        session.exchange_averages()?;
        sent
    }

    fn send_samples(
        &mut self,
        session: &mut dyn Session,
        settings: &Settings,
        part: Arc<[u32]>,
    ) -> Result<Evaluation, TrainError> {
        let began = Instant::now();
        let order = EpochOrder::new(part, session.plan().batch(), false, None);
        let mut batch = BatchIndices::new(order.batch_size(), order.batch_size(), session.plan());
        let mut samples = Vec::new();
        for number in 0..order.batches_per_epoch() {
            let position = Position {
                epoch: 0,
                batch: number,
            };
            let count = batch.fill(&self.data, &order, position, session)?;
            session.set_valid_rows(count);
            // Predictions stay on the device until all are made: nothing is waited for batch by batch.
            session.evaluate_keeping("prediction")?;
            samples.extend_from_slice(&batch.samples[..count]);
            if settings.naive {
                self.recorder.flush_if_due();
            }
        }
        session.set_valid_rows(session.plan().batch());
        let predictions = session.ask_kept()?;
        self.recorder.add(Phase::Eval, began.elapsed().as_secs_f64());
        Ok(Evaluation {
            predictions,
            samples,
            batches: order.batches_per_epoch(),
            began,
        })
    }

    /// What the predictions of the validation part are worth; waits until they are here.
    pub(super) fn scores(&mut self, evaluation: Evaluation) -> Result<Option<Scores>, TrainError> {
        let (scores, meter) = self.measure(evaluation)?;
        self.last_targets = meter.targets().into_iter().collect();
        self.last_scores = scores.or(self.last_scores);
        Ok(scores)
    }

    /// Scores the best checkpoint, or where there is none the state of the session, on the test part. The session has no other use after.
    pub(super) fn test(&mut self, session: &mut dyn Session, settings: &Settings) -> Result<(), TrainError> {
        if self.data.test.is_empty() {
            return Ok(());
        }
        self.finish_saving()?;
        let best = self.output("best.safetensors");
        if self.progress.best.is_some() && best.is_file() {
            checkpoint::load(&best, session)?;
        }
        let evaluation = self.send_evaluation(session, settings, self.data.test.clone())?;
        let (scores, meter) = self.measure(evaluation)?;
        let Some(scores) = scores else {
            return Ok(());
        };
        let targets: BTreeMap<String, Scores> = meter.targets().into_iter().collect();
        let mut all = serde_json::to_value(scores).unwrap_or_default();
        if !targets.is_empty() {
            all["targets"] = serde_json::to_value(&targets).unwrap_or_default();
        }
        metrics::add_reports(&mut all, &meter.reports());
        let text = serde_json::to_string_pretty(&all).unwrap_or_default() + "\n";
        write_atomically(&self.output("test.json"), text.as_bytes())?;
        self.test_scores = Some(scores);
        (self.report)(&Report::Test { scores, targets });
        Ok(())
    }

    fn measure(&mut self, evaluation: Evaluation) -> Result<(Option<Scores>, Meter<'_>), TrainError> {
        let waiting = Instant::now();
        let predictions = evaluation.predictions.wait()?;
        // Sent behind the epoch's last step: it began on the device when that had ended.
        let began = evaluation.began.max(self.epoch_ended);
        let mut meter = Meter::new(self.data.target(), self.data.is_sequence());
        let each = predictions.chunks_exact(self.data.target().outputs());
        for (&sample, prediction) in evaluation.samples.iter().zip(each) {
            meter.add(prediction, self.data.label(sample), self.data.time_us(sample));
        }
        self.recorder.add(Phase::Eval, waiting.elapsed().as_secs_f64());
        self.recorder.event(EventKind::Eval {
            duration_ms: began.elapsed().as_secs_f64() * 1e3,
            batches: Some(evaluation.batches),
            place: None,
        });
        let scores = meter.scores();
        log::debug!(
            "evaluated {} samples in {:.3} s: {scores:?}",
            evaluation.samples.len(),
            began.elapsed().as_secs_f64()
        );
        Ok((scores, meter))
    }
}
