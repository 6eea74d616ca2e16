//! What a training keeps: checkpoints, best and last, and the folders of its records.

use super::{Report, Trainer};
use crate::TrainError;
use crate::checkpoint::{self, Extra, Progress};
use flatout_core::error::FileError;
use flatout_core::{Explain, Message, message};
use flatout_engine::{Leaving, Session};
use flatout_telemetry::{EventKind, Phase};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A checkpoint that is being written beside the training.
pub(super) struct Saving {
    path: PathBuf,
    phase: usize,
    epoch: u64,
    /// The best score before this one, where it is written as the best.
    best: Option<Option<f64>>,
    /// Gives how long it took.
    thread: JoinHandle<Result<Duration, TrainError>>,
}

impl Trainer<'_> {
    /// Says what went wrong without ending the training.
    pub(super) fn warn(&mut self, error: &FileError) {
        let (what, why) = (error.message(), &error.source);
        let message = Message {
            en: format!(
                "{}: {why}; training goes on, and it is tried again after the next epoch",
                what.en
            ),
            zh: format!("{}：{why}；训练继续，下一轮结束后重试", what.zh),
        };
        (self.report)(&Report::Warning { message });
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
        state: Leaving,
        progress: &Progress,
        name: &str,
        best: Option<Option<f64>>,
    ) -> Result<(), TrainError> {
        let began = Instant::now();
        let path = self.output(name);
        // What goes on from this checkpoint finds the lines of all epochs before it.
        if let Err(error) = self.metrics.finish() {
            self.warn(&error);
        }
        // One at a time into the same file.
        self.finish(|saving| saving.path == path, false)?;
        let (target, progress) = (path.clone(), progress.clone());
        let (phase, epoch) = (progress.phase, progress.epoch);
        let (configuration, preparation) = (self.configuration.yaml(), self.data.preparation.clone());
        let write = move || {
            let extra = Extra {
                progress: &progress,
                configuration: &configuration,
                preparation: &preparation,
            };
            checkpoint::write(&target, &state.arrive()?, &extra)?;
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
            self.unsaved &= best.is_some();
            let bytes = std::fs::metadata(&path).map(|metadata| metadata.len()).ok();
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

/// What a training leaves in its folder; `batch.json` stays, for the next.
const LEFT: [&str; 7] = [
    "best.safetensors",
    "last.safetensors",
    "config.yaml",
    "metrics.jsonl",
    "metrics.csv",
    "tensorboard",
    "run",
];

/// A training that begins anew where another left its checkpoints: those go to `<output>/before`, in the place of what was there, so that
/// the files of two models never lie side by side. Gives what there is to say.
pub(super) fn put_aside(output: &Path) -> Result<Option<Message>, TrainError> {
    if !LEFT[..2].iter().any(|name| output.join(name).exists()) {
        return Ok(None);
    }
    let before = output.join("before");
    let failed = |source| TrainError::from(FileError::writing(&before, source));
    std::fs::create_dir_all(&before).map_err(failed)?;
    let numbered = (2..)
        .map(|number| format!("run-{number}"))
        .take_while(|name| output.join(name).exists() || before.join(name).exists());
    for name in LEFT.map(str::to_owned).into_iter().chain(numbered) {
        let (from, to) = (output.join(&name), before.join(&name));
        // Anything else there is somebody else's.
        let is_ours = |path: &Path| !name.starts_with("run") || path.join("run.json").exists();
        if to.is_dir() && is_ours(&to) {
            std::fs::remove_dir_all(&to).map_err(failed)?;
        } else if to.is_file() {
            std::fs::remove_file(&to).map_err(failed)?;
        }
        if from.exists() && is_ours(&from) && !to.exists() {
            std::fs::rename(&from, &to).map_err(failed)?;
        }
    }
    let (output, before) = (output.display(), before.display());
    Ok(Some(message!(
        en: "{output} held another training: its files are in {before} now; --resume {before} goes on with it",
        zh: "{output} 中有另一次训练：其文件现在位于 {before}；用 --resume {before} 可以继续它"
    )))
}

/// `<output>/run`, emptied of an earlier run's record: a training that begins anew replaces it.
pub(super) fn fresh_folder(output: &Path) -> Result<PathBuf, TrainError> {
    let run = output.join("run");
    if run.join("run.json").exists() {
        std::fs::remove_dir_all(&run).map_err(|source| FileError::writing(&run, source))?;
    }
    Ok(run)
}

/// A resumed training keeps the earlier records: `run`, `run-2`, `run-3` …
pub(super) fn free_folder(output: &Path) -> PathBuf {
    let numbered = (2..).map(|number| output.join(format!("run-{number}")));
    std::iter::once(output.join("run"))
        .chain(numbered)
        .find(|folder| !folder.join("run.json").exists())
        .unwrap_or_default()
}
