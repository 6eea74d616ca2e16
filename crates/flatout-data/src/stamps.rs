//! Whether files stayed what they were while they were read: a table half old and half new must not be taken for either.

use crate::{DataError, Result};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Size, time of change and identity of files at one moment.
#[derive(Debug, Clone)]
pub struct Stamps(Vec<(PathBuf, Stamp)>);

type Stamp = [i64; 4];

fn stamp(path: &PathBuf) -> Result<Stamp> {
    let metadata = std::fs::metadata(path).map_err(|error| DataError::reading(path, error))?;
    Ok([
        metadata.len() as i64,
        metadata.ino() as i64,
        metadata.mtime(),
        metadata.mtime_nsec(),
    ])
}

impl Stamps {
    pub fn take(files: &[PathBuf]) -> Result<Self> {
        files
            .iter()
            .map(|path| Ok((path.clone(), stamp(path)?)))
            .collect::<Result<_>>()
            .map(Self)
    }

    /// An error that names the first file that is not what it was.
    pub fn check(&self) -> Result<()> {
        for (path, before) in &self.0 {
            if stamp(path)? != *before {
                return Err(DataError::Changed { path: path.clone() });
            }
        }
        Ok(())
    }
}
