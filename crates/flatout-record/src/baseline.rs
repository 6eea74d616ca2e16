//! Baselines: copies of records under a name that stays, for CI to compare with. `$FLATOUT_HOME/baselines/NAME` is a record like any
//! other, so it can be cached, sent, or committed.

use super::{Record, RunEntry, list, runs_folder};
use flatout_core::error::FileError;
use flatout_core::files::private;
use flatout_core::{Explain, Message, explained, message};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

const LONGEST_NAME: usize = 60;
/// Pages and traces made of a record can be made again.
const NOT_COPIED: [&str; 2] = ["report.html", "trace.json"];
/// `ranks/N/` is the deepest that a record has.
const DEEPEST: usize = 3;

#[derive(Debug)]
pub enum BaselineError {
    Name { name: String },
    Exists { name: String },
    Unknown { name: String, known: Vec<String> },
    File(FileError),
}

impl Explain for BaselineError {
    fn message(&self) -> Message {
        match self {
            Self::Name { name } => {
                message!(en: "`{name}` is not a valid baseline name", zh: "`{name}` 不能作为基线的名字")
            }
            Self::Exists { name } => {
                message!(en: "baseline `{name}` already exists", zh: "基线 `{name}` 已存在")
            }
            Self::Unknown { name, .. } => {
                message!(en: "there is no baseline `{name}`", zh: "没有基线 `{name}`")
            }
            Self::File(error) => error.message(),
        }
    }

    fn hint(&self) -> Option<Message> {
        match self {
            Self::Name { .. } => Some(message!(
                en: "use letters, digits, `.`, `_` and `-`, at most {LONGEST_NAME} characters, not starting \
                with a dot",
                zh: "请使用字母、数字、`.`、`_` 和 `-`，最多 {LONGEST_NAME} 个，且不以点开头"
            )),
            Self::Exists { .. } => {
                Some(message!(en: "--replace replaces it with this run", zh: "加 --replace 以替换它"))
            }
            Self::Unknown { known, .. } if known.is_empty() => Some(
                message!(en: "save one with: flatout baseline save NAME", zh: "用 flatout baseline save NAME 保存一个"),
            ),
            Self::Unknown { known, .. } => {
                let known = known.join(", ");
                Some(message!(en: "available baselines: {known}", zh: "已有：{known}"))
            }
            Self::File(error) => error.hint(),
        }
    }

    fn cause(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File(error) => Explain::cause(error),
            _ => None,
        }
    }
}
explained!(BaselineError);

/// `$FLATOUT_HOME/baselines`, else `./.flatout/baselines`.
pub fn baselines_folder() -> PathBuf {
    let runs = runs_folder();
    runs.parent().unwrap_or(&runs).join("baselines")
}

/// The baselines, by name.
pub fn baselines(folder: &Path) -> Vec<(String, RunEntry)> {
    let named = |entry: RunEntry| {
        let name = entry.folder.file_name()?.to_str()?.to_owned();
        check(&name).is_ok().then_some((name, entry))
    };
    let mut all: Vec<(String, RunEntry)> = list(folder).into_iter().filter_map(named).collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

/// The record of a baseline.
pub fn find_baseline(folder: &Path, name: &str) -> Result<Record, BaselineError> {
    check(name)?;
    Record::open(&folder.join(name)).map_err(|_| BaselineError::Unknown {
        name: name.to_owned(),
        known: baselines(folder).into_iter().map(|(name, _)| name).collect(),
    })
}

/// Copies a record to a baseline. A copy that fails leaves what was there; `replace` allows that something was.
pub fn save_baseline(
    folder: &Path,
    name: &str,
    record: &Record,
    replace: bool,
) -> Result<PathBuf, BaselineError> {
    check(name)?;
    let target = folder.join(name);
    let there = fs::symlink_metadata(&target).is_ok();
    if there && !replace {
        return Err(BaselineError::Exists {
            name: name.to_owned(),
        });
    }
    let writing = |source| BaselineError::File(FileError::writing(&target, source));
    fs::create_dir_all(folder).map_err(writing)?;
    let own = std::process::id();
    let (fresh, old) = (
        folder.join(format!(".new-{own}-{name}")),
        folder.join(format!(".old-{own}-{name}")),
    );
    let _ = fs::remove_dir_all(&fresh);
    let swapped = copy(record.folder(), &fresh, 0).and_then(|()| {
        if there {
            fs::rename(&target, &old)?;
        }
        fs::rename(&fresh, &target)
    });
    if let Err(error) = swapped {
        let _ = fs::remove_dir_all(&fresh);
        if !target.exists() && old.exists() {
            let _ = fs::rename(&old, &target);
        }
        return Err(writing(error));
    }
    let _ = remove(&old);
    Ok(target)
}

pub fn delete_baseline(folder: &Path, name: &str) -> Result<(), BaselineError> {
    let record = find_baseline(folder, name)?;
    remove(record.folder())
        .map_err(|source| BaselineError::File(FileError::deleting(record.folder(), source)))
}

/// A link is taken away, what it points to stays.
fn remove(folder: &Path) -> io::Result<()> {
    match fs::symlink_metadata(folder) {
        Ok(found) if found.is_symlink() => fs::remove_file(folder),
        Ok(_) => fs::remove_dir_all(folder),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Plain files only: a record may come from elsewhere, with links to anything.
fn copy(from: &Path, to: &Path, depth: usize) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, name) = (entry.file_type()?, entry.file_name());
        let target = to.join(&name);
        if kind.is_dir() && depth < DEEPEST {
            copy(&entry.path(), &target, depth + 1)?;
        } else if kind.is_file() && !NOT_COPIED.iter().any(|other| name == *other) {
            let mut source = fs::File::open(entry.path())?;
            io::copy(&mut source, &mut private().create_new(true).open(&target)?)?;
        }
    }
    Ok(())
}

fn check(name: &str) -> Result<(), BaselineError> {
    let plain = |c: char| c.is_alphanumeric() || "._-".contains(c);
    let fits = (1..=LONGEST_NAME).contains(&name.chars().count());
    if fits && name.chars().all(plain) && !name.starts_with(['.', '-']) {
        return Ok(());
    }
    Err(BaselineError::Name {
        name: name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunInfo;

    fn record(folder: &Path, name: &str) -> Record {
        let info = RunInfo {
            schema: 1,
            id: name.into(),
            name: name.into(),
            ..RunInfo::default()
        };
        let path = folder.join(name);
        fs::create_dir_all(path.join("ranks/0")).unwrap();
        fs::write(path.join("run.json"), serde_json::to_string(&info).unwrap()).unwrap();
        fs::write(path.join("ranks/0/steps.jsonl"), "{}\n").unwrap();
        fs::write(path.join("report.html"), "page").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", path.join("linked")).unwrap();
        Record::open(&path).unwrap()
    }

    #[test]
    fn saves_replaces_and_deletes_baselines() {
        let folder = tempfile::tempdir().unwrap();
        let baselines_at = folder.path().join("baselines");
        let (first, second) = (record(folder.path(), "first"), record(folder.path(), "second"));
        let saved = save_baseline(&baselines_at, "main", &first, false).unwrap();
        assert!(saved.join("ranks/0/steps.jsonl").is_file());
        assert!(!saved.join("linked").exists() && !saved.join("report.html").exists());
        let again = save_baseline(&baselines_at, "main", &second, false);
        assert!(matches!(again, Err(BaselineError::Exists { .. })));
        assert_eq!(find_baseline(&baselines_at, "main").unwrap().info.id, "first");
        save_baseline(&baselines_at, "main", &second, true).unwrap();
        assert_eq!(find_baseline(&baselines_at, "main").unwrap().info.id, "second");
        let names: Vec<String> = baselines(&baselines_at)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["main"]);
        assert_eq!(fs::read_dir(&baselines_at).unwrap().count(), 1, "no leftovers");
        delete_baseline(&baselines_at, "main").unwrap();
        let missing = find_baseline(&baselines_at, "main");
        assert!(matches!(missing, Err(BaselineError::Unknown { .. })));
    }

    #[test]
    fn names_that_leave_the_folder_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let run = record(folder.path(), "run");
        for name in ["", "..", ".hidden", "a/b", "../up", "-x", "a b", &"x".repeat(61)] {
            let refused = save_baseline(&folder.path().join("baselines"), name, &run, true);
            assert!(matches!(refused, Err(BaselineError::Name { .. })), "{name}");
        }
    }
}
