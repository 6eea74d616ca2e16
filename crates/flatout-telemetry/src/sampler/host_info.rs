//! What the machine is, for `run.json`.

use crate::sources::proc_file;
use std::fs;

pub fn name() -> String {
    read_line("/proc/sys/kernel/hostname")
}

pub fn kernel() -> String {
    read_line("/proc/sys/kernel/osrelease")
}

pub fn memory_bytes() -> Option<u64> {
    let text = fs::read("/proc/meminfo").ok()?;
    proc_file::field(&text, b"MemTotal:").map(|kilobytes| kilobytes * 1024)
}

fn read_line(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}
