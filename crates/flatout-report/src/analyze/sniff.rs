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
    match Importer::from_reader(Box::new(Cursor::new(start.clone())), path, options) {
        Ok(_) => Ok(Kind::Gpu),
        // Python's logging writes a comma into its time stamps: that is no row of values.
        Err(ImportError::NoHeader { .. })
            if !start
                .split(|byte| *byte == b'\n')
                .take(LINES)
                .all(ends_with_value) =>
        {
            Ok(Kind::Training)
        }
        Err(ImportError::Unrecognised { .. }) => Ok(Kind::Training),
        Err(error) => Err(error.into()),
    }
}

/// Lines that are looked at.
const LINES: usize = 5;

/// Whether the last field is a value as nvidia-smi writes it: `45 %`, `700 MiB`, `60.00 W`, `[N/A]`.
fn ends_with_value(line: &[u8]) -> bool {
    let field = line
        .rsplit(|byte| *byte == b',')
        .next()
        .unwrap_or_default()
        .trim_ascii();
    let digits = field
        .iter()
        .take_while(|byte| byte.is_ascii_digit() || **byte == b'.')
        .count();
    let unit = field[digits..].trim_ascii_start();
    let known: [&[u8]; 6] = [b"", b"%", b"MiB", b"W", b"MHz", b"C"];
    field.is_empty() || field.starts_with(b"[") || digits > 0 && known.contains(&unit)
}
