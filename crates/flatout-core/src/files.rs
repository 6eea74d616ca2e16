//! Writing files so that a crash leaves the old one or the new one, never half of it.

use crate::error::FileError;
use crate::leftover;
use std::collections::BTreeSet;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{Error, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Writes `contents` to a temporary file next to `path`, flushes it to disk and renames it into place. For paths that the user named:
/// a link stays one and what it names is written, a pipe or a device is written as it is. The file keeps its mode and owner.
pub fn write_atomically(path: &Path, contents: &[u8]) -> Result<(), FileError> {
    if is_special(path) {
        let written = File::options()
            .write(true)
            .open(path)
            .and_then(|mut file| file.write_all(contents));
        return written.map_err(|source| FileError::writing(path, source));
    }
    let path = &behind_links(path);
    replace(path, contents, fs::symlink_metadata(path).ok().as_ref())
}

/// The same for a name that flatout chose in a folder that may come from elsewhere. A link there is replaced, never followed: what it
/// names can be any file of the user's.
pub fn write_inside(path: &Path, contents: &[u8]) -> Result<(), FileError> {
    let there = fs::symlink_metadata(path).ok();
    let there = there.filter(|found| found.is_file());
    replace(path, contents, there.as_ref())
}

/// What people write as configuration is smaller than this by far; what is larger would only fill the memory.
const MOST_TEXT: u64 = 4 << 20;

/// The text of a configuration file. One that is too large, or that never ends, is an error.
pub fn read_text(path: &Path) -> Result<String, FileError> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MOST_TEXT + 1).read_to_end(&mut bytes));
    let text = match read {
        Ok(length) if length as u64 > MOST_TEXT => Err(ErrorKind::FileTooLarge.into()),
        Ok(_) => String::from_utf8(bytes).map_err(|_| std::io::Error::other("the file is not UTF-8")),
        Err(source) => Err(source),
    };
    text.map_err(|source| FileError::reading(path, source))
}

/// Changes a file that the user wrote, after it was read as `old`, and returns the backup of it. A link stays one. Refused for a file that
/// was changed since, for one that is read-only, and for a link out of its folder: what it names belongs to something else.
pub fn edit(path: &Path, old: &[u8], new: &[u8]) -> Result<PathBuf, FileError> {
    let refused = |source| FileError::writing(path, source);
    let target = fs::canonicalize(path).map_err(refused)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = fs::canonicalize(folder.unwrap_or(Path::new("."))).map_err(refused)?;
    if !target.starts_with(&folder) {
        let target = target.display();
        return Err(refused(Error::other(format!("it is a link to `{target}`"))));
    }
    if is_read_only(&target) {
        return Err(refused(Error::new(
            ErrorKind::PermissionDenied,
            "the file is read-only",
        )));
    }
    let check = || match fs::read(&target)? == old {
        true => Ok(()),
        false => Err(Error::other("the file was changed after it was read; try again")),
    };
    check().map_err(refused)?;
    let backup = keep_backup(path, old)?;
    let there = fs::symlink_metadata(&target).map_err(refused)?;
    replace_if(&target, new, Some(&there), check).map_err(|error| refused(error.source))?;
    Ok(backup)
}

/// Whether nobody, or not this user, may write a file. Renaming another one over it would work all the same.
pub fn is_read_only(path: &Path) -> bool {
    let locked = fs::metadata(path).is_ok_and(|found| found.permissions().readonly());
    let denied = std::ffi::CString::new(path.as_os_str().as_encoded_bytes())
        // SAFETY: the path ends with a zero and lives as long as the call.
        .is_ok_and(|path| unsafe { libc::access(path.as_ptr(), libc::W_OK) } != 0);
    locked || denied && path.exists()
}

/// Opens a file of a record: for its owner only, and never through a link.
pub fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options
        .write(true)
        .create(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC);
    options
}

/// [`write_inside`] for files that only their owner may read.
pub fn write_private(path: &Path, contents: &[u8]) -> Result<(), FileError> {
    let open = |temporary: &Path| private().create_new(true).open(temporary);
    written_beside(path, contents, open, || Ok(()))
}

/// Puts new contents in the place of a file, with the mode and the owner of `old`.
fn replace(path: &Path, contents: &[u8], old: Option<&Metadata>) -> Result<(), FileError> {
    replace_if(path, contents, old, || Ok(()))
}

/// [`replace`] if `check`, which is asked last, has nothing against it.
fn replace_if(
    path: &Path,
    contents: &[u8],
    old: Option<&Metadata>,
    check: impl FnOnce() -> std::io::Result<()>,
) -> Result<(), FileError> {
    let open = |temporary: &Path| {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        let Some(old) = old else {
            return options.open(temporary);
        };
        let file = options.mode(old.mode() & 0o600).open(temporary)?;
        // Only root may give a file away; without that it becomes the caller's. The mode comes last: a new owner clears some bits.
        let _ = fchown(&file, Some(old.uid()), Some(old.gid()));
        file.set_permissions(Permissions::from_mode(old.mode() & 0o7777))?;
        Ok(file)
    };
    written_beside(path, contents, open, check)
}

fn written_beside(
    path: &Path,
    contents: &[u8],
    open: impl FnOnce(&Path) -> std::io::Result<File>,
    check: impl FnOnce() -> std::io::Result<()>,
) -> Result<(), FileError> {
    if let Some(folder) = path.parent() {
        sweep(folder);
    }
    let temporary = path.with_file_name(leftover::name(path.file_name().unwrap_or_default()));
    // A thread of this process that failed may have left it.
    let _ = fs::remove_file(&temporary);
    let result = (|| {
        let mut file = open(&temporary)?;
        file.write_all(contents)?;
        file.sync_data()?;
        check()?;
        fs::rename(&temporary, path)
    })();
    result.map_err(|source| {
        let _ = fs::remove_file(&temporary);
        FileError::writing(path, source)
    })
}

/// Removes what killed writers left in a folder, once per folder and process.
pub fn sweep(folder: &Path) {
    static SWEPT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    /// Reading a folder of a million images takes a second.
    const MOST: usize = 20_000;
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let mut swept = SWEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if swept.insert(folder.to_owned()) {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        for entry in entries.take(MOST) {
            if leftover::is_left(&entry.file_name()) && entry.file_type().is_ok_and(|kind| kind.is_file()) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Removes the temporary folders that killed processes left in a folder, with all that is in them.
pub fn sweep_folders(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        // A link to a folder is none.
        if leftover::is_left(&entry.file_name()) && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Keeps the old text of a file that is about to be changed next to it, as `NAME.flatout-backup`, with the mode of the file. A backup
/// that exists is never lost: the next one has a number. Returns its path.
pub fn keep_backup(path: &Path, old: &[u8]) -> Result<PathBuf, FileError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".flatout-backup");
    let mut backup = path.with_file_name(&name);
    let mut number = 2u32;
    // Also a link that leads nowhere.
    let is_taken = |backup: &Path| match fs::symlink_metadata(backup) {
        Ok(found) if found.is_file() => fs::read(backup).map_or(true, |kept| kept != old),
        Ok(_) => true,
        Err(_) => false,
    };
    while is_taken(&backup) {
        let mut numbered = name.clone();
        numbered.push(format!("-{number}"));
        backup = path.with_file_name(numbered);
        number = number.saturating_add(1);
    }
    replace(&backup, old, fs::metadata(path).ok().as_ref())?;
    Ok(backup)
}

/// Whether a file can be written once there is something to write; what is there stays.
pub fn check_writable(path: &Path) -> Result<(), FileError> {
    if is_special(path) {
        return Ok(());
    }
    // A link may name what is not there yet: that is made and removed again, and the link stays.
    let path = &behind_links(path);
    let there = path.exists();
    let opened = File::options().append(true).create(true).open(path);
    opened.map_err(|source| FileError::writing(path, source))?;
    if !there {
        let _ = fs::remove_file(path);
    }
    Ok(())
}

/// A pipe, a device or a socket.
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
    fn a_link_to_a_file_that_is_not_there_yet_stays() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::os::unix::fs::symlink("later.json", at("link.json")).unwrap();
        check_writable(&at("link.json")).unwrap();
        assert!(!at("later.json").exists());
        assert!(fs::symlink_metadata(at("link.json")).unwrap().is_symlink());
        std::os::unix::fs::symlink("nothing", at("a.py.flatout-backup")).unwrap();
        let backup = keep_backup(&at("a.py"), b"old").unwrap();
        assert_eq!(backup, at("a.py.flatout-backup-2"));
        assert!(
            fs::symlink_metadata(at("a.py.flatout-backup"))
                .unwrap()
                .is_symlink()
        );
    }

    #[test]
    fn edits_keep_links_and_modes() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("inner")).unwrap();
        fs::write(at("inner/real.py"), "old").unwrap();
        fs::set_permissions(at("inner/real.py"), Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("inner/real.py", at("link.py")).unwrap();
        let backup = edit(&at("link.py"), b"old", b"new").unwrap();
        assert_eq!(
            (backup.as_path(), fs::read(&backup).unwrap()),
            (at("link.py.flatout-backup").as_path(), b"old".to_vec())
        );
        assert!(fs::symlink_metadata(at("link.py")).unwrap().is_symlink());
        assert_eq!(fs::read(at("inner/real.py")).unwrap(), b"new");
        assert_eq!(mode(&at("inner/real.py")), 0o640);
    }

    #[test]
    fn edits_of_changed_locked_and_foreign_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("inner")).unwrap();
        fs::write(at("mine.py"), "mine").unwrap();
        std::os::unix::fs::symlink("../mine.py", at("inner/link.py")).unwrap();
        fs::write(at("locked.py"), "old").unwrap();
        fs::set_permissions(at("locked.py"), Permissions::from_mode(0o444)).unwrap();
        for (name, old, why) in [
            ("mine.py", "old", "changed after it was read"),
            ("inner/link.py", "mine", "it is a link to"),
            ("locked.py", "old", "read-only"),
        ] {
            let before = fs::read(at(name)).unwrap();
            let error = edit(&at(name), old.as_bytes(), b"new").unwrap_err();
            assert!(error.source.to_string().contains(why), "{name}: {}", error.source);
            assert_eq!(fs::read(at(name)).unwrap(), before);
            let backup = at(&format!("{name}.flatout-backup"));
            assert!(!backup.exists(), "{name}");
        }
    }

    #[test]
    fn a_change_while_the_new_text_is_written_is_not_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.py");
        fs::write(&path, "newer").unwrap();
        let there = fs::symlink_metadata(&path).unwrap();
        let check = || Err(Error::other("changed"));
        replace_if(&path, b"new", Some(&there), check).unwrap_err();
        assert_eq!(fs::read(&path).unwrap(), b"newer");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn texts_that_are_too_large_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        fs::write(&path, "a: 1\n").unwrap();
        assert_eq!(read_text(&path).unwrap(), "a: 1\n");
        fs::write(&path, "好".repeat(MOST_TEXT as usize / 3 + 1)).unwrap();
        assert_eq!(
            read_text(&path).unwrap_err().source.kind(),
            ErrorKind::FileTooLarge
        );
        assert_eq!(
            read_text(Path::new("/dev/zero")).unwrap_err().source.kind(),
            ErrorKind::FileTooLarge
        );
        assert!(read_text(&folder.path().join("missing")).is_err());
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

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn modes_are_kept_and_records_are_private() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("a.py"), "old").unwrap();
        fs::set_permissions(at("a.py"), Permissions::from_mode(0o640)).unwrap();
        let backup = keep_backup(&at("a.py"), b"old").unwrap();
        write_atomically(&at("a.py"), b"new").unwrap();
        assert_eq!((mode(&backup), mode(&at("a.py"))), (0o640, 0o640));
        write_private(&at("run.json"), b"{}").unwrap();
        write_private(&at("run.json"), b"{ }").unwrap();
        assert_eq!(mode(&at("run.json")), 0o600);
    }

    #[test]
    fn replaces_a_foreign_symlink() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("mine"), "mine").unwrap();
        for (name, write) in [
            (
                "report.html",
                write_inside as fn(&Path, &[u8]) -> Result<(), FileError>,
            ),
            ("run.json", write_private),
        ] {
            std::os::unix::fs::symlink("mine", at(name)).unwrap();
            write(&at(name), b"page").unwrap();
            assert_eq!(fs::read(at("mine")).unwrap(), b"mine");
            assert_eq!(fs::read(at(name)).unwrap(), b"page");
        }
        std::os::unix::fs::symlink("mine", at("samples.jsonl")).unwrap();
        assert!(private().open(at("samples.jsonl")).is_err());
    }

    #[test]
    fn what_a_killed_writer_left_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        // No process has this number: it is above the kernel's limit.
        let dead = leftover::name_of(std::ffi::OsStr::new("last.safetensors"), u32::MAX);
        let others = ["a.tmp123", "notes.flatout-tmp", "b.flatout-tmp-zz-1"];
        fs::write(folder.path().join(&dead), "half").unwrap();
        others.iter().for_each(|name| fs::write(at(name), "x").unwrap());
        write_atomically(&at("a.json"), b"x").unwrap();
        assert!(!folder.path().join(dead).exists());
        assert!(others.iter().all(|name| at(name).exists()));
    }

    #[test]
    fn folders_of_the_dead_are_swept_and_links_stay() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &std::ffi::OsStr| folder.path().join(name);
        let name = |name: &str, process| leftover::name_of(std::ffi::OsStr::new(name), process);
        let (dead, link, own) = (
            name("saved", u32::MAX),
            name("link", u32::MAX),
            leftover::name(std::ffi::OsStr::new("saved")),
        );
        for made in [&dead, &own, &"kept".into()] {
            fs::create_dir_all(at(made).join("inner")).unwrap();
        }
        std::os::unix::fs::symlink("kept", at(&link)).unwrap();
        sweep_folders(folder.path());
        assert!(!at(&dead).exists() && at(&own).exists() && at("kept/inner".as_ref()).exists());
        assert!(fs::symlink_metadata(at(&link)).is_ok());
    }

    #[test]
    fn replaces_without_leftovers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        write_atomically(&path, b"one").unwrap();
        write_atomically(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(write_atomically(&folder.path().join("missing/a.json"), b"x").is_err());
    }
}
