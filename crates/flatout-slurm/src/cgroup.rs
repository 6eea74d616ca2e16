//! Which Slurm job a process is in, by its cgroup: also where the environment does not say, as in a shell that was adopted into
//! a job. cgroup v1 has `/slurm/uid_0/job_7/step_0`, v2 `/system.slice/slurmstepd.scope/job_7/step_0/user/task_0`; with several
//! daemons on a machine the node's name stands in the first part. Since 26.05 the job's folder is its SLUID, `s5K1KKYAYG5D00`,
//! from which the number cannot be told.

use std::fs;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupJob {
    pub job: JobName,
    /// `0`, `batch`, `extern`, `interactive`.
    pub step: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobName {
    Id(String),
    /// Unique over all clusters and times; `squeue` can translate it.
    Sluid(String),
}

/// The job in the lines of `/proc/PID/cgroup`.
pub fn job_in_cgroup(lines: &str) -> Option<CgroupJob> {
    lines
        .lines()
        .find_map(|line| job_in_path(line.splitn(3, ':').nth(2)?))
}

pub fn job_of_process(pid: u32) -> Option<CgroupJob> {
    job_in_cgroup(&fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?)
}

fn job_in_path(path: &str) -> Option<CgroupJob> {
    let mut parts = path
        .split('/')
        .skip_while(|part| !is_slurm(part))
        .skip(1)
        .peekable();
    // v1 has the user's folder in between.
    parts.next_if(|part| part.starts_with("uid_"));
    let folder = parts.next()?;
    let job = match folder.strip_prefix("job_") {
        Some(id) if !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()) => {
            JobName::Id(id.to_owned())
        }
        Some(_) => return None,
        None if is_sluid(folder) => JobName::Sluid(folder.to_owned()),
        None => return None,
    };
    let step = parts
        .find_map(|part| part.strip_prefix("step_"))
        .map(str::to_owned);
    Some(CgroupJob { job, step })
}

/// `slurm`, `slurm_node1`, `slurmstepd.scope`, `node1_slurmstepd.scope`.
fn is_slurm(part: &str) -> bool {
    part == "slurm" || part.starts_with("slurm_") || part.ends_with("slurmstepd.scope")
}

/// An `s` and thirteen digits of base 32.
fn is_sluid(part: &str) -> bool {
    part.strip_prefix('s').is_some_and(|digits| {
        digits.len() == 13
            && digits
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn told(lines: &str) -> Option<(JobName, Option<String>)> {
        job_in_cgroup(lines).map(|found| (found.job, found.step))
    }

    #[test]
    fn the_names_of_v1_v2_and_newer() {
        let job = |id: &str, step: Option<&str>| Some((JobName::Id(id.into()), step.map(str::to_owned)));
        assert_eq!(
            told("9:name=systemd:/\n4:memory:/slurm/uid_1000/job_4711/step_0/task_0\n0::/\n"),
            job("4711", Some("0"))
        );
        assert_eq!(
            told("4:cpuset:/slurm_node1/uid_0/job_12/step_batch\n"),
            job("12", Some("batch"))
        );
        assert_eq!(
            told("0::/system.slice/slurmstepd.scope/job_12/step_extern/user/task_0\n"),
            job("12", Some("extern"))
        );
        assert_eq!(
            told("0::/system.slice/node1_slurmstepd.scope/job_12/step_0/user\n"),
            job("12", Some("0"))
        );
        assert_eq!(
            told("0::/system.slice/slurmstepd.scope/s5K1KKYAYG5D00/step_0/user/task_0\n"),
            Some((JobName::Sluid("s5K1KKYAYG5D00".into()), Some("0".into())))
        );
    }

    #[test]
    fn other_cgroups_are_no_jobs() {
        for lines in [
            "",
            "0::/\n",
            "0::/user.slice/job_12\n",
            "0::/system.slice/slurmstepd.scope/system\n",
            "0::/system.slice/slurmd.service\n",
            "nonsense",
        ] {
            assert_eq!(told(lines), None, "{lines}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_fine(lines in "[a-z0-9_:/.\n]{0,200}") {
            let _ = job_in_cgroup(&lines);
        }
    }
}
