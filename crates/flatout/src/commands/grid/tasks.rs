//! `flatout grid --slurm`, and a grid over all GPUs of this machine: who trains the combinations, and with what command.

use crate::context::Context;
use flatout_core::cpus::UsableCpus;
use flatout_core::error::FileError;
use flatout_core::files::write_inside;
use flatout_core::{Failure, Message, Result, message};
use flatout_record::RunInfo;
use flatout_run::slurm::{self, ArrayFailure, ArrayRequest, Arrays, NodeShape, Profile};
use flatout_telemetry::sources::gpus::GpuState;
use flatout_telemetry::{GpuScope, Sampler, SamplerOptions};
use flatout_train::grid::{Grid, LocalTasks, Point, TaskState, Tasks, TasksError};
use flatout_train::settings::Values;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Inside the grid's folder: the configuration as it was, logs, and what was sent. No combination has such a name: theirs contain a dash.
const FOLDER: &str = "tasks";
/// The controller is asked this often.
const ASK_EVERY: Duration = Duration::from_secs(5);
/// A shared folder shows what another node wrote a little later.
const GRACE: Duration = Duration::from_secs(15);
/// A driver without persistence mode takes a second or two to open.
const DRIVER_PATIENCE: Duration = Duration::from_secs(15);

/// The options of `--slurm`.
#[derive(Clone, Debug, Default)]
pub struct SlurmOptions {
    pub partition: Option<String>,
    pub account: Option<String>,
    pub qos: Option<String>,
    pub gpus: Option<u32>,
    pub cpus_per_gpu: Option<u64>,
    pub mem: Option<String>,
    pub time: Option<String>,
    pub max_running: Option<u32>,
    pub sbatch: Vec<String>,
}

/// The combinations as tasks of Slurm arrays.
pub struct SlurmTasks {
    arrays: Arrays,
}

impl SlurmTasks {
    pub fn open(grid: &Grid, config: &Path, flags: &Values, options: SlurmOptions) -> Result<Self> {
        let profile = Profile::discover(Path::new("."))?;
        let partition = options.partition.or(profile.partition);
        // A grid for the CPU needs no GPU.
        let is_cpu = grid.points.iter().all(|point| {
            point
                .configuration(&Values::new())
                .is_ok_and(|of| of.settings.device == "cpu")
        });
        let gpus = match (options.gpus, is_cpu) {
            (Some(gpus), _) => gpus,
            (None, true) => 0,
            (None, false) => profile.gpus.unwrap_or(1),
        };
        let node = NodeShape::of_partition(partition.as_deref()).filter(|_| gpus > 0);
        let cpus_per_gpu = options
            .cpus_per_gpu
            .or(profile.cpus_per_gpu)
            .unwrap_or_else(|| node.map_or_else(NodeShape::usual_cpus_per_gpu, |node| node.cpus_per_gpu()));
        let share = node.map(|node| {
            let megabytes = node.memory_per_gpu_mb().saturating_mul(gpus.max(1).into());
            format!("{megabytes}M")
        });
        let mut more = profile.sbatch;
        more.extend(options.sbatch);
        let time = options.time.or(profile.time);
        let time = time.unwrap_or_else(|| "24:00:00".to_owned());
        let folder = grid.output_dir.join(FOLDER);
        let name = config.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let request = ArrayRequest {
            name: name.unwrap_or_else(|| "grid".to_owned()),
            command: command(&folder, config, flags)?,
            gpus,
            cpus: cpus_per_gpu.saturating_mul(u64::from(gpus.max(1))),
            memory: options.mem.or(profile.mem).or(share),
            time: slurm::time_limit(&time),
            partition,
            account: options.account.or(profile.account),
            qos: options.qos.or(profile.qos),
            most_running: options.max_running.or(profile.max_running),
            more,
        };
        Ok(Self {
            arrays: Arrays::open(&folder, &identity(grid)?, request)?,
        })
    }

    /// The jobs whose tasks are still queued or running.
    pub fn alive(&self) -> Vec<String> {
        self.arrays.alive().unwrap_or_default()
    }

    /// What happens to the tasks of a grid that is left.
    pub fn left(&self, done: usize, of: usize) -> Message {
        let jobs = self.alive();
        if jobs.is_empty() {
            return message!(
                en: "stopped waiting with {done} of {of} done; run the same command again to continue",
                zh: "已停止等待，完成 {done}/{of}；再次运行同一命令即可继续"
            );
        }
        let jobs = jobs.join(" ");
        message!(
            en: "stopped waiting with {done} of {of} done; job {jobs} keeps running\nrun the same command again to collect its results; cancel it with: scancel {jobs}",
            zh: "已停止等待，完成 {done}/{of}；作业 {jobs} 会继续运行\n收集结果：再次运行同一命令；取消：scancel {jobs}"
        )
    }
}

impl Tasks for SlurmTasks {
    fn start(&mut self, points: &[usize]) -> std::result::Result<(), TasksError> {
        let jobs = self.arrays.submit(points).map_err(tasks_error)?.join(" ");
        log::info!("sent {} tasks as job {jobs}", points.len());
        Ok(())
    }

    fn states(&mut self) -> std::result::Result<BTreeMap<usize, TaskState>, TasksError> {
        let states = self.arrays.states().map_err(tasks_error)?;
        let state = |state| match state {
            slurm::TaskState::Waiting(reason) => TaskState::Waiting(reason),
            slurm::TaskState::Running => TaskState::Running,
            slurm::TaskState::Cancelled => TaskState::Cancelled,
            slurm::TaskState::Ended(word) => TaskState::Ended(word),
        };
        Ok(states.into_iter().map(|(point, of)| (point, state(of))).collect())
    }

    fn ask_every(&self) -> Duration {
        ASK_EVERY
    }

    fn grace(&self) -> Duration {
        GRACE
    }

    fn log(&self, point: usize) -> Option<PathBuf> {
        self.arrays.log(point)
    }

    /// They go on alone.
    fn leave(&mut self) {}
}

fn tasks_error(error: ArrayFailure) -> TasksError {
    match error.away {
        true => TasksError::Away(error.failure),
        false => TasksError::Failed(error.failure),
    }
}

/// What a task runs, without the number of its combination: this flatout, the configuration as it is now, the same flags.
fn command(folder: &Path, config: &Path, flags: &Values) -> Result<Vec<OsString>> {
    let flatout = std::env::current_exe().map_err(|error| {
        Failure::new(
            message!(en: "flatout cannot find its own executable", zh: "无法确定 flatout 自身的路径"),
        )
        .caused_by(&error)
    })?;
    // A task may begin hours later: what is changed until then is not for it.
    let text = std::fs::read(config).map_err(|source| FileError::reading(config, source))?;
    std::fs::create_dir_all(folder).map_err(|source| FileError::writing(folder, source))?;
    let name = config.file_name().unwrap_or("grid.yaml".as_ref());
    let copy = folder.join(name);
    write_inside(&copy, &text)?;
    let mut command = vec![flatout.into_os_string(), "grid".into(), copy.into_os_string()];
    command.extend(
        flags
            .iter()
            .map(|(name, value)| OsString::from(format!("--{}={value}", name.replace('_', "-")))),
    );
    command.push("--plain".into());
    Ok(command)
}

/// What tells this grid from others: the settings of all its combinations.
fn identity(grid: &Grid) -> Result<String> {
    let mut hasher = DefaultHasher::new();
    for point in &grid.points {
        (&point.name, point.identity()?).hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

/// One process per GPU, where this machine has several and the grid may use any of them.
pub fn on_all_gpus(grid: &Grid, config: &Path, flags: &Values) -> Result<Option<LocalTasks>> {
    let any_gpu = grid.points.iter().all(|point| {
        point
            .configuration(&Values::new())
            .is_ok_and(|of| matches!(of.settings.device.as_str(), "auto" | "cuda" | "gpu"))
    });
    let gpus = if any_gpu { gpus() } else { Vec::new() };
    if gpus.len() < 2 {
        return Ok(None);
    }
    let folder = grid.output_dir.join(FOLDER);
    let mut command = command(&folder, config, flags)?;
    let own = |point: &Point| {
        point
            .configuration(&Values::new())
            .is_ok_and(|of| of.settings.threads.is_some())
    };
    if !grid.points.iter().any(own) {
        // The CPUs are shared out among the GPUs.
        let threads = (UsableCpus::here().count() / gpus.len()).max(1);
        command.push(format!("--threads={threads}").into());
    }
    Ok(Some(LocalTasks::new(gpus, command, folder.join("logs"))))
}

/// What `CUDA_VISIBLE_DEVICES` is for a process that shall have one of the GPUs that this one may use.
fn gpus() -> Vec<String> {
    if let Ok(visible) = std::env::var("CUDA_VISIBLE_DEVICES") {
        let names = visible.split(',').map(str::trim);
        // CUDA stops at the first that it does not know.
        let names = names.take_while(|name| !name.is_empty() && *name != "-1");
        return names.map(str::to_owned).collect();
    }
    let options = SamplerOptions {
        interval: Duration::from_secs(1),
        gpus: Some(GpuScope::all()),
        host: false,
        pid: None,
    };
    let Ok(sampler) = Sampler::start(&options) else {
        return Vec::new();
    };
    let GpuState::Ready(indices) = sampler.gpus(DRIVER_PATIENCE) else {
        return Vec::new();
    };
    let mut info = RunInfo::default();
    sampler.describe(&mut info);
    // The driver and CUDA may count in different orders: a UUID means the same to both.
    let name = |index: u32| match info.gpus.get(&index).and_then(|gpu| gpu.uuid.clone()) {
        Some(uuid) if uuid.starts_with("GPU-") || uuid.starts_with("MIG-") => Some(uuid),
        // Of another vendor: CUDA does not see it.
        Some(_) => None,
        None => Some(index.to_string()),
    };
    indices.into_iter().filter_map(name).collect()
}

/// How a grid by tasks that was stopped is told, where the tasks ended with it.
pub fn stopped(context: &Context, done: usize, of: usize) {
    let stopped = message!(en: "stopped with {done} of {of} done; run the same command again to continue", zh: "已停止，完成 {done}/{of}；再次运行同一命令即可继续");
    eprintln!("{}", context.say(&stopped));
}
