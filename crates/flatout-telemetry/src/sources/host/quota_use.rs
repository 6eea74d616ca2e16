//! Under a CPU quota the machine's cores say little: what counts is how much of the quota the cgroup has used. This reads
//! the cgroup's own counter and replaces `cpu_util` by the share of the quota.

use super::rate;
use crate::sources::proc_file::{ProcFile, field, number};
use flatout_core::cgroup::{self, Version};
use flatout_core::cpus::UsableCpus;
use flatout_record::HostSample;
use std::path::{Path, PathBuf};

pub struct QuotaReader {
    /// CPUs granted, when that is less than the affinity mask.
    quota: Option<f64>,
    file: ProcFile,
    microseconds: fn(&[u8]) -> Option<u64>,
    before: Option<u64>,
}

impl QuotaReader {
    pub fn new() -> Self {
        let usable = UsableCpus::here();
        let quota = usable.quota.filter(|quota| *quota < usable.affinity as f64);
        let (path, microseconds) = counter(Path::new("/"));
        Self {
            quota,
            file: ProcFile::open(path),
            microseconds,
            before: None,
        }
    }

    pub fn read(&mut self, seconds: Option<f64>, values: &mut HostSample) {
        let Some(quota) = self.quota else {
            return;
        };
        let used = self.file.read().and_then(self.microseconds);
        let cpus = used
            .and_then(|used| rate(self.before, used, seconds))
            .map(|rate| rate / 1e6);
        self.before = used;
        if let Some(cpus) = cpus {
            values.cpu_util = Some((cpus / quota * 1000.0).round().clamp(0.0, 1000.0) / 1000.0);
        }
    }
}

type Parse = fn(&[u8]) -> Option<u64>;

/// The file that counts the group's CPU time, and how to read it. In a container the group's own folder is the root.
fn counter(root: &Path) -> (PathBuf, Parse) {
    let version_2: Parse = |text| field(text, b"usage_usec ");
    let version_1: Parse = |text| number(text).map(|(nanoseconds, _)| nanoseconds / 1000);
    let files = cgroup::groups(root, "cpuacct")
        .into_iter()
        .map(|group| match group.version {
            Version::Two => (group.folder.join("cpu.stat"), version_2),
            Version::One => (group.folder.join("cpuacct.usage"), version_1),
        });
    let mut there = files.filter(|(path, _)| path.exists());
    there
        .next()
        .unwrap_or_else(|| (root.join("sys/fs/cgroup/cpu.stat"), version_2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_groups_counter_is_found_in_both_versions() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/self/cgroup", "4:cpu,cpuacct:/box\n");
        write("sys/fs/cgroup/cpuacct/box/cpuacct.usage", "7000000\n");
        let (path, parse) = counter(root.path());
        assert_eq!(parse(&fs::read(path).unwrap()), Some(7000));
        write("proc/self/cgroup", "0::/not/visible/here\n");
        write("sys/fs/cgroup/cpu.stat", "usage_usec 12\nuser_usec 3\n");
        let (path, parse) = counter(root.path());
        assert_eq!(parse(&fs::read(path).unwrap()), Some(12));
    }
}
