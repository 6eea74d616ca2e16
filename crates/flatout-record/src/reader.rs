//! Reading a record back, also one whose writer was killed, is still writing, or was of another version.

use super::lines::Lines;
use super::{
    Event, Fact, GpuWindow, Profile, RunInfo, SCHEMA, SourceLine, StackTick, StepTick, StepTimeline, delta,
};
use crate::Sample;
use flatout_core::{Explain, Message, explained, message};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::fs;
use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub enum ReadError {
    /// No `run.json`: not a record, or not there.
    NotARecord {
        folder: PathBuf,
    },
    Unreadable {
        path: PathBuf,
        source: io::Error,
    },
    /// `run.json` is not what a flatout wrote.
    Broken {
        path: PathBuf,
        source: serde_json::Error,
    },
    Newer {
        folder: PathBuf,
        schema: u32,
    },
    /// No record of that name, or none at all.
    Unknown {
        name: String,
        looked_in: PathBuf,
    },
}

impl Explain for ReadError {
    fn message(&self) -> Message {
        match self {
            Self::NotARecord { folder } => {
                let folder = folder.display();
                message!(en: "`{folder}` is not a run record: it has no run.json", zh: "`{folder}` 不是运行记录：缺少 run.json")
            }
            Self::Unreadable { path, .. } => {
                let path = path.display();
                message!(en: "failed to read `{path}`", zh: "无法读取 `{path}`")
            }
            Self::Broken { path, .. } => {
                let path = path.display();
                message!(en: "`{path}` is not a valid run description", zh: "`{path}` 不是有效的运行描述")
            }
            Self::Newer { folder, schema } => {
                let folder = folder.display();
                message!(
                    en: "`{folder}` was written by a newer flatout (format {schema}; this version reads up \
                    to {SCHEMA})",
                    zh: "`{folder}` 由更新版本的 flatout 写入（格式 {schema}；当前版本最多支持 {SCHEMA}）"
                )
            }
            Self::Unknown { name, looked_in } => {
                let looked_in = looked_in.display();
                message!(en: "no run `{name}` in `{looked_in}`", zh: "`{looked_in}` 中没有名为 `{name}` 的运行记录")
            }
        }
    }

    fn hint(&self) -> Option<Message> {
        Some(match self {
            Self::Newer { .. } => message!(en: "update flatout", zh: "请升级 flatout"),
            Self::Unreadable { .. } => {
                message!(en: "check that the file exists and that you have permission to read it", zh: "请确认文件存在且有读取权限")
            }
            _ => {
                message!(en: "list the available runs with: flatout runs", zh: "用 flatout runs 列出已有的记录")
            }
        })
    }

    fn cause(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreadable { source, .. } => Some(source),
            Self::Broken { source, .. } => Some(source),
            _ => None,
        }
    }
}
explained!(ReadError);

/// A line that was passed over, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// `samples.jsonl:812`.
    pub place: String,
    /// The last line of a killed writer; nothing to worry about.
    pub torn: bool,
    pub reason: String,
}

/// All that is read of `run.json` before its version is known.
#[derive(serde::Deserialize)]
struct Version {
    schema: u32,
}

/// An open record. Its files are read when asked for, line by line.
#[derive(Clone, Debug)]
pub struct Record {
    folder: PathBuf,
    pub info: RunInfo,
}

impl Record {
    pub fn open(folder: &Path) -> Result<Self, ReadError> {
        let path = folder.join("run.json");
        let text = match read_small(&path) {
            Ok(text) => text,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                return Err(ReadError::NotARecord {
                    folder: folder.to_owned(),
                });
            }
            Err(source) => return Err(ReadError::Unreadable { path, source }),
        };
        // Asked first: of a later format nothing but its number can be counted on.
        if let Ok(Version { schema }) = serde_json::from_slice(&text)
            && schema > SCHEMA
        {
            return Err(ReadError::Newer {
                folder: folder.to_owned(),
                schema,
            });
        }
        let info: RunInfo =
            serde_json::from_slice(&text).map_err(|source| ReadError::Broken { path, source })?;
        Ok(Self {
            folder: folder.to_owned(),
            info,
        })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn samples(&self) -> Items<Sample> {
        Items::open(&self.folder, "samples", Some(Value::Object(Map::new())))
    }

    pub fn steps(&self) -> Items<StepTick> {
        Items::open(&self.folder, "steps", None)
    }

    pub fn events(&self) -> Items<Event> {
        Items::open(&self.folder, "events", None)
    }

    pub fn facts(&self) -> Items<Fact> {
        Items::open(&self.folder, "facts", None)
    }

    pub fn stacks(&self) -> Items<StackTick> {
        Items::open(&self.folder, "stacks", None)
    }

    pub fn lines(&self) -> Items<SourceLine> {
        Items::open(&self.folder, "lines", None)
    }

    pub fn windows(&self) -> Items<GpuWindow> {
        Items::open(&self.folder, "windows", None)
    }

    pub fn timelines(&self) -> Items<StepTimeline> {
        Items::open(&self.folder, "timeline", None)
    }

    /// The folders of single ranks, by rank; empty for a run with one.
    pub fn ranks(&self) -> Vec<(u32, PathBuf)> {
        let Ok(entries) = fs::read_dir(self.folder.join("ranks")) else {
            return Vec::new();
        };
        let mut ranks: Vec<(u32, PathBuf)> = entries
            .flatten()
            .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
            .collect();
        ranks.sort();
        ranks
    }

    /// Everything at once, for rules.
    pub fn load(&self) -> RunData {
        RunData {
            ranks: self.load_ranks(),
            ..self.load_alone()
        }
    }

    /// The same without the other ranks.
    fn load_alone(&self) -> RunData {
        let mut skipped = Vec::new();
        RunData {
            info: self.info.clone(),
            samples: collect(self.samples(), &mut skipped),
            steps: collect(self.steps(), &mut skipped),
            events: collect(self.events(), &mut skipped),
            facts: collect(self.facts(), &mut skipped),
            stacks: collect(self.stacks(), &mut skipped),
            lines: collect(self.lines(), &mut skipped),
            windows: collect(self.windows(), &mut skipped),
            timelines: collect(self.timelines(), &mut skipped),
            profile: self.profile(),
            ranks: Vec::new(),
            skipped,
        }
    }

    /// The other ranks' own files; a folder that is no record is left out.
    pub fn load_ranks(&self) -> Vec<(u32, RunData)> {
        let ranks = self.ranks().into_iter();
        ranks
            .filter_map(|(rank, folder)| Some((rank, Record::open(&folder).ok()?.load_alone())))
            .collect()
    }

    /// What the profiler showed; `None` where it was not asked for, or the file cannot be read.
    pub fn profile(&self) -> Option<Profile> {
        let text = read_small(&self.folder.join("profile.json")).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

/// More than this is not a description that flatout wrote.
const MOST_BYTES: u64 = 64 << 20;

/// A regular file of a bounded size: a record may come from somebody else, and a named pipe in it would never end.
fn read_small(path: &Path) -> io::Result<Vec<u8>> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not a regular file"));
    }
    if metadata.len() > MOST_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "larger than 64 MiB"));
    }
    fs::read(path)
}

fn collect<T: DeserializeOwned>(mut items: Items<T>, skipped: &mut Vec<Skipped>) -> Vec<T> {
    let all = items.by_ref().collect();
    skipped.append(&mut items.skipped);
    all
}

/// A whole record in memory.
#[derive(Clone, Debug, Default)]
pub struct RunData {
    pub info: RunInfo,
    pub samples: Vec<Sample>,
    pub steps: Vec<StepTick>,
    pub events: Vec<Event>,
    pub facts: Vec<Fact>,
    pub stacks: Vec<StackTick>,
    pub lines: Vec<SourceLine>,
    pub windows: Vec<GpuWindow>,
    pub timelines: Vec<StepTimeline>,
    pub profile: Option<Profile>,
    /// The other ranks of the run, each with the steps, events, facts and stacks of its own process. Samples and source lines are
    /// in the run's own files.
    pub ranks: Vec<(u32, RunData)>,
    pub skipped: Vec<Skipped>,
}

/// The lines of one file, as values. What cannot be read is passed over and kept in `skipped`.
pub struct Items<T> {
    lines: Lines,
    /// Samples are patches on this; other files stand line by line.
    patched: Option<Value>,
    part: String,
    pub skipped: Vec<Skipped>,
    value: PhantomData<T>,
}

/// More than this many are counted in the last entry only: a foreign file must not fill the memory.
const SKIPPED_KEPT: usize = 100;

impl<T: DeserializeOwned> Items<T> {
    fn open(folder: &Path, name: &str, patched: Option<Value>) -> Self {
        Self {
            lines: Lines::open(folder, name),
            patched,
            part: String::new(),
            skipped: Vec::new(),
            value: PhantomData,
        }
    }
}

impl<T: DeserializeOwned> Iterator for Items<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        loop {
            let line = match self.lines.next() {
                Ok(line) => line?,
                Err(error) => {
                    self.skipped.push(Skipped {
                        place: self.part.clone(),
                        torn: false,
                        reason: error.to_string(),
                    });
                    return None;
                }
            };
            let value = match self.patched.as_mut() {
                None => serde_json::from_slice(line.text),
                Some(state) => {
                    if self.part != line.part {
                        *state = Value::Object(Map::new());
                    }
                    serde_json::from_slice(line.text).and_then(|patch| {
                        if let Value::Object(state) = state {
                            delta::apply(state, patch);
                        }
                        // From a reference: a copy of the state for every line would cost more than the rest.
                        T::deserialize(&*state)
                    })
                }
            };
            if self.part != line.part {
                self.part = line.part.to_owned();
            }
            match value {
                Ok(value) => return Some(value),
                Err(error) if self.skipped.len() < SKIPPED_KEPT => self.skipped.push(Skipped {
                    place: format!("{}:{}", line.part, line.number),
                    torn: line.torn,
                    reason: error.to_string(),
                }),
                Err(_) => {}
            }
        }
    }
}
