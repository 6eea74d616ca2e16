//! The loop over epochs and steps. It never waits for the loss: what was asked for is read when it is here.

use super::answers::Then;
use super::{Report, Trainer};
use crate::batch_size::Batch;
use crate::checkpoint::{LossSum, Progress};
use crate::indices::{BatchIndices, Hidden};
use crate::schedule::{Schedule, Shape};
use crate::{Settings, TrainError};
use flatout_data::{EpochOrder, Position};
use flatout_engine::Session;
use flatout_record::Phase;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Seconds between signs of life inside an epoch. Each asks the device for the loss.
pub(super) const REPORT_S: f64 = 0.5;

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

    pub(super) fn next_rate(&self, progress: &Progress) -> f64 {
        self.rate(&self.schedule(), progress)
    }

    /// The rate of the step that comes next. Counted within the phase: the next one warms up and falls anew.
    fn rate(&self, schedule: &Schedule, progress: &Progress) -> f64 {
        let step = progress.epoch * self.order.batches_per_epoch() + progress.epoch_step;
        schedule.rate(step) * self.settings.lr_gamma.powi(progress.reductions as i32)
    }

    fn schedule(&self) -> Schedule {
        Schedule {
            peak: self.peak_rate(),
            warmup_steps: self.settings.warmup,
            total_steps: self.order.batches_per_epoch() * self.settings.epochs,
            shape: match self.settings.lr_schedule.as_str() {
                "cosine" => Shape::Cosine,
                "linear" => Shape::Linear,
                "onecycle" => Shape::OneCycle,
                "step" => Shape::Step {
                    every: self.settings.lr_step_size * self.order.batches_per_epoch(),
                    gamma: self.settings.lr_gamma,
                },
                // A plateau is found by evaluating.
                _ => Shape::Constant,
            },
        }
    }
}

/// Signs of life: what was done since the last one. They do not follow the epochs, which may be much shorter.
struct Pace {
    since: Instant,
    step: u64,
    /// What the device can do at most.
    peak_flops: Option<f64>,
}

impl Trainer<'_> {
    /// Runs one phase to its end; true when it was interrupted.
    pub(super) fn train_phase(
        &mut self,
        run: &PhaseRun,
        session: &mut dyn Session,
    ) -> Result<bool, TrainError> {
        (self.epoch_began, self.stopping) = (Instant::now(), false);
        let mut pace = Pace {
            since: Instant::now(),
            step: self.progress.step,
            peak_flops: session.peak_flops(),
        };
        while self.progress.epoch < run.settings.epochs && !self.stopping {
            let samples_before = self.trained_samples;
            if self.train_epoch(run, session, &mut pace)? {
                self.catch_up(session)?;
                self.trained_s += self.epoch_began.elapsed().as_secs_f64();
                self.save(session, "last.safetensors")?;
                return Ok(true);
            }
            self.end_epoch(run, session, self.trained_samples - samples_before)?;
        }
        if self.progress.phase + 1 == self.configuration.phases.len() {
            self.test(session, run.settings)?;
        }
        Ok(false)
    }

    /// True when it was interrupted; the position then names the next step.
    fn train_epoch(
        &mut self,
        run: &PhaseRun,
        session: &mut dyn Session,
        pace: &mut Pace,
    ) -> Result<bool, TrainError> {
        let (settings, schedule) = (run.settings, run.schedule());
        let steps = run.order.batches_per_epoch();
        session.set_epoch(self.progress.epoch);
        self.change_images(run, session)?;
        // In the middle of an epoch (a resume, a smaller batch) everything asked for was read, and the sum continues.
        let begun = match self.progress.epoch_step {
            0 => LossSum::default(),
            _ => self.progress.loss,
        };
        session.set_loss(begun.sum, begun.samples)?;
        let mut indices = BatchIndices::new(run.batch.effective, run.batch.micro, session.plan());
        indices.hide(self.data.unknown_entity().map(|unknown| Hidden {
            seed: settings.seed,
            epoch: self.progress.epoch,
            share: settings.entity_dropout,
            unknown,
        }));
        while self.progress.epoch_step < steps {
            let began = Instant::now();
            let rate = run.rate(&schedule, &self.progress);
            let samples = self.step(run, &mut indices, session, rate)?;
            self.settle()?;
            self.position = session.position();
            self.progress.epoch_step += 1;
            self.progress.step += 1;
            self.trained_samples += samples as u64;
            if settings.naive {
                self.catch_up(session)?;
            }
            self.read_what_is_here(session)?;
            if self.recorder.is_due() {
                self.recorder.busy(session.busy_ms());
                self.look_after_saving()?;
            }
            self.recorder.step(samples, began.elapsed().as_secs_f64());
            let line =
                settings.log_interval > 0 && self.progress.epoch_step.is_multiple_of(settings.log_interval);
            if line || pace.since.elapsed().as_secs_f64() > self.report_s {
                self.steps_line(run, pace, line, session)?;
            }
            if self.interrupted.load(Ordering::Relaxed) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Gives the session the images of this epoch, where they change from one to the next.
    fn change_images(&mut self, run: &PhaseRun, session: &mut dyn Session) -> Result<(), TrainError> {
        let Some(ahead) = &mut self.ahead else {
            return Ok(());
        };
        let changing = Instant::now();
        let epoch = self.progress.epoch;
        for (name, table) in ahead.tables(epoch, epoch + 1 < run.settings.epochs) {
            session.attach(&name, table)?;
        }
        self.recorder.add(Phase::Data, changing.elapsed().as_secs_f64());
        Ok(())
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
        pace: &mut Pace,
        line: bool,
        session: &mut dyn Session,
    ) -> Result<(), TrainError> {
        let (done, of) = (self.progress.epoch_step, run.order.batches_per_epoch());
        let seconds = pace.since.elapsed().as_secs_f64();
        let each = seconds / (self.progress.step - pace.step).max(1) as f64;
        let left = ((run.settings.epochs - self.progress.epoch) * of).saturating_sub(done);
        let device = self.recorder.device();
        let report = Report::Steps {
            phase: run.name.to_owned(),
            epoch: self.progress.epoch + 1,
            epochs: run.settings.epochs,
            step: done,
            of,
            samples_s: run.batch.effective as f64 / each.max(1e-9),
            loss: None,
            busy_ratio: device.busy_ratio,
            peak_ratio: pace
                .peak_flops
                .map(|peak| run.flops(session) / each.max(1e-9) / peak),
            memory_bytes: device.memory_bytes,
            power_w: device.power_w,
            seconds_left: each * left as f64,
            line,
        };
        if seconds > self.report_s {
            (pace.since, pace.step) = (Instant::now(), self.progress.step);
        }
        self.ask_loss(session, Then::Show(Box::new(report)))
    }
}
