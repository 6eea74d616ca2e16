//! The batch system's job around this process, from its environment or its cgroup. The scheduler itself is not asked: that would cost it.

use flatout_record::JobInfo;
use flatout_slurm::{self as slurm, JobName};
use std::collections::BTreeMap;

/// `SLURM_JOB_PARTITION` becomes `partition`, and so on; what a report or a Prometheus label can use.
const SLURM_FIELDS: &[(&str, &str)] = &[
    ("SLURM_JOB_NAME", "name"),
    ("SLURM_JOB_USER", "user"),
    ("SLURM_JOB_ACCOUNT", "account"),
    ("SLURM_JOB_PARTITION", "partition"),
    ("SLURM_CLUSTER_NAME", "cluster"),
    ("SLURM_JOB_NODELIST", "nodes"),
    ("SLURM_JOB_NUM_NODES", "node_count"),
    ("SLURM_CPUS_ON_NODE", "cpus_on_node"),
    ("SLURM_CPUS_PER_TASK", "cpus_per_task"),
    ("SLURM_MEM_PER_NODE", "memory_mb"),
    ("SLURM_JOB_GPUS", "gpus"),
    ("SLURM_ARRAY_JOB_ID", "array_job"),
    ("SLURM_ARRAY_TASK_ID", "array_task"),
    ("SLURM_STEP_ID", "step"),
    ("SLURM_PROCID", "rank"),
    ("SLURM_NTASKS", "tasks"),
    ("SLURM_JOB_START_TIME", "start_unix"),
    ("SLURM_JOB_END_TIME", "end_unix"),
];

pub fn job_from_environment() -> Option<JobInfo> {
    job_from(|name| std::env::var(name).ok()).or_else(job_from_cgroup)
}

/// A shell that was adopted into a job has its cgroup, not its environment.
fn job_from_cgroup() -> Option<JobInfo> {
    let found = slurm::job_of_process(std::process::id())?;
    let JobName::Id(id) = found.job else { return None };
    Some(JobInfo {
        system: "slurm".into(),
        id,
        fields: found
            .step
            .map(|step| ("step".to_owned(), step))
            .into_iter()
            .collect(),
    })
}

fn job_from(variable: impl Fn(&str) -> Option<String>) -> Option<JobInfo> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let id = set("SLURM_JOB_ID").or_else(|| set("SLURM_JOBID"))?;
    let fields: BTreeMap<String, String> = SLURM_FIELDS
        .iter()
        .filter_map(|(name, field)| Some(((*field).to_owned(), set(name)?)))
        .collect();
    Some(JobInfo {
        system: "slurm".into(),
        id,
        fields,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slurm_job_is_seen_with_what_is_set() {
        let job = job_from(|name| match name {
            "SLURM_JOB_ID" => Some("4711".into()),
            "SLURM_JOB_PARTITION" => Some("gpu".into()),
            "SLURM_JOB_ACCOUNT" => Some(String::new()),
            _ => None,
        })
        .unwrap();
        assert_eq!((job.system.as_str(), job.id.as_str()), ("slurm", "4711"));
        assert_eq!(job.fields, [("partition".to_owned(), "gpu".to_owned())].into());
        assert_eq!(job_from(|_| None), None);
    }
}
