//! The machine: CPUs, memory, pressure, disks, `/dev/shm`. Plain reads of /proc into buffers kept from tick to tick.
//! Nothing here is about a single process.

mod cpu;
mod disk;
mod memory;
mod pressure;
mod quota_use;

pub use memory::shared_memory;

use super::{Source, TickTime};
use flatout_record::{EventKind, HostSample, Sample};
use std::time::{Duration, Instant};

/// The kernel counts CPU time in steps of 10 ms, so rates over less than this are mostly rounding; faster ticks repeat the
/// last values.
const FASTEST: Duration = Duration::from_millis(200);

pub struct HostSource {
    cpu: cpu::CpuReader,
    quota: quota_use::QuotaReader,
    memory: memory::MemoryReader,
    pressure: pressure::PressureReader,
    disk: disk::DiskReader,
    last: Option<Instant>,
    values: HostSample,
}

impl HostSource {
    #[allow(clippy::new_without_default, reason = "it opens files")]
    pub fn new() -> Self {
        Self {
            cpu: cpu::CpuReader::new(),
            quota: quota_use::QuotaReader::new(),
            memory: memory::MemoryReader::new(),
            pressure: pressure::PressureReader::new(),
            disk: disk::DiskReader::new(),
            last: None,
            values: HostSample::default(),
        }
    }
}

impl Source for HostSource {
    fn read(&mut self, tick: &TickTime, sample: &mut Sample, _: &mut Vec<EventKind>) {
        let passed = self.last.map(|last| tick.now.saturating_duration_since(last));
        // Half a millisecond of grace: a tick that comes a hair early must not wait for the one after it.
        if passed.is_none_or(|passed| passed + Duration::from_micros(500) >= FASTEST) {
            let seconds = passed.map(|passed| passed.as_secs_f64());
            self.cpu.read(seconds, &mut self.values);
            self.quota.read(seconds, &mut self.values);
            self.memory.read(seconds, &mut self.values);
            self.pressure.read(&mut self.values);
            self.disk.read(seconds, &mut self.values);
            self.last = Some(tick.now);
        }
        sample.host.clone_from(&self.values);
    }
}

/// How much a counter grew a second. A counter that went backwards (a disk was taken out) says nothing.
fn rate(before: Option<u64>, now: u64, seconds: Option<f64>) -> Option<f64> {
    let grown = now.checked_sub(before?)?;
    seconds
        .filter(|seconds| *seconds > 0.0)
        .map(|seconds| grown as f64 / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(source: &mut HostSource, now: Instant) -> HostSample {
        let mut sample = Sample::default();
        let tick = TickTime {
            now,
            interval: Duration::from_secs(1),
            patience: Duration::ZERO,
        };
        source.read(&tick, &mut sample, &mut Vec::new());
        sample.host
    }

    #[test]
    fn this_machine_is_read_and_rates_need_two_ticks() {
        let mut source = HostSource::new();
        let start = Instant::now();
        let first = read(&mut source, start);
        assert!(first.mem_total_bytes.unwrap() > 0 && first.mem_available_bytes.is_some());
        assert!(first.run_queue.unwrap() >= 1.0);
        assert_eq!((first.cpu_util, first.context_switches_s), (None, None));
        // Something for the counters to count: the kernel's step is 10 ms.
        while start.elapsed() < Duration::from_millis(50) {}
        let second = read(&mut source, start + Duration::from_secs(1));
        let util = second.cpu_util.unwrap();
        assert!((0.0..=1.0).contains(&util));
        assert!(
            second
                .core_util
                .unwrap()
                .iter()
                .all(|core| (0.0..=1.0).contains(core))
        );
        assert!(second.context_switches_s.is_some());
    }

    #[test]
    fn ticks_faster_than_the_kernels_clock_repeat_the_values() {
        let mut source = HostSource::new();
        let start = Instant::now();
        let first = read(&mut source, start);
        assert_eq!(read(&mut source, start + Duration::from_millis(50)), first);
    }

    #[test]
    fn ignores_counters_that_went_backwards() {
        assert_eq!(rate(Some(10), 5, Some(1.0)), None);
        assert_eq!(rate(Some(10), 15, Some(0.5)), Some(10.0));
        assert_eq!(rate(None, 15, Some(0.5)), None);
        assert_eq!(rate(Some(1), 15, Some(0.0)), None);
    }
}
