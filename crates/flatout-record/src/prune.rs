//! Which records may be deleted, and deleting them. Only whole records, and never one that is being written.

use super::RunEntry;
use flatout_core::error::FileError;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// A record without an end whose files changed within this time may still be written.
const QUIET_FOR: Duration = Duration::from_secs(3600);

#[derive(Clone, Copy, Debug, Default)]
pub struct PruneOptions {
    /// Only records that began longer ago than this.
    pub older_than: Option<Duration>,
    /// Leave this many of the newest.
    pub keep: Option<usize>,
}

/// The records to delete, of a list that begins with the oldest.
pub fn prunable(entries: &[RunEntry], options: PruneOptions, now: SystemTime) -> Vec<&RunEntry> {
    let candidates = entries.len().saturating_sub(options.keep.unwrap_or(0));
    let old_enough = |entry: &&RunEntry| {
        options.older_than.is_none_or(|age| {
            let began = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(entry.info.started_unix_ms));
            began
                .and_then(|began| now.duration_since(began).ok())
                .is_some_and(|since| since > age)
        })
    };
    entries[..candidates]
        .iter()
        .filter(old_enough)
        .filter(|entry| !may_be_running(entry, now))
        .collect()
}

fn may_be_running(entry: &RunEntry, now: SystemTime) -> bool {
    entry.info.exit.is_none()
        && newest_change(&entry.folder)
            .is_some_and(|changed| now.duration_since(changed).unwrap_or_default() < QUIET_FOR)
}

fn newest_change(folder: &Path) -> Option<SystemTime> {
    let files = fs::read_dir(folder).ok()?.flatten();
    files
        .filter_map(|file| file.metadata().ok()?.modified().ok())
        .max()
}

/// Bytes on disk of a record.
pub fn size_bytes(folder: &Path) -> u64 {
    let Ok(files) = fs::read_dir(folder) else {
        return 0;
    };
    files
        .flatten()
        .map(|file| match file.file_type() {
            Ok(kind) if kind.is_dir() => size_bytes(&file.path()),
            Ok(kind) if kind.is_file() => file.metadata().map_or(0, |data| data.len()),
            _ => 0,
        })
        .sum()
}

/// Deletes a record. A link to a folder is taken away, what it points to stays.
pub fn delete(entry: &RunEntry) -> Result<(), FileError> {
    let linked = fs::symlink_metadata(&entry.folder).is_ok_and(|data| data.is_symlink());
    let result = if linked {
        fs::remove_file(&entry.folder)
    } else {
        fs::remove_dir_all(&entry.folder)
    };
    result.map_err(|source| FileError::deleting(&entry.folder, source))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ExitInfo, RunInfo};

    fn entry(folder: &Path, started_s: u64, ended: bool) -> RunEntry {
        let exit = ended.then_some(ExitInfo {
            t: 1.0,
            code: None,
            signal: None,
        });
        RunEntry {
            folder: folder.to_owned(),
            info: RunInfo {
                started_unix_ms: started_s * 1000,
                exit,
                ..RunInfo::default()
            },
        }
    }

    #[test]
    fn old_ones_go_new_ones_and_running_ones_stay() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("samples.jsonl"), "").unwrap();
        let now = SystemTime::now();
        let seconds = now.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        let all = [
            entry(folder.path(), 10, true),
            entry(folder.path(), 20, false),
            entry(folder.path(), 30, true),
            entry(folder.path(), seconds - 60, true),
        ];
        let chosen = |options| {
            prunable(&all, options, now)
                .iter()
                .map(|entry| entry.info.started_unix_ms / 1000)
                .collect::<Vec<_>>()
        };
        let day = Some(Duration::from_secs(86_400));
        assert_eq!(
            chosen(PruneOptions {
                older_than: day,
                keep: None
            }),
            [10, 30]
        );
        assert_eq!(
            chosen(PruneOptions {
                older_than: None,
                keep: Some(2)
            }),
            [10]
        );
        assert_eq!(
            chosen(PruneOptions {
                older_than: day,
                keep: Some(9)
            }),
            Vec::<u64>::new()
        );
    }

    #[test]
    fn a_record_is_deleted_and_a_link_only_taken_away() {
        let runs = tempfile::tempdir().unwrap();
        let (real, link) = (runs.path().join("real"), runs.path().join("link"));
        fs::create_dir(&real).unwrap();
        fs::write(real.join("run.json"), "{}").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert_eq!(size_bytes(&real), 2);
        delete(&entry(&link, 0, true)).unwrap();
        assert!(real.exists() && !link.exists());
        delete(&entry(&real, 0, true)).unwrap();
        assert!(!real.exists());
        assert!(delete(&entry(&real, 0, true)).is_err());
    }
}
