//! Slurm: what its accounting and its queue know of a job, and which job a process belongs to. Only asked when a person asks:
//! a monitor that questions the controller every second makes enemies.

mod accounting;
mod cgroup;
mod error;
mod history;
mod jobstats;
mod queue;
mod tool;

pub use accounting::{JobAccount, account};
pub use cgroup::{CgroupJob, JobName, job_in_cgroup, job_of_process};
pub use error::SlurmError;
pub use history::{HistoryQuery, HistoryRow, Unreadable, history, history_of};
pub use jobstats::jobstats_gpus;
pub use queue::{QueuedJob, is_over, queued};
pub use tool::{call, lines_of};

/// Whether this can be a job's number: `4711`, `4711_3`, `4711_[0-7]`, `4711+1`. Nothing else is handed to Slurm's commands.
pub fn is_job_id(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.len() <= 64
        && text.chars().all(|c| c.is_ascii_digit() || "_+[]-,%".contains(c))
}
