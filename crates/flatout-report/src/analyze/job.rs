//! A Slurm job: its records, found by the job's number; its logs, found by their names; and what the accounting says of it.

mod notes;

use super::{Analysis, JobReport, Options, Read, SCHEMA};
use crate::ranks::{Ranks, rank_of};
use flatout_core::{Explain, Failure, Message, Result, message};
use flatout_record::{self as record, JobInfo, Record, RunEntry};
use flatout_slurm::{self as slurm, SlurmError};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Logs of a job shown at most.
const MOST_LOGS: usize = 16;
/// Names looked at in a folder.
const MOST_NAMES: usize = 20_000;
/// Where the logs of a job usually lie, beside the folder it was sent from.
const FOLDERS: [&str; 5] = [".", "results", "logs", "log", "slurm"];

/// The job's records alone, oldest first.
pub fn records(job_id: &str) -> Vec<Record> {
    let matching = |entry: &RunEntry| entry.info.job.as_ref().is_some_and(|job| is_of(job, job_id));
    let entries = record::list(&record::runs_folder());
    entries
        .iter()
        .filter(|entry| matching(entry))
        .filter_map(|entry| Record::open(&entry.folder).ok())
        .collect()
}

/// The record of a job's first rank; a task of an array that has several is named by its number.
pub fn first_rank(job_id: &str) -> Result<Record> {
    if !slurm::is_job_id(job_id) {
        return Err(SlurmError::BadJobId {
            text: job_id.to_owned(),
        }
        .into());
    }
    let first = records(job_id).into_iter().min_by_key(rank_of);
    first.ok_or_else(|| {
        let runs = record::runs_folder();
        let runs = runs.display();
        Failure::new(message!(
            en: "no record of job {job_id} in `{runs}`",
            zh: "`{runs}` 中没有作业 {job_id} 的记录"
        ))
        .with_hint(message!(
            en: "list the records with `flatout runs`; for the job's logs and sacct data: flatout analyze \
            --job-id {job_id}",
            zh: "用 `flatout runs` 列出记录；查看日志和 sacct 信息：flatout analyze --job-id {job_id}"
        ))
    })
}

/// `4711` is the job of that number or every task of that array; `4711_3` one task.
fn is_of(job: &JobInfo, job_id: &str) -> bool {
    let field = |name: &str| job.fields.get(name).map(String::as_str);
    job.id == job_id
        || match job_id.split_once('_') {
            Some((array, task)) => field("array_job") == Some(array) && field("array_task") == Some(task),
            None => field("array_job") == Some(job_id),
        }
}

pub fn analyze(job_id: &str, options: &Options) -> Result<(Analysis, Vec<Read>)> {
    if !slurm::is_job_id(job_id) {
        return Err(SlurmError::BadJobId {
            text: job_id.to_owned(),
        }
        .into());
    }
    let records = records(job_id);
    let mut analysis = Analysis {
        schema: SCHEMA,
        jobs: Vec::new(),
        ranks: Vec::new(),
        sections: Vec::new(),
        notes: Vec::new(),
    };
    let mut reads: Vec<Read> = records.iter().map(super::record).collect();
    let ranks = Ranks::of(&records);
    analysis.ranks = ranks.rows;
    analysis.notes.extend(ranks.notes);
    let mut folders: Vec<PathBuf> = records
        .iter()
        .filter_map(|record| record.info.folder.clone())
        .collect();
    folders.push(PathBuf::from("."));
    for log in logs(job_id, &folders) {
        match super::log(&log, options) {
            Ok(read) => reads.push(read),
            Err(failure) => analysis.notes.push(failure.message().clone()),
        }
    }
    let accounts = match slurm::account(job_id) {
        Ok(accounts) => accounts,
        Err(error) if reads.is_empty() => return Err(unknown(job_id, &error)),
        Err(error) => {
            let mut note = error.message();
            note.en += "; what the job asked for is unknown";
            note.zh += "；作业申请了多少资源未知";
            analysis.notes.push(note);
            Vec::new()
        }
    };
    let verdicts: Vec<_> = reads
        .iter()
        .filter_map(|read| read.section.verdict.as_ref())
        .collect();
    analysis.jobs = accounts
        .into_iter()
        .map(|account| JobReport {
            notes: notes::of(&account, &verdicts),
            account,
        })
        .collect();
    if records.is_empty() {
        analysis.notes.push(message!(
            en: "no record of job {job_id} here: submit it with `flatout slurm submit -- COMMAND`, or put \
            `flatout run --` before its command",
            zh: "这里没有作业 {job_id} 的记录：用 `flatout slurm submit -- 命令` 提交，或在命令前加上 `flatout run --`"
        ));
    }
    Ok((analysis, reads))
}

/// Files with the job's number in their name, as a number of its own: `gpu_utilization_52098.log`, `slurm-52098.out`.
fn logs(job_id: &str, folders: &[PathBuf]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    // While Slurm remembers the job, it knows where the log is.
    if let Ok(jobs) = slurm::queued(job_id) {
        found.extend(
            jobs.into_iter()
                .filter_map(|job| job.log)
                .filter(|log| log.is_file()),
        );
    }
    for folder in folders
        .iter()
        .flat_map(|folder| FOLDERS.map(|name| folder.join(name)))
    {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        let matching = entries
            .flatten()
            .take(MOST_NAMES)
            .map(|entry| entry.path())
            .filter(|path| is_log_of(path, job_id));
        found.extend(matching.filter(|path| path.is_file()));
    }
    // `././a.log` is `a.log`.
    let plain = |path: &PathBuf| {
        path.components()
            .filter(|part| *part != Component::CurDir)
            .collect()
    };
    let mut found: Vec<PathBuf> = found.iter().map(plain).collect();
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|path| fs::canonicalize(path).is_ok_and(|path| seen.insert(path)));
    found.retain(|path| fs::metadata(path).is_ok_and(|metadata| metadata.len() > 0));
    found.sort();
    found.truncate(MOST_LOGS);
    found
}

fn is_log_of(path: &Path, job_id: &str) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return false;
    };
    let is_log = [".log", ".out", ".err", ".csv", ".txt", ".json"]
        .iter()
        .any(|ending| name.ends_with(ending));
    is_log
        && name.match_indices(job_id).any(|(at, _)| {
            let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
            !digit(name[..at].chars().next_back()) && !digit(name[at + job_id.len()..].chars().next())
        })
}

fn unknown(job_id: &str, error: &SlurmError) -> Failure {
    let runs = record::runs_folder();
    let runs = runs.display();
    let mut message: Message = message!(
        en: "no information about job {job_id}: no record in `{runs}`, no log with its number here, and ",
        zh: "找不到作业 {job_id} 的任何信息：`{runs}` 中没有记录，这里没有带该编号的日志，而且 "
    );
    let said = error.message();
    message.en += &said.en;
    message.zh += &said.zh;
    Failure::new(message).with_hint(message!(
        en: "list the records with `flatout runs` and your jobs with `sacct -X`, or give the log: flatout \
        analyze LOG",
        zh: "用 `flatout runs` 列出记录，用 `sacct -X` 列出作业；或直接给出日志：flatout analyze LOG"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_the_number_as_a_number() {
        for name in [
            "results/gpu_run_52098_detailed.log",
            "slurm-52098.out",
            "52098.csv",
            "gpu_utilization_52098.log",
        ] {
            assert!(is_log_of(Path::new(name), "52098"), "{name}");
        }
        for name in ["slurm-520981.out", "x152098.log", "52098.py", "slurm.log"] {
            assert!(!is_log_of(Path::new(name), "52098"), "{name}");
        }
    }

    #[test]
    fn an_array_is_all_its_tasks() {
        let fields = [
            ("array_job".to_owned(), "7".to_owned()),
            ("array_task".to_owned(), "2".to_owned()),
        ];
        let job = JobInfo {
            system: "slurm".into(),
            id: "9".into(),
            fields: fields.into(),
        };
        assert!(is_of(&job, "7") && is_of(&job, "7_2") && is_of(&job, "9"));
        assert!(!is_of(&job, "7_1") && !is_of(&job, "2"));
    }
}
