//! How much memory this process may really use: the machine's, or that of its control group where that is less. Who asks the machine
//! alone is killed in a container and in a Slurm job.

use crate::cgroup::{self, Group, Version};
use std::fs;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsableMemory {
    pub free_bytes: u64,
    pub total_bytes: u64,
}

impl UsableMemory {
    /// `None` if the machine does not report it.
    pub fn here() -> Option<Self> {
        within(Path::new("/"))
    }
}

fn within(root: &Path) -> Option<UsableMemory> {
    let machine = parse_meminfo(&fs::read_to_string(root.join("proc/meminfo")).ok()?)?;
    let limits = cgroup::groups(root, "memory")
        .into_iter()
        .filter_map(|group| limit(&group));
    Some(limits.fold(machine, |least, limit| UsableMemory {
        free_bytes: least.free_bytes.min(limit.free_bytes),
        total_bytes: least.total_bytes.min(limit.total_bytes),
    }))
}

fn parse_meminfo(text: &str) -> Option<UsableMemory> {
    let kibibytes = |name| field(text, name)?.checked_mul(1024);
    Some(UsableMemory {
        free_bytes: kibibytes("MemAvailable:")?,
        total_bytes: kibibytes("MemTotal:")?,
    })
}

/// What a group may hold; pages of files that nobody has used of late are given back when others need them. `None` without a limit.
fn limit(group: &Group) -> Option<UsableMemory> {
    let [most, used, idle] = match group.version {
        Version::Two => ["memory.max", "memory.current", "inactive_file"],
        Version::One => [
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
            "total_inactive_file",
        ],
    };
    let read = |name: &str| fs::read_to_string(group.folder.join(name)).ok();
    let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
    let total_bytes = number(most)?;
    let idle_bytes = read("memory.stat")
        .and_then(|text| field(&text, idle))
        .unwrap_or(0);
    let held_bytes = number(used)?.saturating_sub(idle_bytes);
    Some(UsableMemory {
        free_bytes: total_bytes.saturating_sub(held_bytes),
        total_bytes,
    })
}

/// The number after a name at the beginning of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().map(str::split_whitespace);
    lines.find_map(|mut words| (words.next()? == name).then(|| words.next()?.parse().ok())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroup::tree;

    const MEMINFO: (&str, &str) = (
        "proc/meminfo",
        "MemTotal:       24000 kB\nMemFree:  1 kB\nMemAvailable:   12000 kB\n",
    );

    fn room(free_kib: u64, total_kib: u64) -> Option<UsableMemory> {
        Some(UsableMemory {
            free_bytes: free_kib * 1024,
            total_bytes: total_kib * 1024,
        })
    }

    #[test]
    fn without_a_limit_it_is_the_machines() {
        assert_eq!(within(tree(&[MEMINFO]).path()), room(12000, 24000));
        let unlimited = tree(&[
            MEMINFO,
            ("proc/self/cgroup", "0::/box\n"),
            ("sys/fs/cgroup/box/memory.max", "max\n"),
            ("sys/fs/cgroup/box/memory.current", "99\n"),
        ]);
        assert_eq!(within(unlimited.path()), room(12000, 24000));
        assert_eq!(
            within(tree(&[("proc/meminfo", "MemTotal: many kB")]).path()),
            None
        );
        assert_eq!(within(tree(&[]).path()), None);
        let here = UsableMemory::here().unwrap();
        assert!(here.free_bytes <= here.total_bytes && here.free_bytes > 0);
    }

    #[test]
    fn respects_limits_of_parent_cgroups() {
        let job = tree(&[
            MEMINFO,
            ("proc/self/cgroup", "0::/slurm/job_7/step_0\n"),
            ("sys/fs/cgroup/slurm/job_7/memory.max", "8192000\n"),
            ("sys/fs/cgroup/slurm/job_7/memory.current", "6144000\n"),
            (
                "sys/fs/cgroup/slurm/job_7/memory.stat",
                "anon 7\ninactive_file 2048000\n",
            ),
            ("sys/fs/cgroup/slurm/job_7/step_0/memory.max", "max\n"),
        ]);
        // 8000 KiB of which 6000 are held, 2000 of those by files nobody reads.
        assert_eq!(within(job.path()), room(4000, 8000));
    }

    #[test]
    fn reads_cgroup_v1_files() {
        let container = tree(&[
            MEMINFO,
            ("proc/self/cgroup", "4:cpu,cpuacct:/box\n7:memory:/box\n"),
            ("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "4096000"),
            ("sys/fs/cgroup/memory/box/memory.usage_in_bytes", "1024000"),
            // No limit, as the kernel writes it.
            (
                "sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712",
            ),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "1024000"),
        ]);
        assert_eq!(within(container.path()), room(3000, 4000));
    }
}
