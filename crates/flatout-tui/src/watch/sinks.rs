//! Where ticks are kept: the run record and the CSV log. A full disk costs lines, never the watching.

use super::FeedTick;
use flatout_core::error::FileError;
use flatout_core::{Explain, Language, Message, explained, message};
use flatout_import::log_csv;
use flatout_record::ExitInfo;
use flatout_record::{RecordWriter, RunInfo};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub trait Sink {
    /// More is known of the run.
    fn describe(&mut self, _info: &RunInfo) {}

    fn tick(&mut self, tick: &FeedTick);

    fn finish(&mut self, _t: f64) {}

    /// A short word for the screen: where it goes, what was lost.
    fn remark(&self) -> Option<String> {
        None
    }
}

#[derive(Debug)]
pub enum SinkError {
    /// The folder holds a record already.
    Taken {
        folder: PathBuf,
    },
    Record {
        source: FileError,
    },
    Log {
        source: FileError,
    },
}

impl Explain for SinkError {
    fn message(&self) -> Message {
        match self {
            Self::Taken { folder } => {
                let folder = folder.display();
                message!(en: "`{folder}` already contains a run record", zh: "`{folder}` 中已有运行记录")
            }
            Self::Record { source } | Self::Log { source } => source.message(),
        }
    }

    fn hint(&self) -> Option<Message> {
        Some(match self {
            Self::Taken { .. } => {
                message!(en: "choose a folder that does not exist yet: --record DIR", zh: "请用 --record DIR 指定一个尚不存在的目录")
            }
            Self::Record { .. } => message!(
                en: "choose a writable folder with --record DIR, or skip the record with --no-record",
                zh: "请用 --record DIR 指定可写的目录，或用 --no-record 不写记录"
            ),
            Self::Log { .. } => {
                message!(en: "choose a writable file: --log FILE", zh: "请用 --log FILE 指定可写的文件")
            }
        })
    }

    fn cause(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Taken { .. } => None,
            Self::Record { source } | Self::Log { source } => Some(&source.source),
        }
    }
}
explained!(SinkError);

/// Writes the run record.
pub struct RecordSink {
    writer: RecordWriter,
    language: Language,
}

impl RecordSink {
    pub fn create(folder: &Path, info: RunInfo, language: Language) -> Result<Self, SinkError> {
        if folder.join("run.json").exists() {
            return Err(SinkError::Taken {
                folder: folder.to_owned(),
            });
        }
        let writer = RecordWriter::create(folder, info).map_err(|source| SinkError::Record { source })?;
        Ok(Self { writer, language })
    }

    /// A new one in the runs folder.
    pub fn begin(
        runs: &Path,
        job: Option<&str>,
        info: RunInfo,
        language: Language,
    ) -> Result<Self, SinkError> {
        let name = info.name.clone();
        let begun = RecordWriter::begin(runs, &name, job, info);
        let writer = begun.map_err(|source| SinkError::Record { source })?;
        Ok(Self { writer, language })
    }

    pub fn folder(&self) -> &Path {
        self.writer.folder()
    }
}

impl Sink for RecordSink {
    fn describe(&mut self, info: &RunInfo) {
        let (id, name, kind, command) = (
            self.writer.info().id.clone(),
            self.writer.info().name.clone(),
            self.writer.info().kind.clone(),
            self.writer.info().command.clone(),
        );
        self.writer.update_info(|known| {
            *known = RunInfo {
                id,
                name,
                kind,
                command,
                ..info.clone()
            }
        });
    }

    fn tick(&mut self, tick: &FeedTick) {
        tick.events.iter().for_each(|event| self.writer.event(event));
        self.writer.sample(&tick.sample);
    }

    fn finish(&mut self, t: f64) {
        self.writer.finish(ExitInfo {
            t,
            code: None,
            signal: None,
        });
    }

    fn remark(&self) -> Option<String> {
        let lost = self.writer.lost();
        let lines = lost.lines;
        if lines == 0 {
            return Some(self.writer.folder().display().to_string());
        }
        let reason = &lost.reason;
        let said =
            message!(en: "the record lost {lines} lines: {reason}", zh: "记录丢失 {lines} 行：{reason}");
        Some(said.get(self.language).to_owned())
    }
}

/// Writes our CSV.
pub struct CsvLog {
    path: PathBuf,
    file: File,
    started_unix_ms: u64,
    lost: Option<io::Error>,
}

impl CsvLog {
    pub fn create(path: &Path, info: &RunInfo) -> Result<Self, SinkError> {
        let failed = |source| SinkError::Log {
            source: FileError::writing(path, source),
        };
        let mut file = File::create(path).map_err(failed)?;
        file.write_all(log_csv::header().as_bytes()).map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            file,
            started_unix_ms: info.started_unix_ms,
            lost: None,
        })
    }
}

impl Sink for CsvLog {
    fn tick(&mut self, tick: &FeedTick) {
        let rows = log_csv::rows(self.started_unix_ms, &tick.sample);
        if let Err(error) = self.file.write_all(rows.as_bytes())
            && self.lost.is_none()
        {
            log::warn!("the log {} loses rows: {error}", self.path.display());
            self.lost = Some(error);
        }
    }

    fn remark(&self) -> Option<String> {
        self.lost
            .as_ref()
            .map(|error| format!("{}: {error}", self.path.display()))
    }
}
