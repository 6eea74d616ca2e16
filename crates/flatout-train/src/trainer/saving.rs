//! What a training keeps: checkpoints, best and last, and the folders of its records.

use super::{Report, Trainer};
use crate::TrainError;
use crate::checkpoint::{self, Extra};
use crate::metrics::Scores;
use flatout_core::error::FileError;
use flatout_core::{Explain, Message};
use flatout_engine::Session;
use flatout_telemetry::{EventKind, Phase};
use std::path::{Path, PathBuf};
use std::time::Instant;

impl Trainer<'_> {
    pub(super) fn keep_best(&mut self, session: &mut dyn Session, scores: &Scores) -> Result<(), TrainError> {
        let before = self.progress.best;
        if before.is_some_and(|best| scores.loss >= best) {
            self.progress.without_gain += 1;
            return Ok(());
        }
        self.progress.best = Some(scores.loss);
        self.progress.without_gain = 0;
        if !self.save_or_warn(session, "best.safetensors", true)? {
            // The best is the one in the file.
            self.progress.best = before;
        }
        Ok(())
    }

    /// A checkpoint that cannot be written (a full disk) does not end a training that is not at its end: the file before it is
    /// still whole, and it is tried again after the next epoch. Says whether it was written.
    pub(super) fn save_or_warn(
        &mut self,
        session: &mut dyn Session,
        name: &str,
        best: bool,
    ) -> Result<bool, TrainError> {
        match self.save(session, name, best) {
            Err(TrainError::File(error)) => {
                self.unsaved = true;
                self.warn(&error);
                Ok(false)
            }
            result => result.map(|()| true),
        }
    }

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

    pub(super) fn save(
        &mut self,
        session: &mut dyn Session,
        name: &str,
        best: bool,
    ) -> Result<(), TrainError> {
        let began = Instant::now();
        let position = session.position();
        (self.progress.updates, self.progress.micro_batches) = (position.updates, position.micro_batches);
        let path = self.output(name);
        let extra = Extra {
            progress: &self.progress,
            configuration: &self.configuration.yaml(),
            preparation: &self.data.preparation,
        };
        checkpoint::save(&path, session, &extra)?;
        self.unsaved &= best;
        let seconds = began.elapsed().as_secs_f64();
        self.recorder.add(Phase::Checkpoint, seconds);
        let bytes = std::fs::metadata(&path).map(|metadata| metadata.len()).ok();
        self.recorder.event(EventKind::Checkpoint {
            duration_ms: seconds * 1e3,
            bytes,
            place: None,
        });
        (self.report)(&Report::Saved { path, best });
        Ok(())
    }
}

pub(super) fn name_of(output: &Path) -> String {
    output
        .file_name()
        .map_or_else(|| "train".to_owned(), |name| name.to_string_lossy().into_owned())
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
