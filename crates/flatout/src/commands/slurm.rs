//! `flatout slurm script | submit | status | wrap`

use crate::commands::train;
use crate::context::Context;
use crate::output::write_stdout;
use clap::{Args, Subcommand};
use flatout_core::interrupt::Interrupt;
use flatout_core::{Failure, Message, Result, message};
use flatout_report::analyze::status::{self, Status};
use flatout_report::text;
use flatout_run::slurm::{self, Grid, NodeShape, Profile, Request};
use flatout_run::{Options, run_name};
use flatout_train::settings;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

pub const EXAMPLES: &str = "Examples:
  flatout slurm script -- python train.py > train.sh           a batch script that records itself
  flatout slurm submit --gpus 1 --time 12:00:00 -- python train.py
  flatout slurm submit --gpus 4 --ranks -- python train_ddp.py  one process and one record per GPU
  flatout slurm submit --gpus 8 --nodes 2 -- torchrun --nproc_per_node 8 train.py   one torchrun per node
  flatout slurm submit --grid hidden-size=128,256 --grid lr=1e-3,3e-4 -- python train.py
  flatout slurm status 52098 --follow
  flatout analyze --job-id 52098                                when it is done
  flatout slurm wrap > flatout-prolog.sh                        for administrators: record every job";

/// How often a job is looked at while it is followed.
const FOLLOW_EVERY: Duration = Duration::from_secs(5);

#[derive(Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Print a batch script: GPUs, CPUs per GPU, memory, time, log name, and the command inside `flatout run`
    Script(Job),
    /// Submit that script with sbatch
    Submit(Job),
    /// For administrators: print the line that makes Slurm record every job; nothing is changed
    Wrap {
        /// Where the records of all users go, a folder for each [default: every user's own ~/.flatout]
        #[arg(long, value_name = "DIR")]
        records: Option<PathBuf>,
        /// Seconds between samples
        #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=600))]
        interval: u32,
    },
    /// Show job status: queue state, record so far, end of the log
    Status {
        /// The job: 52098, or 52098_3 for one task of an array
        #[arg(value_name = "JOB")]
        job: String,
        /// Follow the job until it finishes
        #[arg(long)]
        follow: bool,
        /// Print as JSON
        #[arg(long, conflicts_with = "follow")]
        json: bool,
    },
}

#[derive(Args)]
struct Job {
    /// Name of the job and of its run [default: the script's]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// GPUs per node [default: 1]
    #[arg(long, value_name = "N")]
    gpus: Option<u32>,
    #[arg(long, value_name = "N", default_value_t = 1)]
    /// Number of nodes
    nodes: u32,
    /// Start one process per GPU with srun, each with its own record
    #[arg(long)]
    ranks: bool,
    /// CPUs per GPU [default: a GPU's share of the partition's nodes, at most 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    cpus_per_gpu: Option<u64>,
    /// Memory per node, such as 32G [default: the GPUs' share of the partition's nodes]
    #[arg(long, value_name = "SIZE")]
    mem: Option<String>,
    /// Time limit: 2h, 90m, minutes, hours:minutes:seconds, or days-hours [default: 24:00:00]
    #[arg(long, value_name = "TIME")]
    time: Option<String>,
    #[arg(long)]
    /// Partition
    partition: Option<String>,
    #[arg(long)]
    /// Account
    account: Option<String>,
    #[arg(long)]
    /// Quality of service
    qos: Option<String>,
    /// Folder for the logs [default: this one]
    #[arg(long, value_name = "DIR")]
    logs: Option<String>,
    /// Run every combination as a task of a job array: an option of the command with its values
    #[arg(long, value_name = "OPTION=VALUES")]
    grid: Vec<String>,
    /// Maximum number of array tasks to run at once
    #[arg(long, value_name = "N", requires = "grid")]
    at_once: Option<u32>,
    /// Additional sbatch options, such as constraint=a100
    #[arg(long, value_name = "OPTION")]
    sbatch: Vec<String>,
    /// The program and its arguments, as you would type them
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub fn about() -> Message {
    message!(en: "Write, submit and follow Slurm jobs that record themselves", zh: "编写、提交并跟踪能自动记录的 Slurm 作业")
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    match arguments.action {
        Action::Script(job) => {
            let request = request(&job)?;
            write_stdout(&slurm::script(&request)?);
            warn_of_idle_nodes(&request, context);
            Ok(ExitCode::SUCCESS)
        }
        Action::Submit(job) => submit(&job, context),
        Action::Wrap { records, interval } => wrap(records.as_deref(), interval, context),
        Action::Status {
            job, follow: true, ..
        } => follow(&job, context),
        Action::Status { job, json, .. } => {
            let status = status::status(&job)?;
            let text = if json {
                serde_json::to_string_pretty(&status).unwrap_or_default() + "\n"
            } else {
                status::text(&status, context.language, width())
            };
            write_stdout(text.as_bytes());
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn width() -> usize {
    text::readable_width(text::terminal_columns(&std::io::stdout()))
}

fn request(job: &Job) -> Result<Request> {
    let profile = Profile::discover(Path::new("."))?;
    let partition = job.partition.clone().or(profile.partition);
    let gpus = job.gpus.or(profile.gpus).unwrap_or(1);
    let node = NodeShape::of_partition(partition.as_deref());
    let cpus = node.map_or_else(NodeShape::usual_cpus_per_gpu, |node| node.cpus_per_gpu());
    let time = job.time.clone().or(profile.time);
    let mut more = profile.sbatch;
    more.extend(job.sbatch.iter().cloned());
    let share = node.map(|node| format!("{}M", node.memory_per_gpu_mb().saturating_mul(gpus.max(1).into())));
    let flatout = std::env::current_exe().map_err(|error| {
        Failure::new(
            message!(en: "flatout cannot find its own executable", zh: "无法确定 flatout 自身的路径"),
        )
        .caused_by(&error)
    })?;
    let grid = Grid::parse(&job.grid)?;
    Ok(Request {
        task_folder: task_folder(&job.command, &grid),
        name: job
            .name
            .clone()
            .unwrap_or_else(|| run_name(&Options::new(job.command.clone()))),
        command: job.command.clone(),
        gpus,
        nodes: job.nodes,
        ranks: job.ranks,
        cpus_per_gpu: job.cpus_per_gpu.or(profile.cpus_per_gpu).unwrap_or(cpus),
        memory: job.mem.clone().or(profile.mem).or(share),
        time: slurm::time_limit(time.as_deref().unwrap_or("24:00:00")),
        partition,
        account: job.account.clone().or(profile.account),
        qos: job.qos.clone().or(profile.qos),
        logs: job.logs.clone(),
        grid,
        at_once: job.at_once.or(profile.max_running),
        more,
        flatout,
    })
}

/// Where `flatout train` is the command of an array: its output folder, in which each task gets one of its own. Two trainings cannot
/// share a folder.
fn task_folder(command: &[OsString], grid: &Grid) -> Option<(String, PathBuf)> {
    let words: Vec<String> = command
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let (program, rest) = words.split_first()?;
    let is_own = Path::new(program)
        .file_stem()
        .is_some_and(|name| name == "flatout");
    let is_train = rest.first().is_some_and(|word| word == "train");
    let names = settings::find("output_dir").into_iter().flat_map(|setting| {
        let names = std::iter::once(setting.name).chain(setting.aliases.iter().copied());
        names.flat_map(|name| [name.to_owned(), name.replace('_', "-")])
    });
    let is_axis = names.into_iter().any(|name| grid.has(&name));
    if grid.is_empty() || !is_own || !is_train || is_axis {
        return None;
    }
    let folder = train::output_dir(&rest[1..])?;
    Some(("output-dir".to_owned(), folder))
}

/// The prolog goes to stdout, so that it can be written into a file; what it does goes to stderr.
fn wrap(records: Option<&Path>, interval_s: u32, context: &Context) -> Result<ExitCode> {
    let flatout = std::env::current_exe().map_err(|error| {
        Failure::new(
            message!(en: "flatout cannot find its own executable", zh: "无法确定 flatout 自身的路径"),
        )
        .caused_by(&error)
    })?;
    let records = records.map(std::path::absolute).transpose().map_err(|error| {
        Failure::new(message!(en: "the folder cannot be used", zh: "无法使用该目录")).caused_by(&error)
    })?;
    write_stdout(&slurm::prolog(&flatout, records.as_deref(), interval_s));
    let place = records
        .as_ref()
        .map_or_else(|| "/home".to_owned(), |folder| folder.display().to_string());
    let flatout = flatout.display();
    let told = message!(
        en: "\
This is a TaskProlog; nothing was changed. To use it:
  1. write it to a file that every node sees: flatout slurm wrap > /etc/slurm/flatout-prolog.sh; chmod 755 it.
     If the cluster has a TaskProlog, add the last line to it.
  2. make sure that every node has {flatout}
  3. slurm.conf: TaskProlog=/etc/slurm/flatout-prolog.sh, then: scontrol reconfigure
What it does: when a job with GPUs begins on a node, `flatout monitor` starts in the background as the job's user. It samples the GPUs
every {interval_s} s, ends with the job, and writes one record. The program is not touched: no probe, no changed variable.
See the cluster: flatout fleet --records {place}
For causes with their lines, users put `flatout run --` in front of their command.",
        zh: "\
这是一个 TaskProlog；没有做任何修改。使用方法：
  1. 写入所有节点可见的文件：flatout slurm wrap > /etc/slurm/flatout-prolog.sh，并 chmod 755。
     如果集群已有 TaskProlog，把最后一行加进去。
  2. 确认每个节点上都有 {flatout}
  3. 在 slurm.conf 中写 TaskProlog=/etc/slurm/flatout-prolog.sh，然后执行 scontrol reconfigure
它的作用：带 GPU 的作业在节点上开始时，以作业用户的身份在后台启动 `flatout monitor`，每 {interval_s} 秒采样一次 GPU，
随作业结束，写一份记录。不触碰用户程序：没有探针，不改变任何变量。
查看整个集群：flatout fleet --records {place}
要得到原因和代码行，用户在命令前加上 `flatout run --`。"
    );
    eprintln!("{}", context.say(&told));
    Ok(ExitCode::SUCCESS)
}

fn warn_of_idle_nodes(request: &Request, context: &Context) {
    if !slurm::uses_first_node_only(request) {
        return;
    }
    let (nodes, command) = (request.nodes, request.command.first());
    let command = command.map_or_else(String::new, |word| word.to_string_lossy().into_owned());
    let told = message!(
        en: "the job gets {nodes} nodes, but `{command}` starts on the first one only; start it with torchrun, or use \
        --ranks for one process per GPU, unless it reaches the other nodes itself",
        zh: "作业会得到 {nodes} 个节点，但 `{command}` 只在第一个节点上启动；请用 torchrun 启动，或用 --ranks 每个 GPU 启动一个进程，除非它自己会使用其他节点"
    );
    eprintln!("flatout: {}", context.say(&told));
}

fn submit(job: &Job, context: &Context) -> Result<ExitCode> {
    let request = request(job)?;
    let script = slurm::script(&request)?;
    warn_of_idle_nodes(&request, context);
    if let Some(folder) = &job.logs {
        slurm::make_log_folder(Path::new(folder))?;
    }
    let id = slurm::submit(&script)?.job_id;
    write_stdout(format!("{id}\n").as_bytes());
    let next = message!(
        en: "submitted job {id}; follow it with: flatout slurm status {id} --follow\nwhen it is done: \
        flatout analyze --job-id {id}",
        zh: "作业 {id} 已提交；跟踪：flatout slurm status {id} --follow\n结束后分析：flatout analyze --job-id {id}"
    );
    eprintln!("{}", context.say(&next));
    Ok(ExitCode::SUCCESS)
}

/// A line whenever something changed, all of it at the end. Leaving changes nothing for the job.
fn follow(job: &str, context: &Context) -> Result<ExitCode> {
    let interrupt = Interrupt::catch();
    let mut last = String::new();
    loop {
        let now: Status = status::status(job)?;
        let line = status::line(&now, context.language);
        if now.over() {
            write_stdout(status::text(&now, context.language, width()).as_bytes());
            return Ok(ExitCode::from(u8::from(!now.completed())));
        }
        if line != last {
            write_stdout(format!("{line}\n").as_bytes());
            last = line;
        }
        if interrupt.wait(FOLLOW_EVERY) {
            return Ok(ExitCode::SUCCESS);
        }
    }
}
