//! What the kernel says of files: how much of them it holds in memory, and how much room is left.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The share of the first files' pages that the kernel holds.
pub fn cached_share(path: &Path) -> Option<f64> {
    const MOST: usize = 200;
    let mut waiting = vec![path.to_owned()];
    let mut files: Vec<PathBuf> = Vec::new();
    while let Some(next) = waiting.pop() {
        if next.is_dir() {
            waiting.extend(std::fs::read_dir(&next).ok()?.flatten().map(|entry| entry.path()));
        } else if next.is_file() {
            files.push(next);
        }
        if files.len() >= MOST {
            break;
        }
    }
    let (held, all) = files
        .iter()
        .filter_map(|file| pages(file))
        .fold((0, 0), |sum, (held, all)| (sum.0 + held, sum.1 + all));
    (all > 0).then(|| held as f64 / all as f64)
}

/// Pages of a file in the cache, and all of them.
fn pages(path: &Path) -> Option<(usize, usize)> {
    const PAGE: usize = 4096;
    let file = File::open(path).ok()?;
    let length = usize::try_from(file.metadata().ok()?.len())
        .ok()
        .filter(|length| *length > 0)?;
    let mut seen = vec![0u8; length.div_ceil(PAGE)];
    // SAFETY: maps a file that is open, without touching its pages; the vector has a byte for each page; unmapped again.
    let known = unsafe {
        let map = libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        );
        if map == libc::MAP_FAILED {
            return None;
        }
        let known = libc::mincore(map, length, seen.as_mut_ptr()) == 0;
        libc::munmap(map, length);
        known
    };
    known.then(|| (seen.iter().filter(|page| **page & 1 == 1).count(), seen.len()))
}

/// Bytes left for this user on the file system of a folder.
pub fn free_bytes(folder: &Path) -> Option<u64> {
    let path = std::ffi::CString::new(folder.as_os_str().as_bytes()).ok()?;
    // SAFETY: the kernel fills the structure; the path is a zero-terminated text.
    unsafe {
        let mut about: libc::statvfs = std::mem::zeroed();
        (libc::statvfs(path.as_ptr(), &mut about) == 0).then(|| about.f_bavail * about.f_frsize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_just_written_is_cached() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), vec![1u8; 100_000]).unwrap();
        assert!(cached_share(folder.path()).unwrap() > 0.9);
        assert!(cached_share(Path::new("/no/such")).is_none());
    }

    #[test]
    fn room_is_counted_where_there_is_a_folder() {
        assert!(free_bytes(Path::new("/")).is_some());
        assert!(free_bytes(Path::new("/no/such")).is_none());
    }
}
