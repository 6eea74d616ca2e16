//! `/proc/meminfo`, `/proc/vmstat`, and the shared memory loader workers pass batches through.

use super::rate;
use crate::sources::proc_file::{ProcFile, field};
use flatout_record::HostSample;

pub struct MemoryReader {
    meminfo: ProcFile,
    vmstat: ProcFile,
    page_bytes: u64,
    swapped_in: Option<u64>,
}

impl MemoryReader {
    pub fn new() -> Self {
        // SAFETY: sysconf only reads a number.
        let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        Self {
            meminfo: ProcFile::open("/proc/meminfo"),
            vmstat: ProcFile::open("/proc/vmstat"),
            page_bytes: u64::try_from(page_bytes).unwrap_or(4096),
            swapped_in: None,
        }
    }

    pub fn read(&mut self, seconds: Option<f64>, values: &mut HostSample) {
        if let Some(text) = self.meminfo.read() {
            let bytes = |key: &[u8]| field(text, key).map(|kilobytes| kilobytes * 1024);
            values.mem_total_bytes = bytes(b"MemTotal:");
            values.mem_available_bytes = bytes(b"MemAvailable:");
            values.swap_used_bytes = match (bytes(b"SwapTotal:"), bytes(b"SwapFree:")) {
                (Some(total), Some(free)) => Some(total.saturating_sub(free)),
                _ => None,
            };
        }
        let swapped_in = self.vmstat.read().and_then(|text| field(text, b"pswpin "));
        values.swap_in_bytes_s = swapped_in
            .and_then(|now| rate(self.swapped_in, now, seconds))
            .map(|pages| pages * self.page_bytes as f64);
        self.swapped_in = swapped_in;
        (values.shm_used_bytes, values.shm_total_bytes) = shared_memory().unzip();
    }
}

/// Used and total bytes of `/dev/shm`; a container's default of 64 MiB is a classic cause of dying workers.
pub fn shared_memory() -> Option<(u64, u64)> {
    // SAFETY: `stat` is plain data that statvfs fills; the path is a constant C string.
    let stat = unsafe {
        let mut stat: libc::statvfs = std::mem::zeroed();
        (libc::statvfs(c"/dev/shm".as_ptr(), &mut stat) == 0).then_some(stat)
    }?;
    let total = stat.f_blocks.saturating_mul(stat.f_frsize);
    let free = stat.f_bfree.saturating_mul(stat.f_frsize);
    (total > 0).then(|| (total.saturating_sub(free), total))
}
