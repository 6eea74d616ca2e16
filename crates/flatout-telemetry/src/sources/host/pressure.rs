//! Pressure stall information: the share of the last ten seconds in which somebody waited for CPU, disk or memory.

use crate::sources::proc_file::ProcFile;
use flatout_record::HostSample;

pub struct PressureReader {
    cpu: ProcFile,
    io: ProcFile,
    memory: ProcFile,
}

impl PressureReader {
    pub fn new() -> Self {
        Self {
            cpu: ProcFile::open("/proc/pressure/cpu"),
            io: ProcFile::open("/proc/pressure/io"),
            memory: ProcFile::open("/proc/pressure/memory"),
        }
    }

    pub fn read(&mut self, values: &mut HostSample) {
        values.psi_cpu = self.cpu.read().and_then(some_average);
        values.psi_io = self.io.read().and_then(some_average);
        values.psi_memory = self.memory.read().and_then(some_average);
    }
}

/// `some avg10=1.53 avg60=0.87 …` gives 0.0153.
fn some_average(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let percent: f64 = line
        .split_whitespace()
        .find_map(|field| field.strip_prefix("avg10="))?
        .parse()
        .ok()?;
    (0.0..=100.0)
        .contains(&percent)
        .then(|| (percent * 100.0).round() / 1e4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ten_second_average_of_some() {
        let text =
            b"some avg10=1.53 avg60=0.87 avg300=0.73 total=1\nfull avg10=9.00 avg60=0 avg300=0 total=0\n";
        assert_eq!(some_average(text), Some(0.0153));
        assert_eq!(some_average(b"some avg10=nan\n"), None);
        assert_eq!(some_average(b""), None);
    }
}
