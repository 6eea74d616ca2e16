//! The loop over epochs and steps. It never reads the loss back but when it is to be shown.

use super::{Report, Trainer};
use crate::batch_size::Batch;
use crate::checkpoint::Progress;
use crate::indices::BatchIndices;
use crate::schedule::{Schedule, Shape as ScheduleShape};
use crate::{Settings, TrainError};
use flatout_data::{EpochOrder, Position};
use flatout_engine::Session;
use flatout_telemetry::{EventKind, Phase};
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Seconds between signs of life inside an epoch. Each waits for the device once to read the loss.
const REPORT_S: f64 = 0.5;

/// One phase with its order of samples.
pub(super) struct PhaseRun<'a> {
    pub(super) name: &'a str,
    pub(super) settings: &'a Settings,
    pub(super) batch: Batch,
    pub(super) order: EpochOrder,
}

impl PhaseRun<'_> {
    pub(super) fn peak_rate(&self) -> f64 {
        self.settings.learning_rate * self.batch.rate_factor
    }

    /// Arithmetic of one update.
    pub(super) fn flops(&self, session: &dyn Session) -> f64 {
        session.plan().flops_per_step() * self.batch.parts() as f64
    }

    /// The rate of the step that comes next. Counted within the phase: the next one warms up and falls anew.
    fn rate(&self, schedule: &Schedule, progress: &Progress) -> f64 {
        schedule.rate(progress.epoch * self.order.batches_per_epoch() + progress.epoch_step)
    }

    fn schedule(&self) -> Schedule {
        Schedule {
            peak: self.peak_rate(),
            warmup_steps: self.settings.warmup,
            total_steps: self.order.batches_per_epoch() * self.settings.epochs,
            shape: ScheduleShape::named(&self.settings.lr_schedule),
        }
    }
}

/// What one epoch is measured by.
struct EpochClock {
    began: Instant,
    /// What the device can do at most.
    peak_flops: Option<f64>,
    first_step: u64,
    shown: Instant,
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
            let ended = self.train_epoch(run, session);
            // What was trained before memory ran out took time as well.
            self.trained_s += began.elapsed().as_secs_f64();
            let interrupted = ended?;
            self.take_loss(session)?;
            let seconds = began.elapsed().as_secs_f64();
            if interrupted {
                self.save(session, "last.safetensors")?;
                return Ok(true);
            }
            let samples = (self.trained_samples - samples_before) as f64;
            let (epoch, last) = (
                self.progress.epoch + 1,
                self.progress.epoch + 1 == settings.epochs,
            );
            if samples > 0.0 {
                self.recorder.event(EventKind::Epoch {
                    number: epoch,
                    duration_ms: Some(seconds * 1e3),
                });
            }
            let due = |interval: u64| last || epoch.is_multiple_of(interval);
            // Before the epoch counts as done: where memory runs out here, the session that follows evaluates it.
            let scores = if due(settings.eval_interval) {
                self.evaluate(session, settings)?
            } else {
                None
            };
            let loss = self.progress.epoch_loss / self.progress.epoch_samples.max(1) as f64;
            self.progress.epoch_step = self.progress.epoch_step.saturating_sub(1);
            let last_rate = run.rate(&run.schedule(), &self.progress);
            (self.progress.epoch, self.progress.epoch_step) = (epoch, 0);
            (self.progress.epoch_loss, self.progress.epoch_samples) = (0.0, 0);
            self.epoch_line(&Report::Epoch {
                phase: run.name.to_owned(),
                epoch,
                epochs: settings.epochs,
                step: self.progress.step,
                loss,
                samples_s: samples / seconds.max(1e-9),
                seconds,
                rate: last_rate,
                scores,
            });
            if let Some(scores) = scores {
                self.keep_best(session, &scores)?;
            }
            let stopping =
                settings.early_stopping > 0 && self.progress.without_gain >= settings.early_stopping;
            if last || stopping {
                self.save(session, "last.safetensors")?;
            } else if due(settings.checkpoint_interval) || self.unsaved {
                self.begin_saving(session, "last.safetensors", None)?;
            }
            if stopping && !last {
                (self.report)(&Report::Stopped { early: true });
                break;
            }
        }
        Ok(false)
    }

    /// True when it was interrupted; the position then names the next step.
    fn train_epoch(&mut self, run: &PhaseRun, session: &mut dyn Session) -> Result<bool, TrainError> {
        let (settings, schedule) = (run.settings, run.schedule());
        let steps = run.order.batches_per_epoch();
        session.set_epoch(self.progress.epoch);
        let mut indices = BatchIndices::new(run.batch.effective, run.batch.micro, session.plan());
        let mut clock = EpochClock {
            began: Instant::now(),
            peak_flops: session.peak_flops(),
            first_step: self.progress.epoch_step,
            shown: Instant::now(),
        };
        while self.progress.epoch_step < steps {
            let began = Instant::now();
            let rate = run.rate(&schedule, &self.progress);
            let samples = self.step(run, &mut indices, session, rate)?;
            self.position = session.position();
            self.progress.epoch_step += 1;
            self.progress.step += 1;
            self.trained_samples += samples as u64;
            self.progress.epoch_samples += samples as u64;
            self.unread_samples += samples as u64;
            if settings.naive {
                self.take_loss(session)?;
            }
            if self.recorder.is_due() {
                self.recorder.busy(session.busy_ms());
                self.look_after_saving()?;
            }
            self.recorder.step(samples, began.elapsed().as_secs_f64());
            let line =
                settings.log_interval > 0 && self.progress.epoch_step.is_multiple_of(settings.log_interval);
            if line || clock.shown.elapsed().as_secs_f64() > REPORT_S {
                self.steps_line(run, &mut clock, line, session)?;
            }
            if self.interrupted.load(Ordering::Relaxed) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// One update, in as many parts as the batch has; returns its samples.
    fn step(
        &mut self,
        run: &PhaseRun,
        indices: &mut BatchIndices,
        session: &mut dyn Session,
        rate: f64,
    ) -> Result<usize, TrainError> {
        let filling = Instant::now();
        let position = Position {
            epoch: self.progress.epoch,
            batch: self.progress.epoch_step,
        };
        let samples = indices.name_samples(&run.order, position);
        self.recorder.add(Phase::Data, filling.elapsed().as_secs_f64());
        let parts = run.batch.parts();
        for part in 0..parts {
            let filling = Instant::now();
            let rows = indices.set_part(part, &self.data, session)?;
            self.recorder.add(Phase::Data, filling.elapsed().as_secs_f64());
            let computing = Instant::now();
            if parts == 1 {
                session.step(rate)?;
            } else {
                session.accumulate(rows as f64 / samples.max(1) as f64)?;
                if part + 1 == parts {
                    session.update(rate)?;
                }
            }
            self.recorder
                .add(Phase::Compute, computing.elapsed().as_secs_f64());
        }
        Ok(samples)
    }

    fn steps_line(
        &mut self,
        run: &PhaseRun,
        clock: &mut EpochClock,
        line: bool,
        session: &mut dyn Session,
    ) -> Result<(), TrainError> {
        let loss = self.take_loss(session)?;
        if line && let Some(loss) = loss {
            self.metrics.step_loss(self.progress.step, loss);
        }
        let (done, of) = (self.progress.epoch_step, run.order.batches_per_epoch());
        let each = clock.began.elapsed().as_secs_f64() / (done - clock.first_step).max(1) as f64;
        let left = ((run.settings.epochs - self.progress.epoch) * of).saturating_sub(done);
        let device = self.recorder.device();
        let report = Report::Steps {
            phase: run.name.to_owned(),
            epoch: self.progress.epoch + 1,
            epochs: run.settings.epochs,
            step: done,
            of,
            samples_s: run.batch.effective as f64 / each.max(1e-9),
            loss,
            busy_ratio: device.busy_ratio,
            peak_ratio: clock
                .peak_flops
                .map(|peak| run.flops(session) / each.max(1e-9) / peak),
            memory_bytes: device.memory_bytes,
            power_w: device.power_w,
            seconds_left: each * left as f64,
            line,
        };
        (self.report)(&report);
        clock.shown = Instant::now();
        Ok(())
    }

    /// Reads the loss since the last time; a loss that is no number ends the run.
    pub(super) fn take_loss(&mut self, session: &mut dyn Session) -> Result<Option<f64>, TrainError> {
        let waiting = Instant::now();
        let loss = session.take_loss();
        self.recorder.add(Phase::Sync, waiting.elapsed().as_secs_f64());
        let Some(loss) = loss else { return Ok(None) };
        if !loss.is_finite() {
            let since = session.first_bad_update();
            let steps_ago = since.map_or(0, |update| session.position().updates.saturating_sub(update));
            let kept = Some(self.output("last.safetensors")).filter(|path| path.exists());
            return Err(TrainError::NotFinite {
                epoch: self.progress.epoch + 1,
                step: self.progress.step.saturating_sub(steps_ago),
                after: if since.is_some() {
                    None
                } else {
                    Some(self.finite_step)
                },
                kept,
            });
        }
        let loss = loss * self.data.target().loss_scale();
        self.finite_step = self.progress.step;
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
