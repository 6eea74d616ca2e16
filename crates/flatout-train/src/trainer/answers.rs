//! What the device was asked for and has not answered yet, in order: losses, and epochs whose end waits for them. Everything is read
//! when it is here, between two steps of the training that goes on meanwhile.

use super::closing::Closing;
use super::{Report, Trainer};
use crate::TrainError;
use crate::checkpoint::LossSum;
use flatout_engine::{Loss, Readback, Session};
use flatout_record::Phase;
use std::time::Instant;

/// Epochs that may wait for their end while the next ones are trained. Each may hold copies of the parameters on the device.
const EPOCHS: usize = 2;

pub(super) enum Pending {
    Loss(Asked),
    Epoch(Box<Closing>),
}

/// A loss on its way.
pub(super) struct Asked {
    loss: Box<dyn Readback<Loss>>,
    /// Where the training stood: epochs done, steps of the run, updates of the session.
    epoch: u64,
    step: u64,
    updates: u64,
    then: Then,
}

/// What is done with a loss beside adding it up.
pub(super) enum Then {
    Nothing,
    /// A line of progress that lacks it.
    Show(Box<Report>),
    /// No step of this epoch is behind it.
    EndEpoch,
}

impl Trainer<'_> {
    /// Asks for the loss since the last time.
    pub(super) fn ask_loss(&mut self, session: &mut dyn Session, then: Then) -> Result<(), TrainError> {
        let asking = Instant::now();
        let loss = session.ask_loss()?;
        self.recorder.add(Phase::Sync, asking.elapsed().as_secs_f64());
        self.pending.push_back(Pending::Loss(Asked {
            loss,
            epoch: self.progress.epoch,
            step: self.progress.step,
            updates: session.position().updates,
            then,
        }));
        self.read_what_is_here(session)
    }

    /// Asks for the loss and waits for everything that was asked for.
    pub(super) fn catch_up(&mut self, session: &mut dyn Session) -> Result<(), TrainError> {
        self.ask_loss(session, Then::Nothing)?;
        self.read_all(session)
    }

    pub(super) fn read_all(&mut self, session: &mut dyn Session) -> Result<(), TrainError> {
        while let Some(pending) = self.pending.pop_front() {
            self.read(pending, session)?;
        }
        Ok(())
    }

    pub(super) fn read_what_is_here(&mut self, session: &mut dyn Session) -> Result<(), TrainError> {
        while self.pending.front().is_some_and(Pending::is_ready) {
            let Some(pending) = self.pending.pop_front() else {
                break;
            };
            self.read(pending, session)?;
        }
        Ok(())
    }

    /// Puts an epoch's end behind what was asked for; waits for the oldest where too many epochs wait.
    pub(super) fn leave_open(
        &mut self,
        closing: Box<Closing>,
        session: &mut dyn Session,
    ) -> Result<(), TrainError> {
        self.pending.push_back(Pending::Epoch(closing));
        let is_epoch = |pending: &&Pending| matches!(pending, Pending::Epoch(_));
        while self.pending.iter().filter(is_epoch).count() > EPOCHS {
            let Some(pending) = self.pending.pop_front() else {
                break;
            };
            self.read(pending, session)?;
        }
        Ok(())
    }

    fn read(&mut self, pending: Pending, session: &mut dyn Session) -> Result<(), TrainError> {
        match pending {
            Pending::Loss(asked) => self.read_loss(asked),
            Pending::Epoch(closing) => self.close(*closing, session),
        }
    }

    /// Adds up a loss; one that is no number ends the run.
    fn read_loss(&mut self, asked: Asked) -> Result<(), TrainError> {
        let waiting = Instant::now();
        let Loss {
            sum,
            rows,
            first_bad_update,
        } = asked.loss.wait()?;
        self.recorder.add(Phase::Sync, waiting.elapsed().as_secs_f64());
        if !sum.is_finite() {
            let steps_ago = first_bad_update.map_or(0, |update| asked.updates.saturating_sub(update));
            let kept = Some(self.output("last.safetensors")).filter(|path| path.exists());
            return Err(TrainError::NotFinite {
                epoch: asked.epoch + 1,
                step: asked.step.saturating_sub(steps_ago),
                after: match first_bad_update {
                    Some(_) => None,
                    None => Some(self.finite_step),
                },
                kept,
            });
        }
        let (now, scale) = (LossSum { sum, samples: rows }, self.data.target().loss_scale());
        let before = std::mem::replace(&mut self.progress.loss, now);
        let mean = now.mean_since(before).map(|mean| mean * scale);
        if let Some(loss) = mean {
            self.finite_step = asked.step;
            self.recorder.loss(loss);
        }
        match asked.then {
            Then::Nothing => {}
            Then::EndEpoch => self.epoch_ended = Instant::now(),
            Then::Show(report) => self.show(*report, mean, asked.step),
        }
        Ok(())
    }

    /// A logged line has the mean since the logged line before it, whatever was read between them; a sign of life has the mean
    /// since the last reading.
    fn show(&mut self, mut report: Report, mean: Option<f64>, at_step: u64) {
        if let Report::Steps { loss, line, .. } = &mut report {
            *loss = mean;
            if *line {
                let before = std::mem::replace(&mut self.progress.logged_loss, self.progress.loss);
                let logged = self.progress.loss.mean_since(before);
                *loss = logged.map(|mean| mean * self.data.target().loss_scale());
                if let (Some(mean), Some(metrics)) = (*loss, &mut self.metrics) {
                    metrics.step_loss(at_step, mean);
                }
            }
        }
        (self.report)(&report);
    }
}

impl Pending {
    fn is_ready(&self) -> bool {
        match self {
            Self::Loss(asked) => asked.loss.is_ready(),
            Self::Epoch(closing) => closing.is_ready(),
        }
    }
}
