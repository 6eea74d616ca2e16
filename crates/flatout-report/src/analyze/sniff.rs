//! What kind of log a file is, by its beginning.

use super::files;
use flatout_core::Result;
use flatout_core::error::FileError;
use flatout_import::{ImportError, ImportOptions, Importer};
use std::io::{Cursor, Read};
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Gpu,
    Training,
}

const BEGINNING_BYTES: u64 = 64 << 10;

/// What it is, and all of it again from its beginning: a pipe cannot be opened twice.
pub fn open(path: &Path, options: &ImportOptions, progress: bool) -> Result<(Kind, Box<dyn Read + Send>)> {
    let mut reader = files::open(path, progress)?;
    let mut start = Vec::new();
    reader
        .by_ref()
        .take(BEGINNING_BYTES)
        .read_to_end(&mut start)
        .map_err(|source| FileError::reading(path, source))?;
    let kind = kind(path, &start, options)?;
    Ok((kind, Box::new(Cursor::new(start).chain(reader))))
}

fn kind(path: &Path, start: &[u8], options: &ImportOptions) -> Result<Kind> {
    if start.trim_ascii().is_empty() {
        return Err(files::empty(path));
    }
    if let Some(unpack) = packed(start) {
        return Err(files::packed(path, unpack));
    }
    if !is_text(start) {
        return Err(files::not_text(path));
    }
    // Both gpustat and training programs print JSON; only one of them speaks of GPUs.
    if start.trim_ascii_start().starts_with(b"{") && memchr::memmem::find(start, b"\"gpus\"").is_none() {
        return Ok(Kind::Training);
    }
    match Importer::from_reader(Box::new(Cursor::new(start.to_vec())), path, options) {
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

/// Some control characters stand in any log: colours, progress bars, zeros where a disk was full.
fn is_text(start: &[u8]) -> bool {
    const MOST: usize = 20;
    let odd = |byte: &&u8| matches!(byte, 0..=6 | 14..=26 | 28..=31 | 127);
    start.iter().filter(odd).count() * MOST <= start.len()
}

/// What unpacks a file that begins so.
fn packed(start: &[u8]) -> Option<&'static str> {
    let known: [(&[u8], &str); 4] = [
        (b"\x1f\x8b", "zcat"),
        (b"\x28\xb5\x2f\xfd", "zstdcat"),
        (b"\xfd7zXZ\0", "xzcat"),
        (b"BZh", "bzcat"),
    ];
    known
        .iter()
        .find(|(sign, _)| start.starts_with(sign))
        .map(|(_, unpack)| *unpack)
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
