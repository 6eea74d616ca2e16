//! Writing files so that a crash leaves the old one or the new one, never half of it.

use crate::error::FileError;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

/// Writes `contents` to a temporary file beside `path`, flushes it to disk and renames it into place.
pub fn write_atomically(path: &Path, contents: &[u8]) -> Result<(), FileError> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
