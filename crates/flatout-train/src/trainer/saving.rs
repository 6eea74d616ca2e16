//! What a training keeps: checkpoints, best and last, and the folders of its records.

use super::{Report, Trainer};
use crate::TrainError;
use crate::checkpoint::{self, Extra, Progress};
use crate::metric_files::MetricFiles;
use flatout_core::error::FileError;
use flatout_core::{Explain, Message};
use flatout_engine::{Session, Snapshot};
use flatout_record::{EventKind, Phase};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A checkpoint that is being written beside the training.
pub(super) struct Saving {
    path: PathBuf,
    phase: usize,
    epoch: u64,
    /// The best score before this one, where it is written as the best.
    best: Option<Option<f64>>,
    /// Of a best one: whether it was written, for the last one that names its loss.
    written: Option<Receiver<bool>>,
    /// Gives how long it took.
    thread: JoinHandle<Result<Duration, TrainError>>,
}

impl Saving {
    /// Whoever takes it learns whether this best checkpoint was written, and the best loss before it.
    fn best_to_come(&mut self) -> Option<(Receiver<bool>, Option<f64>)> {
        Some((self.written.take()?, self.best?))
    }
}

impl Trainer<'_> {
    /// Says what went wrong without ending the training.
    pub(super) fn warn(&mut self, error: &FileError) {
        let (what, why) = (error.message(), &error.source);
        let message = Message {
            en: format!(
                "{}: {why}; training continues, and saving is retried after the next epoch",
                what.en
            ),
            zh: format!("{}：{why}；训练继续，下一轮结束后重试", what.zh),
        };
        (self.report)(&Report::Warning { message });
    }

    pub(super) fn finish_metrics(&mut self) {
        if let Some(Err(error)) = self.metrics.as_mut().map(MetricFiles::finish) {
            self.warn(&error);
        }
    }

    /// Saves for good: what cannot be written ends the training.
    pub(super) fn save(&mut self, session: &mut dyn Session, name: &str) -> Result<(), TrainError> {
        self.finish_saving()?;
        let position = session.position();
        (self.progress.updates, self.progress.micro_batches) = (position.updates, position.micro_batches);
        let (state, progress) = (session.snapshot()?, self.progress.clone());
        self.begin_saving(state, &progress, name, None)?;
        self.finish(|_| true, true)
    }

    /// Begins to write a state; the training goes on meanwhile.
    pub(super) fn begin_saving(
        &mut self,
        state: Snapshot,
        progress: &Progress,
        name: &str,
        best: Option<Option<f64>>,
    ) -> Result<(), TrainError> {
        let began = Instant::now();
        let path = self.output(name);
        self.settle()?;
        // What goes on from this checkpoint finds the lines of all epochs before it.
        self.finish_metrics();
        // One at a time into the same file.
        self.finish(|saving| saving.path == path, false)?;
        let (target, mut progress) = (path.clone(), progress.clone());
        let (tell, written) = mpsc::channel();
        // A last checkpoint names the best loss: it is written after the file that has it, or without it.
        let unwritten: Vec<(Receiver<bool>, Option<f64>)> = match best {
            Some(_) => Vec::new(),
            None => self.saving.iter_mut().filter_map(Saving::best_to_come).collect(),
        };
        let (phase, epoch) = (progress.phase, progress.epoch);
        let (configuration, preparation) = (self.configuration.yaml(), self.data.preparation.clone());
        let write = move || {
            for (written, before) in unwritten {
                if written.recv() != Ok(true) {
                    progress.best = before;
                }
            }
            let extra = Extra {
                progress: &progress,
                configuration: &configuration,
                preparation: &preparation,
            };
            checkpoint::write(&target, &state.wait()?, &extra)?;
            let _ = tell.send(true);
            Ok(began.elapsed())
        };
        let thread = std::thread::Builder::new()
            .name("flatout-save".to_owned())
            .spawn(write);
        let thread = thread.map_err(|source| FileError::writing(&path, source))?;
        self.recorder
            .add(Phase::Checkpoint, began.elapsed().as_secs_f64());
        self.saving.push(Saving {
            path,
            phase,
            epoch,
            best,
            written: best.map(|_| written),
            thread,
        });
        Ok(())
    }

    /// Tells of checkpoints that have been written meanwhile.
    pub(super) fn look_after_saving(&mut self) -> Result<(), TrainError> {
        self.finish(|saving| saving.thread.is_finished(), false)
    }

    /// Waits for every checkpoint that is being written.
    pub(super) fn finish_saving(&mut self) -> Result<(), TrainError> {
        self.finish(|_| true, false)
    }

    /// Ends the writing of some. A checkpoint that cannot be written (a full disk) does not end a training that is not at its end:
    /// the file before it is still whole, and it is tried again after the next epoch.
    fn finish(&mut self, which: impl Fn(&Saving) -> bool, last: bool) -> Result<(), TrainError> {
        let waiting = Instant::now();
        let (done, going): (Vec<_>, Vec<_>) = std::mem::take(&mut self.saving).into_iter().partition(which);
        self.saving = going;
        for saving in done {
            let Saving {
                path, best, epoch, ..
            } = saving;
            let took = match saving
                .thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            {
                Ok(took) => took,
                Err(TrainError::File(error)) if !last => {
                    self.unsaved = true;
                    if let Some(before) = best {
                        // The best is the one in the file.
                        self.progress.best = before;
                    }
                    self.warn(&error);
                    continue;
                }
                Err(error) => return Err(error),
            };
            self.has_checkpoint();
            self.unsaved &= best.is_some();
            let bytes = std::fs::metadata(&path).map(|metadata| metadata.len()).ok();
            log::debug!(
                "wrote {} in {:.3} s, {} bytes, after {epoch} epochs",
                path.display(),
                took.as_secs_f64(),
                bytes.unwrap_or(0)
            );
            self.recorder.event(EventKind::Checkpoint {
                duration_ms: took.as_secs_f64() * 1e3,
                bytes,
                place: None,
            });
            let phases = &self.configuration.phases;
            let phase = phases.get(saving.phase).filter(|_| phases.len() > 1);
            (self.report)(&Report::Saved {
                path,
                best: best.is_some(),
                phase: phase.map(|phase| phase.name.clone()),
                epoch,
            });
        }
        self.recorder
            .add(Phase::Checkpoint, waiting.elapsed().as_secs_f64());
        Ok(())
    }
}

pub(super) fn name_of(output: &Path) -> String {
    output
        .file_name()
        .map_or_else(|| "train".to_owned(), |name| name.to_string_lossy().into_owned())
}
