//! How many CPUs this process may really use: affinity ∩ cgroup quota. Advice that counts the machine's cores instead is
//! what drowns jobs on shared machines.

use crate::cgroup::{self, Version};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct UsableCpus {
    /// CPUs the kernel runs.
    pub online: usize,
    /// CPUs in this process's affinity mask.
    pub affinity: usize,
    /// CPU time the cgroup grants, in CPUs; `None` without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<f64>,
}

impl UsableCpus {
    pub fn here() -> Self {
        Self {
            online: online(),
            affinity: affinity(),
            quota: quota(Path::new("/")),
        }
    }

    /// Whole CPUs that threads can fill: the smaller of affinity and quota, at least 1.
    pub fn count(&self) -> usize {
        let quota = self.quota.map_or(usize::MAX, |quota| quota.ceil() as usize);
        self.affinity.min(quota).max(1)
    }
}

fn online() -> usize {
    // SAFETY: sysconf only reads a number.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    usize::try_from(count).unwrap_or(1).max(1)
}

fn affinity() -> usize {
    allowed().len()
}

/// The numbers of the CPUs in this process's affinity mask; all online ones when the mask cannot be read.
pub fn allowed() -> Vec<usize> {
    // SAFETY: `set` is a plain bit mask that the kernel fills; CPU_ISSET reads it within its size.
    let mut cpus: Vec<usize> = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, std::mem::size_of::<libc::cpu_set_t>(), &mut set) == 0 {
            (0..libc::CPU_SETSIZE as usize)
                .filter(|cpu| libc::CPU_ISSET(*cpu, &set))
                .collect()
        } else {
            Vec::new()
        }
    };
    if cpus.is_empty() {
        cpus = (0..online()).collect();
    }
    cpus
}

/// The tightest CPU quota of this process's cgroup and its ancestors, v2 or v1. `root` is `/` but in tests.
fn quota(root: &Path) -> Option<f64> {
    let groups = cgroup::groups(root, "cpu");
    let quotas = groups.iter().filter_map(|group| match group.version {
        Version::Two => quota_v2(&group.folder),
        Version::One => quota_v1(&group.folder),
    });
    quotas.reduce(f64::min)
}

fn quota_v2(group: &Path) -> Option<f64> {
    let text = fs::read_to_string(group.join("cpu.max")).ok()?;
    let (quota, period) = text.trim().split_once(' ')?;
    ratio(quota.parse().ok()?, period.parse().ok()?)
}

fn quota_v1(group: &Path) -> Option<f64> {
    let read = |name: &str| {
        fs::read_to_string(group.join(name))
            .ok()?
            .trim()
            .parse::<f64>()
            .ok()
    };
    ratio(read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?)
}

fn ratio(quota: f64, period: f64) -> Option<f64> {
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroup::tree;

    #[test]
    fn the_tightest_ancestor_of_v2_counts() {
        let root = tree(&[
            ("proc/self/cgroup", "0::/slurm/job_7/step_0\n"),
            ("sys/fs/cgroup/slurm/job_7/cpu.max", "400000 100000\n"),
            ("sys/fs/cgroup/slurm/job_7/step_0/cpu.max", "max 100000\n"),
        ]);
        assert_eq!(quota(root.path()), Some(4.0));
    }

    #[test]
    fn v1_quota_and_none() {
        let root = tree(&[
            ("proc/self/cgroup", "4:cpu,cpuacct:/box\n1:name=systemd:/\n"),
            ("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "150000"),
            ("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000"),
        ]);
        assert_eq!(quota(root.path()), Some(1.5));
        let unlimited = tree(&[
            ("proc/self/cgroup", "4:cpu:/\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1"),
        ]);
        assert_eq!(quota(unlimited.path()), None);
        assert_eq!(quota(tree(&[]).path()), None);
    }

    #[test]
    fn a_fraction_rounds_up_and_never_reaches_zero() {
        assert_eq!(
            UsableCpus {
                online: 64,
                affinity: 16,
                quota: Some(3.5)
            }
            .count(),
            4
        );
        assert_eq!(
            UsableCpus {
                online: 64,
                affinity: 16,
                quota: Some(0.1)
            }
            .count(),
            1
        );
        assert_eq!(
            UsableCpus {
                online: 64,
                affinity: 16,
                quota: None
            }
            .count(),
            16
        );
        assert!(UsableCpus::here().count() >= 1);
        assert_eq!(UsableCpus::here().affinity, allowed().len());
    }
}
