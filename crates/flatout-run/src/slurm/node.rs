//! What a partition's nodes have: a GPU's fair share of the CPUs and the memory is what one may ask for without blocking others.

use flatout_core::cpus::UsableCpus;
use flatout_slurm::call;

/// More loader workers a GPU brought nobody anything (Lightning#19391); more CPUs only make the job wait.
const MOST_CPUS: u64 = 16;
/// Without word from Slurm.
const USUAL_CPUS: usize = 8;
/// Left to the system, of a node's memory.
const SHARE_OF_MEMORY: f64 = 0.95;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeShape {
    pub cpus: u64,
    pub memory_mb: u64,
    pub gpus: u64,
}

impl NodeShape {
    /// The smallest GPU node of the partition, so that the request fits every one of them.
    pub fn of_partition(partition: Option<&str>) -> Option<Self> {
        let mut arguments = vec!["--noheader", "--Node", "--format=%c|%m|%G"];
        if let Some(partition) = partition {
            arguments.extend(["--partition", partition]);
        }
        Self::smallest(&call("sinfo", &arguments).ok()?)
    }

    fn smallest(lines: &str) -> Option<Self> {
        let nodes = lines.lines().filter_map(|line| {
            let mut fields = line.trim().split('|');
            let cpus = number(fields.next()?)?;
            let memory_mb = number(fields.next()?)?;
            Some(Self {
                cpus,
                memory_mb,
                gpus: gpus(fields.next().unwrap_or("")),
            })
        });
        nodes
            .filter(|node| node.gpus > 0)
            .min_by_key(|node| node.cpus / node.gpus)
    }

    /// CPUs for one GPU: its share of the node.
    pub fn cpus_per_gpu(&self) -> u64 {
        (self.cpus / self.gpus.max(1)).clamp(1, MOST_CPUS)
    }

    pub fn memory_per_gpu_mb(&self) -> u64 {
        ((self.memory_mb as f64 * SHARE_OF_MEMORY) as u64 / self.gpus.max(1)).max(1)
    }

    /// CPUs a GPU where no node is known: no more than this machine has.
    pub fn usual_cpus_per_gpu() -> u64 {
        UsableCpus::here().count().min(USUAL_CPUS) as u64
    }
}

/// `64`, `64+`.
fn number(text: &str) -> Option<u64> {
    text.trim_end_matches('+').parse().ok()
}

/// `gpu:a100:4(S:0-1),nic:1` has 4.
fn gpus(text: &str) -> u64 {
    let entries = text.split(',').filter(|entry| entry.starts_with("gpu"));
    entries
        .filter_map(|entry| entry.split('(').next()?.rsplit(':').next()?.parse::<u64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fair_share_of_the_smallest_node() {
        let node = NodeShape::smallest("64|515000|gpu:a100:4(S:0-1)\n128+|1000000|gpu:8\n32|64000|(null)\n")
            .unwrap();
        assert_eq!(
            (node.gpus, node.cpus_per_gpu(), node.memory_per_gpu_mb()),
            (4, 16, 122_312)
        );
        assert_eq!(NodeShape::smallest("32|64000|(null)\n"), None);
        assert_eq!(gpus("gpu:v100:2,gpu:a100:1,nic:1"), 3);
        assert!(NodeShape::usual_cpus_per_gpu() >= 1);
    }
}
