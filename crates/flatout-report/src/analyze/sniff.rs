//! What kind of log a file is, by its beginning.

use super::files;
use flatout_core::Result;
use flatout_core::error::FileError;
use flatout_telemetry::import::{ImportError, ImportOptions, Importer};
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Gpu,
    Training,
}

const BEGINNING_BYTES: u64 = 64 << 10;

pub fn kind(path: &Path, options: &ImportOptions) -> Result<Kind> {
    let mut start = Vec::new();
    File::open(path)
        .and_then(|file| file.take(BEGINNING_BYTES).read_to_end(&mut start))
        .map_err(|source| FileError::reading(path, source))?;
    if start.trim_ascii().is_empty() {
        return Err(files::empty(path));
    }
    // Both gpustat and training programs print JSON; only one of them speaks of GPUs.
    if start.trim_ascii_start().starts_with(b"{") && memchr::memmem::find(&start, b"\"gpus\"").is_none() {
        return Ok(Kind::Training);
    }
    match Importer::from_reader(Box::new(Cursor::new(start)), path, options) {
        Ok(_) => Ok(Kind::Gpu),
        Err(ImportError::Unrecognised { .. }) => Ok(Kind::Training),
        Err(error) => Err(error.into()),
    }
}
