//! The end of an epoch: its scores, its line, its checkpoints, and whether it was the last. It waits for the device only where
//! somebody has to know: at the end, and where a score may stop the training. Else it is closed when its numbers are here, while the
//! next epoch is trained; what is to be saved was copied aside at its own moment.

use super::answers::Then;
use super::evaluation::Evaluation;
use super::{PhaseRun, Report, Trainer};
use crate::TrainError;
use crate::checkpoint::{LossSum, Progress};
use crate::metrics::Scores;
use flatout_engine::{Session, Snapshot};
use flatout_record::EventKind;
use std::collections::BTreeMap;
use std::time::Instant;

/// An epoch whose steps have all been sent.
pub(super) struct Closing {
    phase: String,
    epochs: u64,
    samples: u64,
    rate: f64,
    evaluation: Option<Evaluation>,
    /// As it stands behind this epoch.
    progress: Progress,
    /// Evaluations without a better score that end the training; 0 for none.
    patience: u64,
    /// Evaluations without a better score after which the learning rate is reduced.
    plateau: Option<u64>,
    last: bool,
    /// The last checkpoint is due.
    saves: bool,
    /// The state behind this epoch, one copy for each file; `None`: the session still has it.
    copies: Option<Vec<Snapshot>>,
}

impl Closing {
    /// Whether the evaluation is; the losses stand before it.
    pub(super) fn is_ready(&self) -> bool {
        self.evaluation.as_ref().is_none_or(Evaluation::is_ready)
    }

    /// The state behind this epoch.
    fn state(&mut self, session: &mut dyn Session) -> Result<Snapshot, TrainError> {
        match self.copies.as_mut().and_then(Vec::pop) {
            Some(copy) => Ok(copy),
            None => Ok(session.snapshot()?),
        }
    }
}

impl Trainer<'_> {
    /// All steps of an epoch have been sent: asks for its numbers, and closes it now or later.
    pub(super) fn end_epoch(
        &mut self,
        run: &PhaseRun,
        session: &mut dyn Session,
        samples: u64,
    ) -> Result<(), TrainError> {
        let settings = run.settings;
        self.settle()?;
        let epoch = self.progress.epoch + 1;
        let last = epoch == settings.epochs;
        let due = |interval: u64| last || epoch.is_multiple_of(interval);
        self.ask_loss(session, Then::EndEpoch)?;
        // Before the epoch counts as done: where memory runs out here, the session that follows evaluates it.
        let evaluation = match due(settings.eval_interval) {
            true => Some(self.send_evaluation(session, settings, self.data.validation.clone())?),
            false => None,
        };
        self.progress.epoch_step = self.progress.epoch_step.saturating_sub(1);
        let rate = run.next_rate(&self.progress);
        (self.progress.epoch, self.progress.epoch_step) = (epoch, 0);
        let position = session.position();
        let mut closing = Box::new(Closing {
            phase: run.name.to_owned(),
            epochs: settings.epochs,
            samples,
            rate,
            evaluation,
            progress: Progress {
                updates: position.updates,
                micro_batches: position.micro_batches,
                loss: LossSum::default(),
                logged_loss: LossSum::default(),
                ..self.progress.clone()
            },
            patience: settings.early_stopping,
            plateau: (settings.lr_schedule == "plateau").then_some(settings.lr_patience),
            last,
            saves: due(settings.checkpoint_interval) || self.unsaved,
            copies: None,
        });
        let waits = last || settings.naive || settings.early_stopping > 0 || closing.plateau.is_some();
        if waits {
            self.read_all(session)?;
        }
        if self.pending.is_empty() && (waits || closing.is_ready()) {
            return self.close(*closing, session);
        }
        let files = usize::from(closing.evaluation.is_some()) + usize::from(closing.saves);
        let copies = (0..files).map(|_| session.snapshot());
        closing.copies = Some(copies.collect::<Result<_, _>>()?);
        self.leave_open(closing, session)
    }

    /// Everything about the epoch is here, or is waited for.
    pub(super) fn close(
        &mut self,
        mut closing: Closing,
        session: &mut dyn Session,
    ) -> Result<(), TrainError> {
        let evaluation = closing.evaluation.take();
        let ended = self.epoch_ended;
        let scores = match evaluation {
            Some(evaluation) => self.scores(evaluation)?,
            None => None,
        };
        let seen = Instant::now();
        let seconds = ended.saturating_duration_since(self.epoch_began).as_secs_f64();
        self.trained_s += seconds;
        let epoch = closing.progress.epoch;
        if closing.samples > 0 {
            self.recorder.event(EventKind::Epoch {
                number: epoch,
                duration_ms: Some(seconds * 1e3),
            });
        }
        let loss = self.progress.loss.mean().unwrap_or(0.0) * self.data.target().loss_scale();
        (self.progress.loss, self.progress.logged_loss) = <(LossSum, LossSum)>::default();
        self.epoch_line(&Report::Epoch {
            phase: closing.phase.clone(),
            epoch,
            epochs: closing.epochs,
            step: closing.progress.step,
            loss,
            samples_s: closing.samples as f64 / seconds.max(1e-9),
            seconds,
            rate: closing.rate,
            scores,
            targets: match scores {
                Some(_) => self.last_targets.clone(),
                None => BTreeMap::new(),
            },
        });
        self.keep(&mut closing, scores, session)?;
        // The next epoch began on the device when this one had been evaluated, on the host when this one is closed.
        self.epoch_began = if closing.copies.is_some() {
            seen
        } else {
            Instant::now()
        };
        Ok(())
    }

    /// Writes what is to be kept of an epoch, and says whether the training ends with it.
    fn keep(
        &mut self,
        closing: &mut Closing,
        scores: Option<Scores>,
        session: &mut dyn Session,
    ) -> Result<(), TrainError> {
        let (before, select) = (self.progress.best, &self.configuration.settings.select);
        let found = scores.and_then(|scores| select.of(&scores, &self.last_targets));
        let better = found.is_some_and(|found| before.is_none_or(|best| select.is_better(found, best)));
        if better {
            (self.progress.best, self.progress.best_scores) = (found, scores);
            (self.progress.without_gain, self.progress.on_plateau) = (0, 0);
        } else if scores.is_some() {
            self.progress.without_gain += 1;
            self.progress.on_plateau += 1;
        }
        if let Some(patience) = closing.plateau
            && self.progress.on_plateau > patience
        {
            (self.progress.reductions, self.progress.on_plateau) = (self.progress.reductions + 1, 0);
        }
        let Progress {
            best,
            best_scores,
            without_gain,
            reductions,
            on_plateau,
            ..
        } = self.progress;
        closing.progress = Progress {
            best,
            best_scores,
            without_gain,
            reductions,
            on_plateau,
            ..closing.progress.clone()
        };
        if better {
            let state = closing.state(session)?;
            self.begin_saving(state, &closing.progress, "best.safetensors", Some(before))?;
        }
        let goes_on =
            self.configuration.endless && self.progress.phase + 1 == self.configuration.phases.len();
        let lost = closing.patience > 0 && self.progress.without_gain >= closing.patience;
        self.stopping = lost && !goes_on;
        if closing.last || self.stopping {
            self.save(session, "last.safetensors")?;
        } else if closing.saves {
            let state = closing.state(session)?;
            self.begin_saving(state, &closing.progress, "last.safetensors", None)?;
        }
        if self.stopping && !closing.last {
            (self.report)(&Report::Stopped { early: true });
        }
        Ok(())
    }

    /// Tells the epoch to those who watch and to the files.
    fn epoch_line(&mut self, report: &Report) {
        (self.report)(report);
        if let Some(Err(error)) = self.metrics.as_mut().map(|metrics| metrics.epoch(report)) {
            self.warn(&error);
        }
    }
}
