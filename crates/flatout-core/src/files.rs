//! Writing files so that a crash leaves the old one or the new one, never half of it.

use crate::error::FileError;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Writes `contents` to a temporary file beside `path`, flushes it to disk and renames it into place. A link stays one: what it names is
/// written. What is no file at all (a pipe, a device) is written as it is.
pub fn write_atomically(path: &Path, contents: &[u8]) -> Result<(), FileError> {
    if is_special(path) {
        let written = File::options()
            .write(true)
            .open(path)
            .and_then(|mut file| file.write_all(contents));
        return written.map_err(|source| FileError::writing(path, source));
    }
    let path = &behind_links(path);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".tmp{}", std::process::id()));
    let temporary = path.with_file_name(name);
    let result = (|| {
        let mut file = File::create(&temporary)?;
        file.write_all(contents)?;
        file.sync_data()?;
        fs::rename(&temporary, path)
    })();
    result.map_err(|source| {
        let _ = fs::remove_file(&temporary);
        FileError::writing(path, source)
    })
}

/// Keeps the old text of a file that is about to be changed beside it, as `NAME.flatout-backup`. One that is there already is never lost: the
/// next has a number. Gives where it lies.
pub fn keep_backup(path: &Path, old: &[u8]) -> Result<PathBuf, FileError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".flatout-backup");
    let mut backup = path.with_file_name(&name);
    let mut number = 2u32;
    while fs::read(&backup).map_or_else(|_| backup.exists(), |kept| kept != old) {
        let mut numbered = name.clone();
        numbered.push(format!("-{number}"));
        backup = path.with_file_name(numbered);
        number = number.saturating_add(1);
    }
    write_atomically(&backup, old)?;
    Ok(backup)
}

/// Whether a file can be written once there is something to write; what is there stays.
pub fn check_writable(path: &Path) -> Result<(), FileError> {
    if is_special(path) {
        return Ok(());
    }
    let there = path.exists();
    let opened = File::options().append(true).create(true).open(path);
    opened.map_err(|source| FileError::writing(path, source))?;
    if !there {
        let _ = fs::remove_file(path);
    }
    Ok(())
}

/// A pipe, a device, a socket: there, and neither a file nor a folder.
pub fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// The file that a link names, whether it is there or not; any other path as it is.
pub fn behind_links(path: &Path) -> PathBuf {
    const MOST: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MOST {
        let Ok(named) = fs::read_link(&path) else { break };
        path = path
            .parent()
            .map_or_else(|| named.clone(), |folder| folder.join(&named));
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whether_a_file_can_be_written_is_asked_without_a_trace() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        check_writable(&path).unwrap();
        assert!(!path.exists());
        fs::write(&path, b"old").unwrap();
        check_writable(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert!(check_writable(&folder.path().join("missing/a.json")).is_err());
    }

    #[test]
    fn no_backup_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.py");
        let keep = |text: &str| keep_backup(&path, text.as_bytes()).unwrap();
        let first = keep("one");
        assert_eq!(first.file_name().unwrap(), "train.py.flatout-backup");
        assert_eq!(keep("one"), first);
        let second = keep("two");
        assert_eq!(second.file_name().unwrap(), "train.py.flatout-backup-2");
        assert_eq!(
            (fs::read(first).unwrap(), fs::read(second).unwrap()),
            (b"one".to_vec(), b"two".to_vec())
        );
    }

    #[test]
    fn links_stay_links_and_pipes_stay_pipes() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::os::unix::fs::symlink("inner/../real.csv", at("link.csv")).unwrap();
        fs::create_dir(at("inner")).unwrap();
        for contents in [b"one", b"two"] {
            write_atomically(&at("link.csv"), contents).unwrap();
            assert_eq!(fs::read(at("real.csv")).unwrap(), contents);
        }
        assert!(fs::symlink_metadata(at("link.csv")).unwrap().is_symlink());
        assert!(write_atomically(Path::new("/dev/full"), b"x").is_err());
        write_atomically(Path::new("/dev/null"), b"x").unwrap();
        assert!(is_special(Path::new("/dev/null")) && is_special(Path::new("/dev/full")));
    }

    #[test]
    fn replaces_and_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        write_atomically(&path, b"one").unwrap();
        write_atomically(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(write_atomically(&folder.path().join("missing/a.json"), b"x").is_err());
    }
}
