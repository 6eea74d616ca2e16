//! `/proc/stat`: load of the CPUs this process may run on, the run queue, context switches.

use super::rate;
use crate::sources::proc_file::{ProcFile, number};
use flatout_core::cpus;
use flatout_record::HostSample;

pub struct CpuReader {
    file: ProcFile,
    /// The CPUs of the affinity mask; all when it cannot be read.
    allowed: Vec<usize>,
    before: Vec<Times>,
    now: Vec<Times>,
    switches: Option<u64>,
}

/// Clock ticks of one CPU since boot.
#[derive(Clone, Copy, Default)]
struct Times {
    cpu: usize,
    busy: u64,
    iowait: u64,
    steal: u64,
    total: u64,
}

impl CpuReader {
    pub fn new() -> Self {
        Self {
            file: ProcFile::open("/proc/stat"),
            allowed: cpus::allowed(),
            before: Vec::new(),
            now: Vec::new(),
            switches: None,
        }
    }

    pub fn read(&mut self, seconds: Option<f64>, values: &mut HostSample) {
        let Some(text) = self.file.read() else {
            return;
        };
        std::mem::swap(&mut self.before, &mut self.now);
        self.now.clear();
        let mut switches = None;
        for line in text.split(|byte| *byte == b'\n') {
            if let Some(rest) = line.strip_prefix(b"cpu") {
                if let Some(times) = times(rest).filter(|times| self.allowed.contains(&times.cpu)) {
                    self.now.push(times);
                }
            } else if let Some(rest) = line.strip_prefix(b"ctxt ") {
                switches = number(rest).map(|(value, _)| value);
            } else if let Some(rest) = line.strip_prefix(b"procs_running ") {
                values.run_queue = number(rest).map(|(value, _)| value as f64);
            }
        }
        values.context_switches_s = switches
            .and_then(|now| rate(self.switches, now, seconds))
            .map(f64::round);
        self.switches = switches;
        self.shares(values);
    }

    fn shares(&self, values: &mut HostSample) {
        let mut cores = values.core_util.take().unwrap_or_default();
        cores.clear();
        let (mut busy, mut iowait, mut steal, mut total) = (0, 0, 0, 0);
        for (before, now) in self.before.iter().zip(&self.now) {
            if before.cpu != now.cpu || self.before.len() != self.now.len() {
                // A CPU went on- or offline; the next tick compares like with like again.
                return;
            }
            let passed = now.total.saturating_sub(before.total);
            let worked = now.busy.saturating_sub(before.busy);
            cores.push(share(worked, passed));
            busy += worked;
            iowait += now.iowait.saturating_sub(before.iowait);
            steal += now.steal.saturating_sub(before.steal);
            total += passed;
        }
        if total > 0 {
            values.cpu_util = Some(share(busy, total));
            values.iowait = Some(share(iowait, total));
            values.steal = Some(share(steal, total));
            values.core_util = Some(cores);
        }
    }
}

/// Of whole per cents: the counters are no finer, and a record with 16 digits a core would be large.
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    (part.min(whole) as f64 / whole as f64 * 1000.0).round() / 1000.0
}

/// `3 user nice system idle iowait irq softirq steal guest guest_nice`; the line of all CPUs has no number and is not ours.
fn times(rest: &[u8]) -> Option<Times> {
    if !rest.first()?.is_ascii_digit() {
        return None;
    }
    let (cpu, mut rest) = number(rest)?;
    let mut fields = [0u64; 8];
    for field in &mut fields {
        let Some((value, left)) = number(rest) else {
            break;
        };
        (*field, rest) = (value, left);
    }
    let [user, nice, system, idle, iowait, irq, softirq, steal] = fields;
    let busy = user + nice + system + irq + softirq;
    Some(Times {
        cpu: cpu as usize,
        busy,
        iowait,
        steal,
        total: busy + idle + iowait + steal,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_and_the_sum_of_all_is_not() {
        let times = times(b"12 100 5 50 800 20 3 2 20 0 0").unwrap();
        assert_eq!((times.cpu, times.busy, times.total), (12, 160, 1000));
        assert!(super::times(b"  9 9 9 9").is_none());
    }

    #[test]
    fn shares_are_of_what_passed() {
        let mut reader = CpuReader::new();
        let at = |cpu, busy, total| Times {
            cpu,
            busy,
            total,
            ..Times::default()
        };
        reader.before = vec![at(0, 100, 1000), at(1, 100, 1000)];
        reader.now = vec![at(0, 200, 1100), at(1, 150, 1100)];
        let mut values = HostSample::default();
        reader.shares(&mut values);
        assert_eq!(values.core_util, Some(vec![1.0, 0.5]));
        assert_eq!(values.cpu_util, Some(0.75));
        reader.now = vec![at(0, 250, 1200)];
        let mut values = HostSample::default();
        reader.shares(&mut values);
        assert_eq!(values.cpu_util, None);
    }
}
