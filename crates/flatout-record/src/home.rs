//! Where records lie and how a person names one: a path, a run's name or id, or `last`.

use super::{ReadError, Record, RunInfo};
use flatout_core::calendar::date_from_days;
use flatout_core::error::FileError;
use flatout_core::{leftover, shell};
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// `$FLATOUT_HOME/runs`, else `./.flatout/runs`.
pub fn runs_folder() -> PathBuf {
    std::env::var_os("FLATOUT_HOME")
        .map_or_else(|| PathBuf::from(".flatout"), PathBuf::from)
        .join("runs")
}

/// Keeps a `.flatout` folder out of Git: it gets a `.gitignore` that ignores all of it. A folder of another name is the user's own.
pub fn hide_from_git(home: &Path) {
    if home.file_name().is_some_and(|name| name == ".flatout") {
        let file = fs::File::options()
            .write(true)
            .create_new(true)
            .open(home.join(".gitignore"));
        // Without it everything still works.
        let _ = file.and_then(|mut file| file.write_all(b"# Records of flatout runs.\n*\n"));
    }
}

/// A new run's name among all: `<time>-<name>[-job<ID>]`.
pub fn folder_name(name: &str, job: Option<&str>) -> String {
    let safe = |text: &str| -> String {
        text.chars()
            .map(|c| {
                if c.is_alphanumeric() || "._-".contains(c) {
                    c
                } else {
                    '_'
                }
            })
            .take(60)
            .collect()
    };
    let seconds = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let mut base = format!("{}-{}", stamp(seconds), safe(name).trim_start_matches('.'));
    if let Some(job) = job {
        base += &format!("-job{}", safe(job));
    }
    base
}

/// `20261115-031200`, in UTC.
fn stamp(unix_seconds: u64) -> String {
    let (days, rest) = ((unix_seconds / 86_400) as i64, unix_seconds % 86_400);
    let (year, month, day) = date_from_days(days);
    format!(
        "{year:04}{month:02}{day:02}-{:02}{:02}{:02}",
        rest / 3600,
        rest % 3600 / 60,
        rest % 60
    )
}

/// `2026-11-15 03:12:00 UTC`.
pub fn utc(unix_seconds: u64) -> String {
    let stamp = stamp(unix_seconds);
    let digits = |from: usize, count: usize| stamp.get(from..from + count).unwrap_or_default();
    format!(
        "{}-{}-{} {}:{}:{} UTC",
        digits(0, 4),
        digits(4, 2),
        digits(6, 2),
        digits(9, 2),
        digits(11, 2),
        digits(13, 2)
    )
}

/// A record in the runs folder.
#[derive(Clone, Debug)]
pub struct RunEntry {
    pub folder: PathBuf,
    pub info: RunInfo,
}

/// The records of a runs folder, oldest first. What is not a record is passed over.
pub fn list(runs: &Path) -> Vec<RunEntry> {
    let Ok(entries) = fs::read_dir(runs) else {
        return Vec::new();
    };
    let mut all: Vec<RunEntry> = entries
        .flatten()
        // One that is being made has another name until it is whole.
        .filter(|entry| !leftover::is_temporary(&entry.file_name()))
        .filter_map(|entry| {
            let record = Record::open(&entry.path()).ok()?;
            Some(RunEntry {
                folder: entry.path(),
                info: record.info,
            })
        })
        .collect();
    all.sort_by(|a, b| (a.info.started_unix_ms, &a.folder).cmp(&(b.info.started_unix_ms, &b.folder)));
    all
}

/// The newest record of a training, which lies in its output folder: `run`, `run-2`, `run-3` …
fn newest_record(output: &Path) -> Option<PathBuf> {
    let numbered = (2..).map(|number| format!("run-{number}"));
    let names = std::iter::once("run".to_owned()).chain(numbered);
    names
        .map(|name| output.join(name))
        .take_while(|folder| folder.join("run.json").exists())
        .last()
}

/// Puts a training on the list of runs: a link to its record, of which [`super::delete`] takes only the link away. An older link to
/// the same folder goes, since what is there now is another training's record.
pub fn put_on_list(runs: &Path, output: &Path) -> Result<(), FileError> {
    let failed = |source| FileError::writing(runs, source);
    let Some(record) = newest_record(output) else {
        return Ok(());
    };
    let record = fs::canonicalize(record).map_err(failed)?;
    fs::create_dir_all(runs).map_err(failed)?;
    runs.parent().into_iter().for_each(hide_from_git);
    for entry in fs::read_dir(runs).map_err(failed)?.flatten() {
        if fs::read_link(entry.path()).is_ok_and(|target| target == record) {
            fs::remove_file(entry.path()).map_err(failed)?;
        }
    }
    let name = std::path::absolute(output).unwrap_or_else(|_| output.to_owned());
    let name = name.file_name().unwrap_or_default().to_string_lossy();
    let base = folder_name(&name, None);
    for index in 1.. {
        let link = match index {
            1 => runs.join(&base),
            _ => runs.join(format!("{base}-{index}")),
        };
        match std::os::unix::fs::symlink(&record, &link) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            result => return result.map_err(failed),
        }
    }
    Ok(())
}

/// Opens what a person named: a record's folder, `last`, an id, or the newest run of that name.
pub fn find(named: &str) -> Result<Record, ReadError> {
    let path = Path::new(named);
    if path.is_dir() {
        let inner = path.join("run");
        // `flatout train` keeps its record in the output folder.
        if !path.join("run.json").exists() && inner.join("run.json").exists() {
            return Record::open(&inner);
        }
        return Record::open(path);
    }
    let runs = runs_folder();
    let all = list(&runs);
    let matches = |entry: &&RunEntry| named == "last" || entry.info.id == named || entry.info.name == named;
    match all.iter().rev().find(matches) {
        Some(entry) => Record::open(&entry.folder),
        None => Err(ReadError::Unknown {
            name: named.to_owned(),
            looked_in: runs,
        }),
    }
}

/// What [`find`] takes for the record in `folder`, as a word of a command line: `last` if it is the newest, else its id, else the folder.
pub fn argument_for(folder: &Path) -> String {
    argument_among(folder, &runs_folder())
}

fn argument_among(folder: &Path, runs: &Path) -> String {
    let all = list(runs);
    let wanted = fs::canonicalize(folder).ok();
    let found = all
        .iter()
        .rposition(|entry| wanted.is_some() && fs::canonicalize(&entry.folder).ok() == wanted);
    let named = match found {
        Some(index) if index + 1 == all.len() => "last".to_owned(),
        // Two folders with one id are copies: the id would find the newer one.
        Some(index)
            if all[index + 1..]
                .iter()
                .all(|newer| newer.info.id != all[index].info.id) =>
        {
            all[index].info.id.clone()
        }
        _ => folder.display().to_string(),
    };
    shell::word(&named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_civil_dates() {
        assert_eq!(stamp(0), "19700101-000000");
        assert_eq!(stamp(951_782_400), "20000229-000000");
        assert_eq!(stamp(1_794_712_320), "20261115-031200");
        assert_eq!(utc(1_794_712_320), "2026-11-15 03:12:00 UTC");
    }

    #[test]
    fn names_a_record_so_that_the_same_one_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let runs = folder.path().join("runs");
        let write = |folder: &Path, id: &str, started_unix_ms: u64| {
            fs::create_dir_all(folder).unwrap();
            let info = RunInfo {
                schema: crate::SCHEMA,
                id: id.to_owned(),
                started_unix_ms,
                ..RunInfo::default()
            };
            fs::write(folder.join("run.json"), serde_json::to_string(&info).unwrap()).unwrap();
        };
        write(&runs.join("first"), "first", 1);
        write(&runs.join("second"), "second", 2);
        let elsewhere = folder.path().join("my record");
        write(&elsewhere, "first", 3);
        assert_eq!(argument_among(&runs.join("second"), &runs), "last");
        assert_eq!(argument_among(&runs.join("../runs/first"), &runs), "first");
        assert_eq!(
            argument_among(&elsewhere, &runs),
            format!("'{}'", elsewhere.display())
        );
        write(&runs.join("copy-of-first"), "first", 4);
        let first = runs.join("first");
        assert_eq!(argument_among(&first, &runs), first.display().to_string());
    }

    #[test]
    fn trainings_are_on_the_list_once_and_stay_when_they_leave_it() {
        let folder = tempfile::tempdir().unwrap();
        let (runs, output) = (folder.path().join("runs"), folder.path().join("out/stocks"));
        put_on_list(&runs, &output).unwrap();
        assert!(list(&runs).is_empty());
        for record in ["run", "run-2"] {
            fs::create_dir_all(output.join(record)).unwrap();
            let info = RunInfo {
                schema: crate::SCHEMA,
                kind: "train".to_owned(),
                ..RunInfo::default()
            };
            let info = serde_json::to_string(&info).unwrap();
            fs::write(output.join(record).join("run.json"), info).unwrap();
        }
        put_on_list(&runs, &output).unwrap();
        put_on_list(&runs, &output).unwrap();
        let all = list(&runs);
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!(
            fs::read_link(&all[0].folder).unwrap(),
            fs::canonicalize(output.join("run-2")).unwrap()
        );
        crate::delete(&all[0]).unwrap();
        assert!(list(&runs).is_empty() && output.join("run-2/run.json").exists());
        // A training that was deleted is passed over.
        put_on_list(&runs, &output).unwrap();
        fs::remove_dir_all(&output).unwrap();
        assert!(list(&runs).is_empty());
    }
}
