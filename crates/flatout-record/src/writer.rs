//! Writing a record as the run goes. A full disk costs lines, never the run: the loss is counted and said.

use super::delta;
use super::lines::LineWriter;
use super::{
    Event, EventKind, ExitInfo, Fact, GpuWindow, Profile, RunInfo, SourceLine, StackTick, StepTick,
    StepTimeline,
};
use crate::Sample;
use flatout_core::error::FileError;
use flatout_core::files::write_private;
use serde::Serialize;
use serde_json::{Map, Value};
use std::fs;
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

/// Removes the temporary files of writers that were killed from the records next to this one: nobody writes there again. The newest
/// ones, by the time in their names, are enough: older ones were looked at when they were new.
fn sweep_others(folder: &Path) {
    const MOST: usize = 100;
    let entries = folder.parent().and_then(|parent| fs::read_dir(parent).ok());
    let mut others: Vec<PathBuf> = entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    others.sort_unstable();
    for other in others.iter().rev().take(MOST).filter(|other| *other != folder) {
        // Every record begins with these files; other folders are not ours.
        if other.join("samples.jsonl").is_file() && other.join("events.jsonl").is_file() {
            flatout_core::files::sweep(other);
        }
    }
}

impl RecordWriter {
    /// Makes the folder and writes `run.json`. A folder that holds a record already is refused by the file system's own word.
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
