//! The runs in the folders that are served: found by looking, remembered by what their files look like, never by a path that a
//! browser sends.

use flatout_core::{Explain, Message, message};
use flatout_record::{Record, RunInfo};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Looked at again after this time, however many browsers ask.
const FRESH: Duration = Duration::from_millis(900);
/// A record without an end in which nothing was written for so long has no writer: it was killed.
const QUIET: Duration = Duration::from_secs(20);
/// Some records are written slowly; so many of their own intervals are waited.
const QUIET_INTERVALS: f64 = 5.0;

/// The headline of a running job is at least this old before it is made again, and takes this share of a core.
const HEADLINE_AGE: Duration = Duration::from_secs(10);
const SHARE: f64 = 0.001;

/// How a run is named in addresses: 16 hexadecimal digits of its folder's hash.
pub type Key = String;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Running,
    Done,
    Failed,
    /// Neither an end nor a writer.
    Stopped,
    /// `run.json` cannot be read.
    Unreadable,
}

impl State {
    pub fn class(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Unreadable => "unreadable",
        }
    }
}

/// One run as the list shows it.
#[derive(Clone, Debug)]
pub struct Row {
    pub key: Key,
    pub folder: PathBuf,
    pub info: RunInfo,
    pub state: State,
    /// How far the record goes, in seconds.
    pub length_s: Option<f64>,
    /// Why it cannot be read.
    pub problem: Option<Message>,
    pub headline: Option<Headline>,
    /// When the headline was made, and how long that took; `None` also when the run changed its description since.
    made: Option<(Instant, Duration)>,
    /// Grows whenever something of the row changes.
    pub version: u64,
    seen: Stamp,
}

impl Row {
    /// Whether the headline is missing or old. That of a running job is made again, for a small share of a core.
    pub fn wants_headline(&self) -> bool {
        match (self.state, self.made) {
            (State::Unreadable, _) => false,
            (_, None) => true,
            (State::Running, Some((made, cost))) => made.elapsed() >= cost.div_f64(SHARE).max(HEADLINE_AGE),
            (_, Some(_)) => false,
        }
    }
}

/// What a digest adds to the row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Headline {
    pub gpu_busy: Option<f64>,
    pub rate: Option<Message>,
    pub finding: Option<(&'static str, Message)>,
}

/// What tells that a file changed.
type Stamp = (u64, u64, i128);

fn stamp(metadata: &Metadata) -> Stamp {
    let modified = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
    (metadata.ino(), metadata.len(), modified)
}

#[derive(Debug)]
pub struct Index {
    roots: Vec<PathBuf>,
    rows: BTreeMap<Key, Row>,
    looked: Option<Instant>,
    version: u64,
    /// Runs that are no longer there, with the version at which they went.
    gone: Vec<(Key, u64)>,
}

impl Index {
    pub fn new(roots: Vec<PathBuf>) -> Self {
        Self {
            roots,
            rows: BTreeMap::new(),
            looked: None,
            version: 0,
            gone: Vec::new(),
        }
    }

    pub fn version(&self) -> u64 {
        self.version
    }

    /// Newest first.
    pub fn rows(&self) -> Vec<&Row> {
        let mut rows: Vec<&Row> = self.rows.values().collect();
        rows.sort_by(|a, b| (b.info.started_unix_ms, &b.folder).cmp(&(a.info.started_unix_ms, &a.folder)));
        rows
    }

    pub fn row(&self, key: &str) -> Option<&Row> {
        self.rows.get(key)
    }

    pub fn gone_since(&self, version: u64) -> impl Iterator<Item = &str> {
        let gone = self.gone.iter().filter(move |(_, at)| *at > version);
        gone.map(|(key, _)| key.as_str())
    }

    pub fn set_headline(&mut self, key: &str, headline: Headline, cost: Duration) {
        let Some(row) = self.rows.get_mut(key) else {
            return;
        };
        row.made = Some((Instant::now(), cost));
        if row.headline.as_ref() != Some(&headline) {
            self.version += 1;
            row.version = self.version;
            row.headline = Some(headline);
        }
    }

    /// Looks at the folders again, unless that was done just now.
    pub fn refresh(&mut self) {
        if self.looked.is_some_and(|looked| looked.elapsed() < FRESH) {
            return;
        }
        let now = SystemTime::now();
        let mut found = BTreeMap::new();
        for root in self.roots.clone() {
            for folder in candidates(&root) {
                if let Some((key, row)) = self.look(&folder, now) {
                    found.insert(key, row);
                }
            }
        }
        let lost: Vec<Key> = self
            .rows
            .keys()
            .filter(|key| !found.contains_key(*key))
            .cloned()
            .collect();
        if !lost.is_empty() {
            self.version += 1;
            self.gone.extend(lost.into_iter().map(|key| (key, self.version)));
        }
        self.gone.retain(|(key, _)| !found.contains_key(key));
        self.rows = found;
        self.looked = Some(Instant::now());
    }

    /// `None` for a folder that is not a record.
    fn look(&mut self, folder: &Path, now: SystemTime) -> Option<(Key, Row)> {
        let seen = stamp(&fs::metadata(folder.join("run.json")).ok()?);
        let key = key(folder);
        let mut row = match self.rows.get(&key) {
            Some(row) if row.seen == seen => row.clone(),
            known => {
                let mut row = read(folder, &key, seen);
                row.headline = known.and_then(|row| row.headline.clone());
                row
            }
        };
        let (state, length_s) = state(&row, now);
        let changed = row.version == 0 || row.state != state || row.length_s != length_s;
        if changed {
            self.version += 1;
            row.version = self.version;
            row.state = state;
            row.length_s = length_s;
        }
        Some((key, row))
    }
}

/// The folders below a root that may be records: its children, what `flatout train` keeps inside of its output folder, the runs of
/// a project, and the root itself.
fn candidates(root: &Path) -> Vec<PathBuf> {
    let mut found = vec![root.to_owned(), root.join("run")];
    for folder in [
        root.to_owned(),
        root.join(".flatout").join("runs"),
        root.join("runs"),
    ] {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_file())) {
            let path = entry.path();
            found.push(if path.join("run.json").exists() {
                path
            } else {
                path.join("run")
            });
        }
    }
    found
}

fn key(folder: &Path) -> Key {
    let hash = Sha256::digest(folder.as_os_str().as_bytes());
    hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn read(folder: &Path, key: &str, seen: Stamp) -> Row {
    let (info, problem) = match Record::open(folder) {
        Ok(record) => (record.info, None),
        Err(error) => {
            let cause = error
                .cause()
                .map(|cause| format!(": {cause}"))
                .unwrap_or_default();
            let told = error.message();
            let problem = Message {
                en: told.en + &cause,
                zh: told.zh + &cause,
            };
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            let info = RunInfo {
                id: name.clone().into_owned(),
                name: name.into_owned(),
                ..RunInfo::default()
            };
            (info, Some(problem))
        }
    };
    Row {
        key: key.to_owned(),
        folder: folder.to_owned(),
        info,
        state: State::Unreadable,
        length_s: None,
        problem,
        headline: None,
        made: None,
        version: 0,
        seen,
    }
}

fn state(row: &Row, now: SystemTime) -> (State, Option<f64>) {
    if row.problem.is_some() {
        return (State::Unreadable, None);
    }
    let info = &row.info;
    if let Some(exit) = info.exit {
        let length = Some(exit.t).filter(|t| t.is_finite() && *t >= 0.0);
        let state = match exit.failure() {
            Some(_) => State::Failed,
            None => State::Done,
        };
        return (state, length);
    }
    // A log of another tool does not tell how the program ended.
    if info.kind == "import" {
        return (State::Done, None);
    }
    let files = ["samples.jsonl", "steps.jsonl", "events.jsonl", "run.json"];
    let times = files
        .iter()
        .filter_map(|name| fs::metadata(row.folder.join(name)).ok()?.modified().ok());
    let Some(written) = times.max() else {
        return (State::Stopped, None);
    };
    let started = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(info.started_unix_ms));
    let length = started.and_then(|started| written.duration_since(started).ok());
    // In whole seconds: a row that changes with every look would be sent with every look.
    let length = length.map(|length| length.as_secs() as f64);
    let interval = info
        .interval_s
        .filter(|seconds| (0.0..3600.0).contains(seconds))
        .unwrap_or(1.0);
    let patience = QUIET.max(Duration::from_secs_f64(interval * QUIET_INTERVALS));
    // A clock of another machine may be ahead of ours.
    let quiet = now.duration_since(written).unwrap_or_default();
    if quiet < patience {
        (State::Running, length)
    } else {
        (State::Stopped, length)
    }
}

/// What is said of a state beside its name.
pub fn state_name(row: &Row) -> Message {
    match row.state {
        State::Running => message!(en: "running", zh: "运行中"),
        State::Done => message!(en: "done", zh: "完成"),
        State::Failed => row
            .info
            .exit
            .and_then(|exit| exit.failure())
            .unwrap_or_else(|| message!(en: "failed", zh: "失败")),
        State::Stopped => message!(en: "killed", zh: "被终止"),
        State::Unreadable => message!(en: "unreadable", zh: "无法读取"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(folder: &Path, more: &str) {
        fs::create_dir_all(folder).unwrap();
        let text = format!(
            "{{\"schema\":1,\"id\":\"i\",\"name\":\"n\",\"kind\":\"run\",\"started_unix_ms\":1{more}}}"
        );
        fs::write(folder.join("run.json"), text).unwrap();
    }

    fn look_again(index: &mut Index) {
        index.looked = None;
        index.refresh();
    }

    #[test]
    fn finds_records_of_every_kind_of_folder() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path();
        record(&path.join("a"), ",\"exit\":{\"t\":3,\"code\":0}");
        record(&path.join("out/run"), ",\"exit\":{\"t\":3,\"code\":1}");
        record(&path.join(".flatout/runs/b"), "");
        fs::create_dir(path.join("not a record")).unwrap();
        fs::write(path.join("file"), "x").unwrap();
        fs::create_dir(path.join("torn")).unwrap();
        fs::write(path.join("torn/run.json"), "{\"schema\":1,").unwrap();
        let mut index = Index::new(vec![path.to_owned()]);
        index.refresh();
        let mut states: Vec<State> = index.rows().iter().map(|row| row.state).collect();
        states.sort_by_key(|state| state.class());
        assert_eq!(
            states,
            [State::Done, State::Failed, State::Running, State::Unreadable]
        );
    }

    #[test]
    fn versions_grow_with_changes_only() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a");
        record(&folder, "");
        let mut index = Index::new(vec![root.path().to_owned()]);
        index.refresh();
        let first = index.version();
        look_again(&mut index);
        assert_eq!(index.version(), first);
        record(&folder, ",\"exit\":{\"t\":3,\"code\":0}");
        look_again(&mut index);
        assert!(index.version() > first);
        assert_eq!(index.rows()[0].state, State::Done);
        let second = index.version();
        fs::remove_dir_all(&folder).unwrap();
        look_again(&mut index);
        assert_eq!(index.gone_since(second).count(), 1);
        assert!(index.rows().is_empty());
    }

    #[test]
    fn a_record_without_a_writer_is_not_running() {
        let root = tempfile::tempdir().unwrap();
        record(&root.path().join("a"), "");
        let index = Index::new(vec![root.path().to_owned()]);
        let row = read(&root.path().join("a"), "k", (0, 0, 0));
        let now = SystemTime::now();
        assert_eq!(state(&row, now).0, State::Running);
        assert_eq!(state(&row, now + Duration::from_secs(60)).0, State::Stopped);
        assert_eq!(state(&row, now - Duration::from_secs(3600)).0, State::Running);
        assert!(index.rows().is_empty());
    }

    #[test]
    fn hostile_folders_are_rows_or_nothing() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path();
        for (name, text) in [("number", "1e999"), ("huge", "{\"schema\":99}"), ("empty", "")] {
            fs::create_dir(path.join(name)).unwrap();
            fs::write(path.join(name).join("run.json"), text).unwrap();
        }
        fs::create_dir(path.join("pipe")).unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(path.join("pipe/run.json"))
            .status();
        assert!(made.unwrap().success());
        fs::create_dir_all(path.join("folder/run.json")).unwrap();
        std::os::unix::fs::symlink(path, path.join("loop")).unwrap();
        record(&path.join("time"), ",\"exit\":{\"t\":-1e300,\"code\":0}");
        let mut index = Index::new(vec![path.to_owned()]);
        index.refresh();
        let rows = index.rows();
        assert_eq!(
            rows.iter().filter(|row| row.state == State::Unreadable).count(),
            5
        );
        assert_eq!(rows.iter().filter(|row| row.state == State::Done).count(), 1);
    }
}
