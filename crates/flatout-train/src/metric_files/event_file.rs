//! TensorBoard's event file: records of length, masked CRC-32C, a protobuf `Event`, CRC-32C. Only what scalars need, by hand:
//! <https://github.com/tensorflow/tensorboard/blob/master/tensorboard/compat/proto/event.proto>.

use flatout_core::error::FileError;
use std::fs::File;
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

pub struct EventFile {
    path: PathBuf,
    file: File,
    /// How far the file is whole: a write that failed half-way is written over.
    written_bytes: u64,
    waiting: Vec<u8>,
}

impl EventFile {
    /// Begins a file in `folder`. Files of an earlier training are removed when this one begins anew; when it goes on from a step,
    /// TensorBoard is told to forget what they hold beyond it.
    pub fn open(folder: &Path, resumed_at: Option<u64>) -> Result<Self, FileError> {
        std::fs::create_dir_all(folder).map_err(|source| FileError::writing(folder, source))?;
        if resumed_at.is_none() {
            remove_event_files(folder)?;
        }
        let (path, file) = new_file(folder)?;
        let mut event_file = Self {
            path,
            file,
            written_bytes: 0,
            waiting: Vec::new(),
        };
        // file_version = 3
        event_file.event(0, |event| bytes_field(event, 3, b"brain.Event:2"));
        if let Some(step) = resumed_at {
            // session_log = 7 { status = 1: START }
            event_file.event(step + 1, |event| bytes_field(event, 7, &[0x08, 1]));
        }
        event_file.flush()?;
        Ok(event_file)
    }

    /// Waits in memory for the next [`EventFile::flush`].
    pub fn scalar(&mut self, tag: &str, step: u64, value: f64) {
        let mut entry = Vec::new();
        bytes_field(&mut entry, 1, tag.as_bytes());
        entry.push(field(2, 5)); // simple_value, 32 bits
        entry.extend((value as f32).to_le_bytes());
        let mut summary = Vec::new();
        bytes_field(&mut summary, 1, &entry);
        self.event(step, |event| bytes_field(event, 5, &summary));
    }

    pub fn flush(&mut self) -> Result<(), FileError> {
        let result = self
            .file
            .seek(SeekFrom::Start(self.written_bytes))
            .and_then(|_| self.file.write_all(&self.waiting));
        result.map_err(|source| FileError::writing(&self.path, source))?;
        self.written_bytes += self.waiting.len() as u64;
        self.waiting.clear();
        Ok(())
    }

    fn event(&mut self, step: u64, fill: impl FnOnce(&mut Vec<u8>)) {
        let mut event = vec![field(1, 1)]; // wall_time, 64 bits
        event.extend(wall_time_s().to_le_bytes());
        event.push(field(2, 0)); // step
        varint(&mut event, step);
        fill(&mut event);
        let length = (event.len() as u64).to_le_bytes();
        self.waiting.extend(length);
        self.waiting.extend(masked_crc32c(&length).to_le_bytes());
        self.waiting.extend(&event);
        self.waiting.extend(masked_crc32c(&event).to_le_bytes());
    }
}

/// TensorBoard reads the files of a folder in the order of their names: time first, then a number for those of one second.
fn new_file(folder: &Path) -> Result<(PathBuf, File), FileError> {
    let seconds = wall_time_s() as u64;
    let mut number = 0;
    loop {
        let path = folder.join(format!("events.out.tfevents.{seconds:010}.flatout.{number}"));
        match File::create_new(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            Err(source) => return Err(FileError::writing(&path, source)),
        }
    }
}

fn remove_event_files(folder: &Path) -> Result<(), FileError> {
    let entries = std::fs::read_dir(folder).map_err(|source| FileError::reading(folder, source))?;
    let ours = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("events.out.tfevents.");
    for entry in entries.flatten().filter(|entry| ours(&entry.file_name())) {
        let path = entry.path();
        std::fs::remove_file(&path).map_err(|source| FileError::writing(&path, source))?;
    }
    Ok(())
}

fn wall_time_s() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0.0, |time| time.as_secs_f64())
}

/// Protobuf's tag of a field below 16.
const fn field(number: u8, wire_type: u8) -> u8 {
    (number << 3) | wire_type
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn bytes_field(out: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    out.push(field(number, 2));
    varint(out, bytes.len() as u64);
    out.extend(bytes);
}

/// Reflected Castagnoli polynomial, bit by bit: an event is some fifty bytes.
fn crc32c(bytes: &[u8]) -> u32 {
    let of_byte = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 }
        })
    };
    !bytes.iter().fold(!0, of_byte)
}

/// As TFRecord stores it, so that a checksum of data with checksums inside stays a good one.
fn masked_crc32c(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_checksums_and_numbers() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa); // RFC 3720, B.4
        let mut out = Vec::new();
        varint(&mut out, 300);
        assert_eq!(out, [0xac, 0x02]);
    }
}
