//! A search on disk: what every trial gave, so that one that was interrupted can go on, and the lock that keeps two searches from
//! measuring each other.

use crate::TuneError;
use crate::trial::{Outcome, Plan, Settings, Trial};
use flatout_core::Result;
use flatout_core::error::FileError;
use flatout_core::files::{self, private, sweep_folders, write_private};
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// One line of `trials.jsonl`.
#[derive(Serialize, Deserialize)]
struct Line {
    settings: Settings,
    outcome: Outcome,
}

impl Line {
    fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

/// Held as long as a search runs.
pub struct Lock {
    _file: File,
}

impl Lock {
    /// One search a user and set of visible GPUs; the file stays, the lock goes with the process.
    pub fn take(folder: &Path) -> std::result::Result<Self, TuneError> {
        // SAFETY: geteuid only reads a number.
        let user = unsafe { libc::geteuid() };
        let gpus = std::env::var("CUDA_VISIBLE_DEVICES").unwrap_or_default();
        let gpus: String = gpus
            .chars()
            .filter(|c| c.is_alphanumeric() || *c == ',')
            .take(64)
            .collect();
        let path = folder.join(format!("flatout-tune-{user}-{gpus}.lock"));
        let mut file = open_own(&path).map_err(|source| FileError::writing(&path, source))?;
        match file.try_lock() {
            Ok(()) => {
                let _ = file.set_len(0);
                let _ = write!(file, "{}", std::process::id());
                Ok(Self { _file: file })
            }
            Err(TryLockError::WouldBlock) => {
                let mut process = String::new();
                let _ = file.read_to_string(&mut process);
                Err(TuneError::Busy {
                    process: process.trim().to_owned(),
                })
            }
            Err(TryLockError::Error(source)) => Err(FileError::writing(&path, source).into()),
        }
    }
}

/// A file in a folder where everybody may write: not what another user put there to have one of ours changed.
fn open_own(path: &Path) -> io::Result<File> {
    let file = private().read(true).open(path)?;
    let found = file.metadata()?;
    if found.is_file() && found.nlink() == 1 {
        Ok(file)
    } else {
        Err(io::Error::from(io::ErrorKind::PermissionDenied))
    }
}

/// Removes what searches that were killed left: the files that their programs saved.
pub fn sweep(sessions: &Path) {
    let folders = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    for session in folders(sessions) {
        for trial in folders(&session.path().join("trials")) {
            sweep_folders(&trial.path());
            files::sweep(&trial.path());
        }
    }
}

/// A trial that remembers: what was measured before is not measured again.
pub struct Remembering<'a> {
    inner: &'a mut dyn Trial,
    file: PathBuf,
    known: Vec<Line>,
}

impl<'a> Remembering<'a> {
    /// With `resume`, takes up what the folder's file holds; otherwise begins anew.
    pub fn open(
        inner: &'a mut dyn Trial,
        folder: &Path,
        resume: bool,
    ) -> std::result::Result<Self, TuneError> {
        // The program's output and command may hold what is nobody else's.
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|source| FileError::writing(folder, source))?;
        let file = folder.join("trials.jsonl");
        let known = if resume { read(&file) } else { Vec::new() };
        // Whole lines only: what is added must not become a part of one that was torn.
        let lines: String = known.iter().map(Line::text).collect();
        write_private(&file, lines.as_bytes())?;
        Ok(Self { inner, file, known })
    }

    /// Trials that need not be run again.
    pub fn remembered(&self) -> usize {
        self.known.len()
    }
}

/// Lines that can be read and whose records are still there.
fn read(file: &Path) -> Vec<Line> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Line>(line).ok());
    lines.filter(|line| !matches!(&line.outcome, Outcome::Measured(measured) if !measured.record.join("run.json").exists())).collect()
}

impl Trial for Remembering<'_> {
    fn run(&mut self, settings: &Settings, plan: &Plan) -> Result<Outcome> {
        if let Some(at) = self.known.iter().position(|line| line.settings == *settings) {
            return Ok(self.known.remove(at).outcome);
        }
        let outcome = self.inner.run(settings, plan)?;
        if outcome != Outcome::Interrupted {
            let line = Line {
                settings: settings.clone(),
                outcome: outcome.clone(),
            };
            let opened = private().append(true).open(&self.file);
            let written = opened.and_then(|mut file| file.write_all(line.text().as_bytes()));
            written.map_err(|source| FileError::writing(&self.file, source))?;
        }
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Counting(usize);

    impl Trial for Counting {
        fn run(&mut self, _: &Settings, _: &Plan) -> Result<Outcome> {
            self.0 += 1;
            Ok(Outcome::TooShort {
                steps: self.0 as u64,
                tail: String::new(),
            })
        }
    }

    fn plan() -> Plan {
        Plan {
            warm_up_steps: 1,
            steps: 1,
            longest_s: 1.0,
            noise: 0.03,
            settle_s: 1.0,
            patience_s: 1.0,
            ..Plan::default()
        }
    }

    #[test]
    fn what_was_measured_is_not_measured_again() {
        let folder = tempfile::tempdir().unwrap();
        let settings = crate::knobs::one("amp", "bf16");
        let mut counting = Counting(0);
        let mut first = Remembering::open(&mut counting, folder.path(), false).unwrap();
        let outcome = first.run(&settings, &plan()).unwrap();
        let mut again = Counting(0);
        let mut resumed = Remembering::open(&mut again, folder.path(), true).unwrap();
        assert_eq!(resumed.remembered(), 1);
        assert_eq!(resumed.run(&settings, &plan()).unwrap(), outcome);
        // The second time the same is asked, it is a repeat and is measured.
        resumed.run(&settings, &plan()).unwrap();
        assert_eq!(again.0, 1);
    }

    #[test]
    fn a_torn_line_costs_only_itself() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (crate::knobs::one("amp", "bf16"), crate::knobs::one("amp", "fp16"));
        let mut counting = Counting(0);
        let mut search = Remembering::open(&mut counting, folder.path(), false).unwrap();
        search.run(&first, &plan()).unwrap();
        let file = folder.path().join("trials.jsonl");
        let mut text = fs::read_to_string(&file).unwrap();
        text += &text.clone()[..20];
        fs::write(&file, text).unwrap();
        let mut resumed = Remembering::open(&mut counting, folder.path(), true).unwrap();
        assert_eq!(resumed.remembered(), 1);
        resumed.run(&second, &plan()).unwrap();
        let again = Remembering::open(&mut counting, folder.path(), true).unwrap();
        assert_eq!(again.remembered(), 2);
    }

    #[test]
    fn a_lock_is_no_way_to_change_another_file() {
        let folder = tempfile::tempdir().unwrap();
        drop(Lock::take(folder.path()).unwrap());
        let lock = fs::read_dir(folder.path())
            .unwrap()
            .flatten()
            .next()
            .unwrap()
            .path();
        let mine = folder.path().join("mine");
        for is_hard in [true, false] {
            fs::remove_file(&lock).unwrap();
            fs::write(&mine, "mine").unwrap();
            let linked = if is_hard {
                fs::hard_link(&mine, &lock)
            } else {
                std::os::unix::fs::symlink(&mine, &lock)
            };
            linked.unwrap();
            assert!(Lock::take(folder.path()).is_err());
            assert_eq!(fs::read(&mine).unwrap(), b"mine");
        }
    }

    #[test]
    fn files_of_killed_searches_are_swept() {
        let sessions = tempfile::tempdir().unwrap();
        let trial = sessions.path().join("train-12345678/trials/001");
        let own = flatout_core::leftover::name("saved".as_ref());
        let (before, _) = own.to_str().unwrap().rsplit_once('-').unwrap();
        let dead = trial.join(format!("{before}-{}", u32::MAX));
        for saved in [&dead, &trial.join(&own)] {
            fs::create_dir_all(saved.join("checkpoints")).unwrap();
        }
        sweep(sessions.path());
        assert!(!dead.exists() && trial.join(own).exists());
    }

    #[test]
    fn one_search_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let held = Lock::take(folder.path()).unwrap();
        let error = Lock::take(folder.path()).err().unwrap();
        assert!(matches!(error, TuneError::Busy { process } if process == std::process::id().to_string()));
        drop(held);
        assert!(Lock::take(folder.path()).is_ok());
    }
}
