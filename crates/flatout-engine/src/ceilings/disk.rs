//! Reading the files of a path: cold, after the kernel was asked to forget them, and warm, out of its page cache. They are only read.

use super::Ceiling;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// As much as is read at most, and how long.
const MOST_BYTES: u64 = 1 << 30;
const LONG: Duration = Duration::from_secs(6);
const PIECE: usize = 4 << 20;
/// Files that are looked at.
const MOST_FILES: usize = 20_000;

/// Nothing when the path holds less than a megabyte to read.
pub fn measure(path: &Path) -> io::Result<Vec<Ceiling>> {
    let files = files(path)?;
    let bytes: u64 = files.iter().map(|(_, size)| size).sum();
    if bytes < 1 << 20 {
        return Ok(Vec::new());
    }
    for (file, _) in &files {
        forget(file)?;
    }
    let cold = read(&files)?;
    let warm = read(&files)?;
    Ok(vec![
        Ceiling::new("disk.cold", cold / 1e9, "GB/s"),
        Ceiling::new("disk.warm", warm / 1e9, "GB/s"),
        Ceiling::new("disk.files", files.len() as f64, ""),
    ])
}

/// The path itself, or the files below it, largest first, up to what is read.
fn files(path: &Path) -> io::Result<Vec<(PathBuf, u64)>> {
    let mut found = Vec::new();
    let mut waiting = vec![path.to_owned()];
    while let Some(next) = waiting.pop() {
        let about = fs::symlink_metadata(&next)?;
        if about.is_dir() {
            for entry in fs::read_dir(&next)?.flatten() {
                waiting.push(entry.path());
            }
        } else if about.is_file() && about.len() > 0 && File::open(&next).is_ok() {
            found.push((next, about.len()));
        }
        if found.len() >= MOST_FILES {
            break;
        }
    }
    found.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
    let mut total = 0;
    found.retain(|(_, size)| {
        let within = total < MOST_BYTES;
        total += size;
        within
    });
    Ok(found)
}

/// Asks the kernel to drop a file's pages from its cache.
fn forget(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    // SAFETY: the descriptor is open; the advice changes no data.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    Ok(())
}

/// Bytes a second.
fn read(files: &[(PathBuf, u64)]) -> io::Result<f64> {
    let mut piece = vec![0u8; PIECE];
    let (mut bytes, began) = (0u64, Instant::now());
    'all: for (path, _) in files {
        let mut file = File::open(path)?;
        loop {
            let count = file.read(&mut piece)?;
            bytes += count as u64;
            if bytes >= MOST_BYTES || began.elapsed() > LONG {
                break 'all;
            }
            if count == 0 {
                break;
            }
        }
    }
    Ok(bytes as f64 / began.elapsed().as_secs_f64().max(1e-9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_files_and_folders_and_reports_missing_ones() {
        let folder = tempfile::tempdir().unwrap();
        assert!(measure(folder.path()).unwrap().is_empty());
        fs::write(folder.path().join("a"), vec![7u8; 3 << 20]).unwrap();
        let found = measure(folder.path()).unwrap();
        assert!(
            found.len() == 3 && found.iter().all(|ceiling| ceiling.value > 0.0),
            "{found:?}"
        );
        assert!(measure(Path::new("/no/such/place")).is_err());
    }
}
