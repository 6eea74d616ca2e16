//! The output folder as a training finds it and makes it its own. Until the first step is trained nothing in it changes: a training that
//! cannot begin (no driver, no memory, another model) leaves an earlier one as it was.

use super::{Report, Trainer};
use crate::TrainError;
use crate::checkpoint;
use crate::folder::{self, FolderLock};
use crate::metric_files::{Earlier, MetricFiles};
use flatout_core::error::FileError;
use flatout_core::files::write_atomically;
use std::path::{Path, PathBuf};

/// The record of a training that has not trained a step yet.
const STARTING: &str = ".run-starting";

pub(super) struct Place {
    /// Held until the training ends.
    lock: FolderLock,
    /// The training continues from the last checkpoint of this folder.
    continues: bool,
    /// Lines of the training that it continues.
    earlier: Earlier,
    resumed_at: Option<u64>,
    /// Whether this training has trained a step, and the folder is its own.
    ours: bool,
    /// An earlier training was put aside, and this one has no checkpoint yet.
    put_aside: bool,
    /// Whether `config.yaml` is that of the current phase.
    settled: bool,
}

impl Place {
    /// `checkpoint`: what the training continues from, and its step.
    pub(super) fn find(lock: FolderLock, checkpoint: Option<(&Path, u64)>) -> Self {
        let output = lock.folder();
        let last = checkpoint::find(output).canonicalize().ok();
        let continues =
            checkpoint.is_some_and(|(path, _)| path.canonicalize().ok() == last && last.is_some());
        let earlier = checkpoint.and_then(|(path, step)| Some(Earlier::read(path.parent()?, step)));
        Self {
            continues,
            earlier: earlier.unwrap_or_default(),
            resumed_at: checkpoint.map(|(_, step)| step),
            lock,
            ours: false,
            put_aside: false,
            settled: false,
        }
    }

    fn output(&self) -> &Path {
        self.lock.folder()
    }

    /// Where the record begins: aside, where something of an earlier training is in the folder.
    pub(super) fn first_record(&self) -> Result<PathBuf, TrainError> {
        let run = self.output().join("run");
        if !run.exists() && !folder::holds_training(self.output()) {
            return Ok(run);
        }
        let starting = self.output().join(STARTING);
        remove(&starting)?;
        Ok(starting)
    }
}

impl Trainer<'_> {
    /// A session was opened anew: its first step writes what is in force.
    pub(super) fn unsettle(&mut self) {
        self.place.settled = false;
    }

    /// Before anything is written for good, and after the first step.
    pub(super) fn settle(&mut self) -> Result<(), TrainError> {
        if self.place.settled {
            return Ok(());
        }
        if !self.place.ours {
            self.take_over()?;
        }
        write_atomically(&self.output("config.yaml"), self.in_force.yaml().as_bytes())?;
        self.place.settled = true;
        Ok(())
    }

    /// Puts an earlier training aside, and the record into its place.
    fn take_over(&mut self) -> Result<(), TrainError> {
        let output = self.place.output().to_owned();
        if !self.place.continues
            && let Some(message) = folder::put_aside(&output)?
        {
            self.place.put_aside = true;
            (self.report)(&Report::Warning { message });
        }
        let run = output.join("run");
        if self.recorder.folder() != run {
            // Of a training that left no checkpoint.
            if !self.place.continues && run.join("run.json").exists() {
                remove(&run)?;
            }
            self.recorder.move_to(&folder::free_record(&output))?;
        }
        let resumed_at = self.place.resumed_at.filter(|_| self.place.continues);
        let earlier = std::mem::take(&mut self.place.earlier);
        self.metrics = Some(MetricFiles::open(&output, earlier, resumed_at)?);
        self.place.ours = true;
        Ok(())
    }

    /// A checkpoint was written: from now on the folder's model is this one.
    pub(super) fn has_checkpoint(&mut self) {
        if std::mem::take(&mut self.place.put_aside) {
            folder::keep_aside(self.place.output());
        }
    }

    /// A training that trained nothing leaves nothing.
    pub(super) fn leave(&mut self) {
        if !self.place.ours {
            let _ = std::fs::remove_dir_all(self.recorder.folder());
        }
    }
}

fn remove(folder: &Path) -> Result<(), TrainError> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(|source| FileError::writing(folder, source))?;
    }
    Ok(())
}
