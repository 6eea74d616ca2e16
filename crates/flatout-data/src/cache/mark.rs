//! The mark of a prepared file whose blocks are known to be right: the nanoseconds of its time of change are made from its header's
//! checksum. Whoever writes to the file sets another time, and the mark is gone; where a file system keeps no nanoseconds there is never
//! one. A file without it is checked whole, which for a large one takes most of a start.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

/// The largest prime below the nanoseconds of a second.
const NANOSECONDS: u64 = 999_999_937;

fn nanoseconds(checksum: u64) -> u32 {
    (checksum % NANOSECONDS) as u32
}

/// Marks the file as right and as used now.
pub fn set(file: &File, checksum: u64) -> io::Result<()> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    // A second back: with the nanoseconds it must not lie in the future.
    let seconds = now.map_err(io::Error::other)?.as_secs().saturating_sub(1);
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::new(seconds, nanoseconds(checksum)))
}

pub fn is_set(metadata: &Metadata, checksum: u64) -> bool {
    metadata.mtime_nsec() == i64::from(nanoseconds(checksum))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn writing_to_the_file_wipes_it() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"some bytes").unwrap();
        set(file.as_file(), 77).unwrap();
        let marked = || is_set(&file.path().metadata().unwrap(), 77);
        assert!(marked());
        assert!(!is_set(&file.path().metadata().unwrap(), 78));
        assert!(file.path().metadata().unwrap().modified().unwrap() <= SystemTime::now());
        let mut other = File::options().write(true).open(file.path()).unwrap();
        other.write_all(b"S").unwrap();
        assert!(!marked());
    }
}
