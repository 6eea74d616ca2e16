//! One process of the tree: its open files and the counters of its last reading.

use super::stat::{self, Stat};
use crate::sources::proc_file::{field, number, read_all};
use flatout_record::ProcessSample;
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The exact private memory costs the kernel a walk over the page tables under the process's lock (some 10 ms for a
/// gigabyte): a few times at first, to see whether it grows once the process has what it needs; then rarely, and so rarely
/// that it takes a thousandth of the time.
const PRIVATE_FIRST: u32 = 4;
const PRIVATE_SOON: Duration = Duration::from_secs(4);
const PRIVATE_EVERY: Duration = Duration::from_secs(10);
const PRIVATE_EVERY_AT_MOST: Duration = Duration::from_secs(120);
const PRIVATE_COST: u32 = 1000;
/// A command line may be megabytes; the beginning names the program.
const COMMAND_BYTES: usize = 400;

pub struct Member {
    pid: u32,
    folder: PathBuf,
    stat: File,
    /// `None`: not permitted, as for another user's process.
    io: Option<File>,
    status: Option<File>,
    started: u64,
    command: Option<String>,
    before: Option<Counters>,
    private_bytes: Option<u64>,
    private_due: Instant,
    private_reads: u32,
}

#[derive(Clone, Copy)]
struct Counters {
    cpu_ticks: u64,
    kernel_ticks: u64,
    minor_faults: u64,
    switches: Option<(u64, u64)>,
    bytes: Option<(u64, u64)>,
}

impl Member {
    pub fn open(pid: u32, buffer: &mut Vec<u8>) -> Option<Self> {
        let folder = PathBuf::from(format!("/proc/{pid}"));
        let stat = File::open(folder.join("stat")).ok()?;
        let length = read_all(&stat, buffer).ok()?;
        let first = stat::parse(&buffer[..length])?;
        Some(Self {
            pid,
            io: File::open(folder.join("io")).ok(),
            status: File::open(folder.join("status")).ok(),
            started: first.started,
            command: command(pid),
            stat,
            folder,
            before: None,
            private_bytes: None,
            private_due: Instant::now(),
            private_reads: 0,
        })
    }

    /// `None` when the process has ended, also while its parent has not yet taken notice.
    pub fn read(
        &mut self,
        now: Instant,
        passed: Option<Duration>,
        buffer: &mut Vec<u8>,
    ) -> Option<ProcessSample> {
        let length = read_all(&self.stat, buffer).ok()?;
        let stat = stat::parse(&buffer[..length])?;
        if stat.started != self.started || matches!(stat.state, b'Z' | b'X') {
            return None;
        }
        let counters = Counters {
            cpu_ticks: stat.cpu_ticks,
            kernel_ticks: stat.kernel_ticks,
            minor_faults: stat.minor_faults,
            switches: self.pair(
                self.status.as_ref(),
                b"voluntary_ctxt_switches:",
                b"nonvoluntary_ctxt_switches:",
                buffer,
            ),
            bytes: self.pair(self.io.as_ref(), b"read_bytes:", b"write_bytes:", buffer),
        };
        if now >= self.private_due {
            self.read_private(now, buffer);
        }
        let values = self.values(&stat, &counters, passed);
        self.before = Some(counters);
        Some(values)
    }

    fn values(&self, stat: &Stat, now: &Counters, passed: Option<Duration>) -> ProcessSample {
        let seconds = passed
            .map(|passed| passed.as_secs_f64())
            .filter(|seconds| *seconds > 0.0);
        let rate = |before: Option<u64>, now: Option<u64>| {
            Some((now?.checked_sub(before?)? as f64 / seconds? * 100.0).round() / 100.0)
        };
        let before = self.before.as_ref();
        let cpus = |before: Option<u64>, now: u64| {
            rate(before, Some(now)).map(|ticks| (ticks / clock_ticks_s() * 100.0).round() / 100.0)
        };
        let switches = before.and_then(|before| before.switches);
        let bytes = before.and_then(|before| before.bytes);
        ProcessSample {
            parent: Some(stat.parent),
            command: self.command.clone(),
            state: Some(char::from(stat.state).to_string()),
            cpus: cpus(before.map(|before| before.cpu_ticks), now.cpu_ticks),
            kernel_cpus: cpus(before.map(|before| before.kernel_ticks), now.kernel_ticks),
            faults_s: rate(before.map(|before| before.minor_faults), Some(now.minor_faults)).map(f64::round),
            threads: Some(stat.threads),
            rss_bytes: Some(stat.rss_pages.saturating_mul(page_bytes())),
            private_bytes: self.private_bytes,
            voluntary_switches_s: rate(switches.map(|pair| pair.0), now.switches.map(|pair| pair.0)),
            involuntary_switches_s: rate(switches.map(|pair| pair.1), now.switches.map(|pair| pair.1)),
            read_bytes_s: rate(bytes.map(|pair| pair.0), now.bytes.map(|pair| pair.0)),
            write_bytes_s: rate(bytes.map(|pair| pair.1), now.bytes.map(|pair| pair.1)),
        }
    }

    fn pair(
        &self,
        file: Option<&File>,
        first: &[u8],
        second: &[u8],
        buffer: &mut Vec<u8>,
    ) -> Option<(u64, u64)> {
        let length = read_all(file?, buffer).ok()?;
        let text = &buffer[..length];
        Some((field(text, first)?, field(text, second)?))
    }

    fn read_private(&mut self, now: Instant, buffer: &mut Vec<u8>) {
        let began = Instant::now();
        self.private_reads = self.private_reads.saturating_add(1);
        let text = File::open(self.folder.join("smaps_rollup"))
            .ok()
            .and_then(|file| read_all(&file, buffer).ok());
        self.private_bytes = text.and_then(|length| {
            let text = &buffer[..length];
            let kilobytes = field(text, b"Private_Clean:")? + field(text, b"Private_Dirty:")?;
            Some(kilobytes * 1024)
        });
        let rest = began.elapsed().saturating_mul(PRIVATE_COST);
        self.private_due = now
            + if self.private_reads < PRIVATE_FIRST {
                PRIVATE_SOON
            } else {
                rest.clamp(PRIVATE_EVERY, PRIVATE_EVERY_AT_MOST)
            };
    }

    /// Adds the process's children to the list: those its main thread started, or (`deep`) any of its threads.
    pub fn children(&self, deep: bool, buffer: &mut Vec<u8>, into: &mut Vec<u32>) {
        let tasks = self.folder.join("task");
        let mut read = |path: PathBuf| {
            let Some(length) = File::open(path)
                .ok()
                .and_then(|file| read_all(&file, buffer).ok())
            else {
                return;
            };
            let mut rest = &buffer[..length];
            while let Some((pid, left)) = number(rest) {
                into.extend(u32::try_from(pid));
                rest = left;
            }
        };
        if deep && let Ok(entries) = fs::read_dir(&tasks) {
            for entry in entries.flatten() {
                read(entry.path().join("children"));
            }
        } else {
            read(tasks.join(self.pid.to_string()).join("children"));
        }
    }
}

/// The command line with blanks between its arguments, its beginning only; the short name for a kernel thread.
pub fn command(pid: u32) -> Option<String> {
    let text = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let text = text.strip_suffix(b"\0").unwrap_or(&text);
    if text.is_empty() {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        return Some(name.trim().to_owned());
    }
    // A cut in the middle of a secret would still be part of it.
    let words: Vec<_> = text
        .split(|byte| *byte == 0)
        .map(String::from_utf8_lossy)
        .take(COMMAND_BYTES)
        .collect();
    let shown = flatout_core::secrets::redact(&words).join(" ");
    let end = shown.floor_char_boundary(COMMAND_BYTES);
    Some(
        shown[..end]
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect(),
    )
}

fn clock_ticks_s() -> f64 {
    // SAFETY: sysconf only reads a number.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    if ticks > 0 { ticks as f64 } else { 100.0 }
}

pub fn page_bytes() -> u64 {
    // SAFETY: sysconf only reads a number.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).unwrap_or(4096)
}
