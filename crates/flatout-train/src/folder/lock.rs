//! One training at a time in an output folder. The lock is the kernel's (`flock`): it ends with its process, however that ends, so a
//! killed training leaves nothing that has to be removed by hand. The file names its owner for whoever is refused.

use crate::TrainError;
use flatout_core::error::FileError;
use flatout_core::leftover;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Inside the output folder.
const NAME: &str = ".flatout-lock";
/// Others may remove the file between our opening and our locking it: then it is opened again.
const TRIES: usize = 20;

/// Held while a training works in a folder; dropped, the folder is free.
#[derive(Debug)]
pub struct FolderLock {
    folder: PathBuf,
    /// Open as long as the lock is held.
    file: File,
    /// Folders that did not exist before, the innermost first: removed again where nothing was put into them.
    made: Vec<PathBuf>,
}

/// What the file says about its owner.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Owner {
    pid: u32,
    host: String,
    command: String,
    /// For file systems without locks.
    process: String,
}

impl Owner {
    fn here() -> Self {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let command = flatout_core::secrets::own_command();
        Self {
            pid: std::process::id(),
            host: host.trim().to_owned(),
            command: format!(
                "flatout {}",
                flatout_core::shell::line(command.get(1..).unwrap_or_default())
            ),
            process: leftover::owner(),
        }
    }

    fn read(file: &mut File) -> Self {
        let mut text = String::new();
        let read = file
            .seek(SeekFrom::Start(0))
            .and_then(|_| file.read_to_string(&mut text));
        let owner = read.ok().and_then(|_| serde_json::from_str(&text).ok());
        owner.unwrap_or_default()
    }

    fn write(&self, file: &mut File) -> std::io::Result<()> {
        let text = serde_json::to_string(self).unwrap_or_default() + "\n";
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(text.as_bytes())
    }

    fn refuse(self, folder: &Path) -> TrainError {
        TrainError::FolderInUse {
            folder: folder.to_owned(),
            pid: self.pid,
            host: self.host,
            command: self.command,
        }
    }
}

impl FolderLock {
    /// Makes the folder where it is missing and takes it for this process.
    pub fn take(folder: &Path) -> Result<Self, TrainError> {
        let failed = |source| TrainError::from(FileError::writing(folder, source));
        let missing = folder.ancestors().take_while(|part| !part.as_os_str().is_empty());
        let made: Vec<PathBuf> = missing
            .take_while(|part| !part.exists())
            .map(Path::to_owned)
            .collect();
        let path = folder.join(NAME);
        for _ in 0..TRIES {
            fs::create_dir_all(folder).map_err(failed)?;
            let opened = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path);
            let mut file = match opened {
                // Its first owner removed the folder that it had made.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                opened => opened.map_err(failed)?,
            };
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(Owner::read(&mut file).refuse(folder)),
                // A file system without locks: the owner's name has to do.
                Err(TryLockError::Error(_)) => {
                    let owner = Owner::read(&mut file);
                    if owner.pid != 0 && !leftover::is_gone(&owner.process) {
                        return Err(owner.refuse(folder));
                    }
                }
            }
            if !is_same(&file, &path) {
                continue;
            }
            Owner::here().write(&mut file).map_err(failed)?;
            log::debug!("locked {}", path.display());
            return Ok(Self {
                folder: folder.to_owned(),
                file,
                made,
            });
        }
        Err(failed(std::io::ErrorKind::ResourceBusy.into()))
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        let path = self.folder.join(NAME);
        // While it is still locked: whoever opened it meanwhile sees that its name is gone, and opens it again.
        if is_same(&self.file, &path) {
            let _ = fs::remove_file(path);
        }
        for folder in &self.made {
            // Refused where something is inside.
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
    }
}

fn is_same(file: &File, path: &Path) -> bool {
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let (open, named) = (file.metadata().map(identity), fs::metadata(path).map(identity));
    matches!((open, named), (Ok(open), Ok(named)) if open == named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_owner_is_refused_by_name() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("out/deep");
        let lock = FolderLock::take(&folder).unwrap();
        let refused = FolderLock::take(&folder).unwrap_err().to_string();
        assert!(
            refused.contains(&format!("process {}", std::process::id())),
            "{refused}"
        );
        drop(lock);
        // Nothing was put inside: as if nobody had been there.
        assert!(!place.path().join("out").exists());
        drop(FolderLock::take(&folder).unwrap());
    }

    #[test]
    fn a_file_that_nobody_holds_is_taken_over() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join(NAME), "half of a li").unwrap();
        let lock = FolderLock::take(place.path()).unwrap();
        fs::write(place.path().join("last.safetensors"), "x").unwrap();
        drop(lock);
        assert!(!place.path().join(NAME).exists() && place.path().join("last.safetensors").exists());
    }

    #[test]
    fn of_many_at_once_one_has_it() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("out");
        let inside = std::sync::atomic::AtomicU32::new(0);
        let took = std::sync::atomic::AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let Ok(_lock) = FolderLock::take(&folder) else {
                            continue;
                        };
                        use std::sync::atomic::Ordering::SeqCst;
                        assert_eq!(inside.fetch_add(1, SeqCst), 0, "two owners at once");
                        took.fetch_add(1, SeqCst);
                        inside.fetch_sub(1, SeqCst);
                    }
                });
            }
        });
        assert!(took.into_inner() > 0);
    }
}
