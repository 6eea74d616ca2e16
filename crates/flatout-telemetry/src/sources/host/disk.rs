//! `/proc/diskstats`: bytes read and written on whole disks, and how busy the busiest was.

use super::rate;
use crate::sources::proc_file::{ProcFile, number};
use flatout_record::HostSample;
use std::collections::BTreeMap;
use std::path::Path;

/// The kernel counts in sectors of 512 bytes, whatever the disk's own are.
const SECTOR_BYTES: f64 = 512.0;

pub struct DiskReader {
    file: ProcFile,
    /// By name; `None` for what is not a whole disk (a partition, a loop or RAM device), so that nothing counts twice.
    disks: BTreeMap<String, Option<Counters>>,
    is_disk: fn(&str) -> bool,
}

#[derive(Clone, Copy, Default)]
struct Counters {
    read_sectors: u64,
    written_sectors: u64,
    busy_ms: u64,
    known: bool,
}

impl DiskReader {
    pub fn new() -> Self {
        Self {
            file: ProcFile::open("/proc/diskstats"),
            disks: BTreeMap::new(),
            is_disk,
        }
    }

    pub fn read(&mut self, seconds: Option<f64>, values: &mut HostSample) {
        let Some(text) = self.file.read() else {
            return;
        };
        let (mut read, mut written, mut busy) = (None, None, None::<f64>);
        for line in text.split(|byte| *byte == b'\n') {
            let Some((name, now)) = counters(line) else {
                continue;
            };
            if !self.disks.contains_key(name) {
                let entry = (self.is_disk)(name).then(Counters::default);
                self.disks.insert(name.to_owned(), entry);
            }
            let Some(Some(before)) = self.disks.get_mut(name) else {
                continue;
            };
            if before.known {
                let grew = |before, now| rate(Some(before), now, seconds);
                add(&mut read, grew(before.read_sectors, now.read_sectors));
                add(&mut written, grew(before.written_sectors, now.written_sectors));
                if let Some(share) = grew(before.busy_ms, now.busy_ms) {
                    busy = Some(busy.unwrap_or(0.0).max((share / 1000.0).min(1.0)));
                }
            }
            *before = now;
        }
        values.disk_read_bytes_s = read.map(|sectors| (sectors * SECTOR_BYTES).round());
        values.disk_write_bytes_s = written.map(|sectors| (sectors * SECTOR_BYTES).round());
        values.disk_busy = busy.map(|share| (share * 1000.0).round() / 1000.0);
    }
}

fn add(sum: &mut Option<f64>, value: Option<f64>) {
    if let Some(value) = value {
        *sum = Some(sum.unwrap_or(0.0) + value);
    }
}

/// A whole disk has hardware (or a network, for nvme-of) behind it; device-mapper and md sit on disks already counted.
fn is_disk(name: &str) -> bool {
    Path::new("/sys/block").join(name).join("device").exists()
}

/// `  8 0 sda reads merged sectors ms writes merged sectors ms now busy_ms …`.
fn counters(line: &[u8]) -> Option<(&str, Counters)> {
    let (_, rest) = number(line)?;
    let (_, rest) = number(rest)?;
    let rest = rest.trim_ascii_start();
    let end = rest.iter().position(|byte| *byte == b' ')?;
    let name = std::str::from_utf8(&rest[..end]).ok()?;
    let mut fields = [0u64; 10];
    let mut rest = &rest[end..];
    for field in &mut fields {
        (*field, rest) = number(rest)?;
    }
    let now = Counters {
        read_sectors: fields[2],
        written_sectors: fields[6],
        busy_ms: fields[9],
        known: true,
    };
    Some((name, now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_disks_count_and_the_busiest_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("diskstats");
        let write = |sda: u64, nvme: u64| {
            let text = format!(
                "   8       0 sda 1 0 {sda} 0 1 0 {sda} 0 0 {sda} 0\n 8 1 sda1 9 0 {sda} 0 9 0 9 0 0 9 0\n 259 0 nvme0n1 1 0 {nvme} 0 1 0 0 0 0 {nvme} 0\n"
            );
            std::fs::write(&path, text).unwrap();
        };
        write(0, 0);
        let mut reader = DiskReader {
            file: ProcFile::open(&path),
            disks: BTreeMap::new(),
            is_disk: |name| !name.ends_with("sda1"),
        };
        let mut values = HostSample::default();
        reader.read(None, &mut values);
        assert_eq!(values.disk_read_bytes_s, None);
        write(200, 900);
        reader.read(Some(1.0), &mut values);
        assert_eq!(values.disk_read_bytes_s, Some(1100.0 * 512.0));
        assert_eq!(values.disk_write_bytes_s, Some(200.0 * 512.0));
        assert_eq!(values.disk_busy, Some(0.9));
    }

    #[test]
    fn foreign_lines_are_passed_over() {
        for line in [
            b"".as_slice(),
            b"8 0",
            b"8 0 sda",
            b"8 0 sda 1 2",
            b"\xff\xfe 1 2 \xff",
        ] {
            assert!(counters(line).is_none());
        }
    }
}
