//! Writing a record as the run goes. A full disk costs lines, never the run: the loss is counted and said.

use super::delta;
use super::home::{folder_name, hide_from_git};
use super::lines::LineWriter;
use super::{
    Event, EventKind, ExitInfo, Fact, GpuWindow, Profile, RunInfo, SourceLine, StackTick, StepTick,
    StepTimeline,
};
use crate::Sample;
use flatout_core::error::FileError;
use flatout_core::files::{sweep_folders, write_private};
use flatout_core::leftover;
use serde::Serialize;
use serde_json::{Map, Value};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Lines that could not be written so far, and the last reason.
#[derive(Clone, Debug, Default)]
pub struct Lost {
    pub lines: u64,
    pub reason: String,
}

pub struct RecordWriter {
    folder: PathBuf,
    info: RunInfo,
    samples: LineWriter,
    last_sample: Map<String, Value>,
    steps: LineWriter,
    events: LineWriter,
    facts: LineWriter,
    stacks: LineWriter,
    lines: LineWriter,
    windows: LineWriter,
    timeline: LineWriter,
    buffer: Vec<u8>,
    lost: Lost,
    lost_told: u64,
}

/// Removes what writers that were killed left next to this record: folders that did not become records, and temporary files in the
/// records: nobody writes there again. The newest ones, by the time in their names, are enough: older ones were looked at when they were new.
fn sweep_others(folder: &Path) {
    const MOST: usize = 100;
    let entries = folder.parent().and_then(|parent| fs::read_dir(parent).ok());
    let mut others: Vec<PathBuf> = entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    folder.parent().into_iter().for_each(sweep_folders);
    others.sort_unstable();
    for other in others.iter().rev().take(MOST).filter(|other| *other != folder) {
        // Every record begins with these files; other folders are not ours.
        if other.join("samples.jsonl").is_file() && other.join("events.jsonl").is_file() {
            flatout_core::files::sweep(other);
        }
    }
}

/// A folder that no list shows and that is swept when this process is killed.
fn folder_in_making(runs: &Path, base: &str) -> Result<PathBuf, FileError> {
    for index in 0u32.. {
        let folder = runs.join(leftover::name(format!(".{base}-{index}").as_ref()));
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            // Another thread's.
            Err(error) if error.kind() == ErrorKind::AlreadyExists && index < u32::MAX => {}
            Err(source) => return Err(FileError::writing(&folder, source)),
        }
    }
    Err(FileError::writing(runs, ErrorKind::AlreadyExists.into()))
}

/// Whether a folder could not get a name because something has it. An empty folder makes room.
fn is_taken(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty | ErrorKind::NotADirectory
    )
}

impl RecordWriter {
    /// Begins a new run's record in the runs folder, under `<time>-<name>[-job<ID>]` and a number where that is taken. It has that name
    /// only once all its files are there, so a start that is killed leaves nothing that looks like a run. Renaming is claiming: of
    /// several runs that begin at once each gets its own.
    pub fn begin(runs: &Path, name: &str, job: Option<&str>, info: RunInfo) -> Result<Self, FileError> {
        let base = folder_name(name, job);
        fs::create_dir_all(runs).map_err(|source| FileError::writing(runs, source))?;
        runs.parent().into_iter().for_each(hide_from_git);
        let making = folder_in_making(runs, &base)?;
        let info = RunInfo {
            id: base.clone(),
            ..info
        };
        let begun = Self::create(&making, info).and_then(|writer| writer.claimed(runs, &base));
        begun.inspect_err(|_| drop(fs::remove_dir_all(&making)))
    }

    /// The same record under the first name that is free.
    fn claimed(mut self, runs: &Path, base: &str) -> Result<Self, FileError> {
        let mut index = 1u32;
        loop {
            if index > 1 {
                self.info.id = format!("{base}-{index}");
                self.write_info()?;
            }
            let folder = runs.join(&self.info.id);
            match self.move_to(&folder) {
                Ok(()) => return Ok(self),
                Err(error) if is_taken(&error.source) && index < u32::MAX => index += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Makes the folder and writes `run.json`. Lines are added to those of a record that is there.
    pub fn create(folder: &Path, info: RunInfo) -> Result<Self, FileError> {
        fs::create_dir_all(folder).map_err(|source| FileError::writing(folder, source))?;
        sweep_others(folder);
        let lines =
            |name| LineWriter::create(folder, name).map_err(|source| FileError::writing(folder, source));
        let writer = Self {
            folder: folder.to_owned(),
            samples: lines("samples")?,
            last_sample: Map::new(),
            steps: lines("steps")?,
            events: lines("events")?,
            facts: lines("facts")?,
            stacks: lines("stacks")?,
            lines: lines("lines")?,
            windows: lines("windows")?,
            timeline: lines("timeline")?,
            info,
            buffer: Vec::new(),
            lost: Lost::default(),
            lost_told: 0,
        };
        writer.write_info()?;
        Ok(writer)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Renames the folder of the record while it is written; lines go on in the new one.
    pub fn move_to(&mut self, folder: &Path) -> Result<(), FileError> {
        fs::rename(&self.folder, folder).map_err(|source| FileError::writing(folder, source))?;
        folder.clone_into(&mut self.folder);
        for lines in [
            &mut self.samples,
            &mut self.steps,
            &mut self.events,
            &mut self.facts,
            &mut self.stacks,
            &mut self.lines,
            &mut self.windows,
            &mut self.timeline,
        ] {
            lines.moved(folder);
        }
        Ok(())
    }

    pub fn info(&self) -> &RunInfo {
        &self.info
    }

    pub fn lost(&self) -> &Lost {
        &self.lost
    }

    /// Changes `run.json`: a version learnt later, a reason why something is unknown.
    pub fn update_info(&mut self, change: impl FnOnce(&mut RunInfo)) {
        change(&mut self.info);
        if let Err(error) = self.write_info() {
            self.count_loss(&error.source);
        }
    }

    pub fn sample(&mut self, sample: &Sample) {
        let Ok(Value::Object(now)) = serde_json::to_value(sample) else {
            return;
        };
        let mut patch = delta::diff(&self.last_sample, &now);
        // The time stands in every line, changed or not, so that a line can be read alone.
        patch.insert("t".into(), Value::from(sample.t));
        self.buffer.clear();
        if serde_json::to_writer(&mut self.buffer, &patch).is_err() {
            return;
        }
        match self.samples.write(&mut self.buffer) {
            // A part begins with a whole sample, so that it can be read without the ones before it.
            Ok(true) => self.last_sample = Map::new(),
            Ok(false) => self.last_sample = now,
            Err(error) => self.count_loss(&error),
        }
        self.tell_loss(sample.t);
    }

    pub fn steps(&mut self, tick: &StepTick) {
        self.line(tick, |writer| &mut writer.steps);
    }

    pub fn event(&mut self, event: &Event) {
        self.line(event, |writer| &mut writer.events);
    }

    pub fn fact(&mut self, fact: &Fact) {
        self.line(fact, |writer| &mut writer.facts);
    }

    pub fn stacks(&mut self, tick: &StackTick) {
        self.line(tick, |writer| &mut writer.stacks);
    }

    pub fn source_line(&mut self, line: &SourceLine) {
        self.line(line, |writer| &mut writer.lines);
    }

    pub fn window(&mut self, window: &GpuWindow) {
        self.line(window, |writer| &mut writer.windows);
    }

    pub fn timeline(&mut self, timeline: &StepTimeline) {
        self.line(timeline, |writer| &mut writer.timeline);
    }

    pub fn profile(&mut self, profile: &Profile) {
        if let Err(error) = self.write_json("profile.json", profile) {
            self.count_loss(&error.source);
        }
    }

    /// Writes how the run ended. Without it (killed), the record is as good but for the exit code.
    pub fn finish(&mut self, exit: ExitInfo) {
        self.tell_loss(exit.t);
        self.update_info(|info| info.exit = Some(exit));
    }

    fn line(&mut self, value: &impl Serialize, file: fn(&mut Self) -> &mut LineWriter) {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        if serde_json::to_writer(&mut buffer, value).is_ok()
            && let Err(error) = file(self).write(&mut buffer)
        {
            self.count_loss(&error);
        }
        self.buffer = buffer;
    }

    fn count_loss(&mut self, error: &std::io::Error) {
        if self.lost.lines == 0 {
            log::warn!("the record in {} loses lines: {error}", self.folder.display());
        }
        self.lost.lines += 1;
        self.lost.reason = error.to_string();
    }

    /// Once there is room again, the record itself says what is missing.
    fn tell_loss(&mut self, t: f64) {
        let (lines, before) = (self.lost.lines - self.lost_told, self.lost.lines);
        if lines == 0 {
            return;
        }
        let message = self.lost.reason.clone();
        self.event(&Event {
            t,
            kind: EventKind::Lost { lines, message },
        });
        if self.lost.lines == before {
            self.lost_told = before;
        }
    }

    fn write_info(&self) -> Result<(), FileError> {
        self.write_json("run.json", &self.info)
    }

    /// What cannot be serialized leaves the file as it was.
    fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), FileError> {
        let path = self.folder.join(name);
        match serde_json::to_vec_pretty(value) {
            Ok(text) => write_private(&path, &text),
            Err(error) => Err(FileError::writing(path, error.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::list;
    use super::*;

    fn begin(runs: &Path, name: &str, job: Option<&str>) -> PathBuf {
        let writer = RecordWriter::begin(runs, name, job, RunInfo::default()).unwrap();
        writer.folder().to_owned()
    }

    #[test]
    fn names_of_folders_are_safe_and_unique() {
        let runs = tempfile::tempdir().unwrap();
        let first = begin(runs.path(), "../evil name", Some("12"));
        assert!(first.starts_with(runs.path()) && first.parent() == Some(runs.path()) && first.is_dir());
        assert_ne!(begin(runs.path(), "../evil name", Some("12")), first);
    }

    #[test]
    fn a_record_has_its_name_once_it_is_whole() {
        let runs = tempfile::tempdir().unwrap();
        let base = folder_name("train", None);
        // Taken by something that is no record, in this second and the next ones.
        fs::write(runs.path().join(&base), "mine").unwrap();
        let folder = begin(runs.path(), "train", None);
        assert_eq!(fs::read(runs.path().join(&base)).unwrap(), b"mine");
        let known = list(runs.path());
        assert_eq!(known.len(), 1);
        assert_eq!(
            (&known[0].folder, known[0].info.id.as_ref()),
            (&folder, folder.file_name().unwrap().to_str().unwrap())
        );
        let names = fs::read_dir(runs.path()).unwrap().flatten();
        assert!(
            names
                .map(|entry| entry.file_name())
                .all(|name| !leftover::is_temporary(&name))
        );
    }

    #[test]
    fn a_start_that_was_killed_is_no_run_and_is_swept() {
        let runs = tempfile::tempdir().unwrap();
        let of = |process: u32| {
            let own = leftover::name(".20261118-210000-train-0".as_ref());
            let (before, _) = own.to_str().unwrap().rsplit_once('-').unwrap();
            runs.path().join(format!("{before}-{process}"))
        };
        let (dead, living) = (of(u32::MAX), of(std::process::id()));
        RecordWriter::create(&living, RunInfo::default()).unwrap();
        fs::rename(&living, &dead).unwrap();
        RecordWriter::create(&living, RunInfo::default()).unwrap();
        assert!(!dead.exists(), "swept by the next one");
        fs::create_dir(&dead).unwrap();
        assert!(list(runs.path()).is_empty());
        begin(runs.path(), "train", None);
        assert!(!dead.exists() && living.exists());
        assert_eq!(list(runs.path()).len(), 1);
    }

    #[test]
    fn what_cannot_begin_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        let runs = place.path().join("runs");
        fs::write(&runs, "a file").unwrap();
        assert!(RecordWriter::begin(&runs, "train", None, RunInfo::default()).is_err());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_flatout_folder_is_hidden_from_git_once() {
        let place = tempfile::tempdir().unwrap();
        begin(&place.path().join(".flatout/runs"), "train", None);
        let ignore = place.path().join(".flatout/.gitignore");
        assert_eq!(
            fs::read_to_string(&ignore).unwrap(),
            "# Records of flatout runs.\n*\n"
        );
        fs::write(&ignore, "mine").unwrap();
        begin(&place.path().join(".flatout/runs"), "train", None);
        assert_eq!(fs::read_to_string(&ignore).unwrap(), "mine");
        begin(&place.path().join("home/runs"), "train", None);
        assert!(!place.path().join("home/.gitignore").exists());
    }

    #[test]
    fn runs_that_begin_at_once_have_folders_of_their_own() {
        let runs = tempfile::tempdir().unwrap();
        let path = &runs.path().join("not made yet");
        let folders: Vec<PathBuf> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..16)
                .map(|_| scope.spawn(|| begin(path, "train", None)))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let different: std::collections::BTreeSet<&PathBuf> = folders.iter().collect();
        assert_eq!(different.len(), 16);
        assert_eq!(list(path).len(), 16);
    }
}
