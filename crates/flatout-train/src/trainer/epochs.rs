//! The loop over epochs and steps. It never reads the loss back but when it is to be shown.

use super::batch::BatchIndices;
use super::{Report, Trainer};
use crate::schedule::{Schedule, Shape as ScheduleShape};
use crate::{Settings, TrainError};
use flatout_data::{EpochOrder, Position};
use flatout_engine::Session;
use flatout_telemetry::{EventKind, Phase};
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Seconds between lines of progress inside an epoch, for those who watch.
const REPORT_S: f64 = 0.5;

/// One phase with its order of samples.
pub(super) struct PhaseRun<'a> {
    pub(super) name: &'a str,
    pub(super) settings: &'a Settings,
    pub(super) order: EpochOrder,
}

impl PhaseRun<'_> {
    fn schedule(&self) -> Schedule {
        let steps = self.order.batches_per_epoch() / self.settings.gradient_accumulation_steps as u64;
        Schedule {
            peak: self.settings.learning_rate,
            warmup_steps: self.settings.warmup,
            total_steps: steps * self.settings.epochs,
            shape: ScheduleShape::named(&self.settings.lr_schedule),
        }
    }
}

impl Trainer<'_> {
    /// Runs one phase to its end; true when it was interrupted.
    pub(super) fn train_phase(
        &mut self,
        run: &PhaseRun,
        session: &mut dyn Session,
    ) -> Result<bool, TrainError> {
        let settings = run.settings;
        while self.progress.epoch < settings.epochs {
            let (began, samples_before) = (Instant::now(), self.trained_samples);
            if self.train_epoch(run, session)? {
                self.save(session, "last.safetensors", false)?;
                return Ok(true);
            }
            self.take_loss(session)?;
            let seconds = began.elapsed().as_secs_f64();
            self.trained_s += seconds;
            let loss = self.progress.epoch_loss / self.progress.epoch_samples.max(1) as f64;
            self.progress.epoch += 1;
            self.progress.batch = 0;
            (self.progress.epoch_loss, self.progress.epoch_samples) = (0.0, 0);
            let (epoch, last) = (self.progress.epoch, self.progress.epoch == settings.epochs);
            self.recorder.event(EventKind::Epoch {
                number: epoch,
                duration_ms: Some(seconds * 1e3),
            });
            let due = |interval: u64| last || epoch.is_multiple_of(interval);
            let scores = if due(settings.eval_interval) {
                self.evaluate(session, settings)?
            } else {
                None
            };
            let samples = (self.trained_samples - samples_before) as f64;
            let rate = run.schedule().rate(self.progress.step.saturating_sub(1));
            self.epoch_line(&Report::Epoch {
                phase: run.name.to_owned(),
                epoch,
                epochs: settings.epochs,
                step: self.progress.step,
                loss,
                samples_s: samples / seconds.max(1e-9),
                seconds,
                rate,
                scores,
            });
            if let Some(scores) = scores {
                self.keep_best(session, &scores)?;
            }
            if last {
                self.save(session, "last.safetensors", false)?;
            } else if due(settings.checkpoint_interval) || self.unsaved {
                self.save_or_warn(session, "last.safetensors", false)?;
            }
            if settings.early_stopping > 0 && self.progress.without_gain >= settings.early_stopping {
                (self.report)(&Report::Stopped { early: true });
                self.save(session, "last.safetensors", false)?;
                break;
            }
        }
        Ok(false)
    }

    /// True when it was interrupted; the position then names the next batch.
    fn train_epoch(&mut self, run: &PhaseRun, session: &mut dyn Session) -> Result<bool, TrainError> {
        let (settings, order, schedule) = (run.settings, &run.order, run.schedule());
        let group = settings.gradient_accumulation_steps as u64;
        let steps = order.batches_per_epoch() / group;
        let mut batch = BatchIndices::new(order.batch_size(), session.plan());
        let (began, first, mut shown_at) = (Instant::now(), self.progress.batch / group, Instant::now());
        while self.progress.batch / group < steps {
            let step_began = Instant::now();
            let rate = schedule.rate(self.progress.step);
            let mut samples = 0;
            for _ in 0..group {
                let filling = Instant::now();
                let position = Position {
                    epoch: self.progress.epoch,
                    batch: self.progress.batch,
                };
                samples += batch.fill(&self.data, order, position, session)?;
                self.recorder.add(Phase::Data, filling.elapsed().as_secs_f64());
                let computing = Instant::now();
                if group == 1 {
                    session.step(rate)?;
                } else {
                    session.accumulate(1.0 / group as f64)?;
                }
                self.recorder
                    .add(Phase::Compute, computing.elapsed().as_secs_f64());
                self.progress.batch += 1;
            }
            if group > 1 {
                session.update(rate)?;
            }
            self.progress.step += 1;
            self.trained_samples += samples as u64;
            self.progress.epoch_samples += samples as u64;
            self.unread_samples += samples as u64;
            if settings.naive {
                self.take_loss(session)?;
            }
            self.recorder.step(samples, step_began.elapsed().as_secs_f64());
            let done = self.progress.batch / group;
            let wanted = settings.log_interval > 0 && done.is_multiple_of(settings.log_interval);
            if wanted || (settings.log_interval == 0 && shown_at.elapsed().as_secs_f64() > REPORT_S) {
                // Reading the loss waits for the device: only when a line was asked for.
                let loss = if wanted { self.take_loss(session)? } else { None };
                if let Some(loss) = loss {
                    self.metrics.step_loss(self.progress.step, loss);
                }
                let each = began.elapsed().as_secs_f64() / (done - first).max(1) as f64;
                let report = Report::Steps {
                    phase: run.name.to_owned(),
                    epoch: self.progress.epoch + 1,
                    step: done,
                    of: steps,
                    samples_s: settings.batch_size as f64 / each,
                    loss,
                    seconds_left: each
                        * ((settings.epochs - self.progress.epoch) * steps).saturating_sub(done) as f64,
                };
                (self.report)(&report);
                shown_at = Instant::now();
            }
            if self.interrupted.load(Ordering::Relaxed) {
                self.take_loss(session)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads the loss since the last time; a loss that is no number ends the run.
    fn take_loss(&mut self, session: &mut dyn Session) -> Result<Option<f64>, TrainError> {
        let waiting = Instant::now();
        let loss = session.take_loss();
        self.recorder.add(Phase::Sync, waiting.elapsed().as_secs_f64());
        let Some(loss) = loss else { return Ok(None) };
        if !loss.is_finite() {
            let kept = Some(self.output("last.safetensors")).filter(|path| path.exists());
            return Err(TrainError::NotFinite {
                epoch: self.progress.epoch + 1,
                step: self.progress.step,
                kept,
            });
        }
        let loss = loss * self.data.target().loss_scale();
        self.recorder.loss(loss);
        // The mean since the last reading stands for all samples since then.
        self.progress.epoch_loss += loss * std::mem::take(&mut self.unread_samples) as f64;
        Ok(Some(loss))
    }

    /// Tells the epoch to those who watch and to the files.
    fn epoch_line(&mut self, report: &Report) {
        (self.report)(report);
        if let Err(error) = self.metrics.epoch(report) {
            self.warn(&error);
        }
    }
}
