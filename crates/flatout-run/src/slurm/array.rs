//! Numbered work as job arrays: task N of the work is an array task that runs a command with ` --point N`. Slurm queues a task again when
//! its node is lost or it is preempted; what is in flight is kept in a file, so that whoever waits may leave and come back.

use super::quote::{quoted, word};
use super::script::{ScriptError, checked, is_memory, is_time, safe_name};
use flatout_core::error::FileError;
use flatout_core::files::write_inside;
use flatout_core::{Explain, Failure, Message, explained, message};
use flatout_slurm::{SlurmError, call, is_job_id};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Slurm's default limit: indices of an array are below 1001.
const USUAL_INDICES: usize = 1001;
/// Inside the folder of the work.
const STATE: &str = "slurm.json";
const SCHEMA: u32 = 1;
/// Before its time limit a task is told to save, where the limit is long enough for that.
const WARNING_S: u64 = 60;
const LONG_S: u64 = 600;

/// What each task gets and runs.
#[derive(Clone, Debug)]
pub struct ArrayRequest {
    pub name: String,
    /// Without the number.
    pub command: Vec<OsString>,
    pub gpus: u32,
    /// For each task.
    pub cpus: u64,
    pub memory: Option<String>,
    pub time: String,
    pub partition: Option<String>,
    pub account: Option<String>,
    pub qos: Option<String>,
    /// Tasks at once.
    pub most_running: Option<u32>,
    /// Further `#SBATCH` options.
    pub more: Vec<String>,
}

/// How a task stands, by Slurm's word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// In the queue, and why.
    Waiting(Option<String>),
    Running,
    Cancelled,
    Ended(String),
}

#[derive(Debug)]
pub enum ArrayError {
    /// Tasks of an earlier call, of other settings, are still there.
    OtherTasks { jobs: Vec<String> },
    Broken {
        path: PathBuf,
        source: serde_json::Error,
    },
}

impl Explain for ArrayError {
    fn message(&self) -> Message {
        match self {
            Self::OtherTasks { jobs } => {
                let jobs = jobs.join(", ");
                message!(
                    en: "job {jobs} still trains this grid with other settings in this folder",
                    zh: "作业 {jobs} 仍在此目录中用其他设置训练该网格"
                )
            }
            Self::Broken { path, .. } => {
                let path = path.display();
                message!(en: "`{path}` is damaged", zh: "`{path}` 已损坏")
            }
        }
    }

    fn hint(&self) -> Option<Message> {
        Some(match self {
            Self::OtherTasks { jobs } => {
                let jobs = jobs.join(" ");
                message!(
                    en: "wait for it, cancel it (scancel {jobs}), or give another --output-dir",
                    zh: "等它结束、取消它（scancel {jobs}），或另给一个 --output-dir"
                )
            }
            Self::Broken { .. } => message!(
                en: "cancel its tasks if some are still queued (squeue --me), then delete the file",
                zh: "若仍有任务在排队（squeue --me）请先取消，然后删除该文件"
            ),
        })
    }

    fn cause(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::OtherTasks { .. } => None,
            Self::Broken { source, .. } => Some(source),
        }
    }
}
explained!(ArrayError);

/// Why arrays were not sent or not found.
#[derive(Debug)]
pub struct ArrayFailure {
    pub failure: Box<Failure>,
    /// Slurm itself is away: the same call may succeed later.
    pub away: bool,
}

impl From<SlurmError> for ArrayFailure {
    fn from(error: SlurmError) -> Self {
        Self {
            away: error.is_away(),
            failure: Box::new(error.into()),
        }
    }
}

impl From<ScriptError> for ArrayFailure {
    fn from(error: ScriptError) -> Self {
        Self {
            away: false,
            failure: Box::new(error.into()),
        }
    }
}

impl From<FileError> for ArrayFailure {
    fn from(error: FileError) -> Self {
        Self {
            away: false,
            failure: Box::new(error.into()),
        }
    }
}

/// One array: its task `index` is the work's task `index + offset`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Array {
    job: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cluster: Option<String>,
    offset: usize,
    tasks: Vec<usize>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    schema: u32,
    /// Of what the tasks do.
    identity: String,
    arrays: Vec<Array>,
}

/// The arrays of one piece of work.
#[derive(Debug)]
pub struct Arrays {
    folder: PathBuf,
    request: ArrayRequest,
    state: State,
    indices: usize,
}

impl Arrays {
    /// Goes on with the arrays of an earlier call in this folder, if they do the same.
    pub fn open(folder: &Path, identity: &str, request: ArrayRequest) -> Result<Self, Failure> {
        let path = folder.join(STATE);
        let kept: State = match std::fs::read(&path) {
            Ok(bytes) => {
                serde_json::from_slice(&bytes).map_err(|source| ArrayError::Broken { path, source })?
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => State::default(),
            Err(source) => return Err(FileError::reading(path, source).into()),
        };
        let mut arrays = Self {
            folder: folder.to_owned(),
            request,
            state: kept,
            indices: most_indices(),
        };
        // The folder may be somebody else's: nothing but numbers of jobs is handed to Slurm's commands.
        let clusters = |array: &Array| array.cluster.as_deref().is_none_or(word);
        arrays
            .state
            .arrays
            .retain(|array| is_job_id(&array.job) && clusters(array));
        if arrays.state.identity != identity {
            let alive = arrays.alive()?;
            if !alive.is_empty() {
                return Err(ArrayError::OtherTasks { jobs: alive }.into());
            }
            arrays.state.arrays.clear();
            arrays.state.identity = identity.to_owned();
        }
        arrays.state.schema = SCHEMA;
        Ok(arrays)
    }

    /// The jobs with a task in the queue.
    pub fn alive(&self) -> Result<Vec<String>, SlurmError> {
        let known = self.known()?;
        let waits = |job: &str| {
            known.iter().any(|((of, _), state)| {
                of == job && matches!(state, TaskState::Waiting(_) | TaskState::Running)
            })
        };
        let jobs = self.state.arrays.iter().map(|array| array.job.clone());
        Ok(jobs.filter(|job| waits(job)).collect())
    }

    /// The log of a task's last array.
    pub fn log(&self, task: usize) -> Option<PathBuf> {
        let arrays = self.state.arrays.iter().rev();
        let array = arrays.into_iter().find(|array| array.tasks.contains(&task))?;
        let index = task.checked_sub(array.offset)?;
        Some(self.logs().join(format!("{}_{index}.log", array.job)))
    }

    fn logs(&self) -> PathBuf {
        self.folder.join("logs")
    }

    /// Sends these tasks: one array, or one per thousand numbers where Slurm allows no more. Gives the jobs' numbers.
    pub fn submit(&mut self, tasks: &[usize]) -> Result<Vec<String>, ArrayFailure> {
        super::make_log_folder(&self.logs())?;
        let mut by_offset: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for task in tasks {
            let offset = task / self.indices * self.indices;
            by_offset.entry(offset).or_default().push(*task);
        }
        let mut sent = Vec::new();
        for (offset, tasks) in by_offset {
            let script = self.script(offset, &tasks)?;
            let submitted = super::submit(&script)?;
            sent.push(submitted.job_id.clone());
            self.state.arrays.push(Array {
                job: submitted.job_id,
                cluster: submitted.cluster,
                offset,
                tasks,
            });
            // After each: what was sent must be found again, whatever happens to this process.
            self.save()?;
        }
        Ok(sent)
    }

    fn save(&self) -> Result<(), FileError> {
        let text = serde_json::to_string_pretty(&self.state).unwrap_or_default() + "\n";
        write_inside(&self.folder.join(STATE), text.as_bytes())
    }

    /// How each task stands that Slurm still knows; of several arrays with one task, the last counts.
    pub fn states(&self) -> Result<BTreeMap<usize, TaskState>, ArrayFailure> {
        let known = self.known()?;
        let mut states = BTreeMap::new();
        for array in &self.state.arrays {
            for task in &array.tasks {
                let index = task.checked_sub(array.offset);
                let state = index.and_then(|index| known.get(&(array.job.clone(), index)));
                match state {
                    Some(state) => states.insert(*task, state.clone()),
                    None => states.remove(task),
                };
            }
        }
        Ok(states)
    }

    /// By job and index.
    fn known(&self) -> Result<BTreeMap<(String, usize), TaskState>, SlurmError> {
        let mut all = BTreeMap::new();
        for array in &self.state.arrays {
            let mut arguments = vec![
                "--noheader".to_owned(),
                "--array".to_owned(),
                "--states=all".to_owned(),
                "--format=%F|%K|%T|%r".to_owned(),
                format!("--jobs={}", array.job),
            ];
            arguments.extend(
                array
                    .cluster
                    .as_ref()
                    .map(|cluster| format!("--clusters={cluster}")),
            );
            match call("squeue", &arguments) {
                Ok(text) => all.extend(text.lines().filter_map(task_of)),
                // Ended minutes ago: the controller has forgotten it.
                Err(SlurmError::Refused { words, .. }) if words.contains("Invalid job id") => {}
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }

    fn script(&self, offset: usize, tasks: &[usize]) -> Result<Vec<u8>, ScriptError> {
        let request = &self.request;
        if request.command.is_empty() {
            return Err(ScriptError::NoCommand);
        }
        let mut lines = vec![
            format!("--job-name={}", safe_name(&request.name)),
            "--nodes=1".to_owned(),
            "--ntasks=1".to_owned(),
            format!("--cpus-per-task={}", request.cpus.max(1)),
            // A lost node or a preemption queues the task again; its log goes on.
            "--requeue".to_owned(),
            "--open-mode=append".to_owned(),
        ];
        if request.gpus > 0 {
            lines.push(format!("--gpus-per-node={}", request.gpus));
        }
        if let Some(memory) = &request.memory {
            lines.push(format!("--mem={}", checked("mem", memory, is_memory)?));
        }
        lines.push(format!("--time={}", checked("time", &request.time, is_time)?));
        if seconds(&request.time).is_none_or(|seconds| seconds >= LONG_S) {
            lines.push(format!("--signal=B:TERM@{WARNING_S}"));
        }
        for (option, value) in [
            ("partition", &request.partition),
            ("account", &request.account),
            ("qos", &request.qos),
        ] {
            if let Some(value) = value {
                lines.push(format!("--{option}={}", checked(option, value, word)?));
            }
        }
        let at_once = request
            .most_running
            .map_or_else(String::new, |count| format!("%{}", count.max(1)));
        let indices: Vec<usize> = tasks.iter().map(|task| task - offset).collect();
        lines.push(format!("--array={}{at_once}", ranges(&indices)));
        for option in &request.more {
            let option = checked("sbatch", option.trim_start_matches("--"), word)?;
            lines.push(format!("--{option}"));
        }
        let mut out = b"#!/bin/bash\n".to_vec();
        for line in lines {
            out.extend_from_slice(format!("#SBATCH {line}\n").as_bytes());
        }
        // A folder's name may hold what Slurm would take apart; the quotes are Slurm's own.
        let log = self.logs().join("%A_%a.log").display().to_string();
        if log.contains(['"', '\n', '\\']) {
            return Err(ScriptError::BadValue {
                option: "output-dir",
                value: log,
            });
        }
        out.extend_from_slice(format!("#SBATCH --output=\"{log}\"\n").as_bytes());
        // `exec`: the signals of a preemption or a time limit reach the program.
        out.extend_from_slice(b"\nset -u\nexec");
        for part in &request.command {
            out.push(b' ');
            out.extend(quoted(part));
        }
        let number = match offset {
            0 => "\"$SLURM_ARRAY_TASK_ID\"".to_owned(),
            offset => format!("\"$((SLURM_ARRAY_TASK_ID + {offset}))\""),
        };
        out.extend_from_slice(b" ");
        out.extend(quoted(OsStr::new("--point")));
        out.extend_from_slice(format!(" {number}\n").as_bytes());
        Ok(out)
    }
}

/// `4711|3|PENDING|Resources`.
fn task_of(line: &str) -> Option<((String, usize), TaskState)> {
    let mut fields = line.trim().split('|');
    let (job, index) = (fields.next()?, fields.next()?.parse().ok()?);
    let state = fields.next()?;
    let reason = fields.next().map(str::trim);
    let reason = reason.filter(|reason| !matches!(*reason, "" | "None" | "(null)"));
    let state = match state {
        "PENDING" | "CONFIGURING" | "REQUEUED" | "REQUEUE_FED" | "REQUEUE_HOLD" | "SPECIAL_EXIT"
        | "RESV_DEL_HOLD" => TaskState::Waiting(reason.map(str::to_owned)),
        "RUNNING" | "COMPLETING" | "SUSPENDED" | "STOPPED" | "SIGNALING" | "STAGE_OUT" | "RESIZING" => {
            TaskState::Running
        }
        "CANCELLED" => TaskState::Cancelled,
        other => TaskState::Ended(other.to_owned()),
    };
    Some(((job.to_owned(), index), state))
}

/// `1-3,7`.
fn ranges(numbers: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match parts.last_mut() {
            Some((_, last)) if *number == *last + 1 => *last = *number,
            _ => parts.push((*number, *number)),
        }
    }
    let texts = parts.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    texts.collect::<Vec<_>>().join(",")
}

/// `MaxArraySize` of the cluster.
fn most_indices() -> usize {
    let text = call("scontrol", &["show", "config"]).unwrap_or_default();
    let value = text.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == "MaxArraySize").then(|| value.trim().parse::<usize>().ok())?
    });
    value.filter(|size| *size > 1).unwrap_or(USUAL_INDICES)
}

/// Slurm's ways to write a time: minutes, minutes:seconds, hours:minutes:seconds, `days-hours[:minutes[:seconds]]`.
fn seconds(text: &str) -> Option<u64> {
    let numbers =
        |text: &str| -> Option<Vec<u64>> { text.split(':').map(|part| part.parse().ok()).collect() };
    let of = |parts: &[u64], units: &[u64]| -> Option<u64> {
        let products = parts
            .iter()
            .zip(units)
            .map(|(part, unit)| part.checked_mul(*unit));
        products.sum()
    };
    match text.split_once('-') {
        Some((days, rest)) => {
            let days = days.parse::<u64>().ok()?.checked_mul(86_400)?;
            days.checked_add(of(&numbers(rest)?, &[3600, 60, 1])?)
        }
        None => match numbers(text)?.as_slice() {
            [minutes] => minutes.checked_mul(60),
            [minutes, seconds] => of(&[*minutes, *seconds], &[60, 1]),
            [hours, minutes, seconds] => of(&[*hours, *minutes, *seconds], &[3600, 60, 1]),
            _ => None,
        },
    }
}

/// A time limit as Slurm writes it: `2h`, `90m` and `3d` are hours, minutes and days; the rest is Slurm's own already.
pub fn time_limit(text: &str) -> String {
    let text = text.trim();
    let number = |unit: char| text.strip_suffix(unit)?.parse::<u64>().ok();
    match (number('m'), number('h'), number('d')) {
        (Some(minutes), _, _) => minutes.to_string(),
        (_, Some(hours), _) => format!("{hours}:00:00"),
        (_, _, Some(days)) => format!("{days}-00"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrays(folder: &Path, time: &str) -> Arrays {
        Arrays {
            folder: folder.to_owned(),
            request: ArrayRequest {
                name: "grid".into(),
                command: ["/opt/flat out", "grid", "a b.yaml"].map(OsString::from).to_vec(),
                gpus: 1,
                cpus: 4,
                memory: None,
                time: time.into(),
                partition: Some("gpu".into()),
                account: None,
                qos: None,
                most_running: Some(8),
                more: vec!["constraint=a100".into()],
            },
            state: State::default(),
            indices: USUAL_INDICES,
        }
    }

    #[test]
    fn the_script_of_an_array() {
        let script = arrays(Path::new("out/my grid"), "2:00:00")
            .script(0, &[1, 2, 3, 7])
            .unwrap();
        assert_eq!(
            String::from_utf8(script).unwrap(),
            "#!/bin/bash\n#SBATCH --job-name=grid\n#SBATCH --nodes=1\n#SBATCH --ntasks=1\n#SBATCH --cpus-per-task=4\n#SBATCH --requeue\n#SBATCH --open-mode=append\n#SBATCH --gpus-per-node=1\n#SBATCH --time=2:00:00\n#SBATCH --signal=B:TERM@60\n#SBATCH --partition=gpu\n#SBATCH --array=1-3,7%8\n#SBATCH --constraint=a100\n#SBATCH --output=\"out/my grid/logs/%A_%a.log\"\n\nset -u\nexec '/opt/flat out' grid 'a b.yaml' --point \"$SLURM_ARRAY_TASK_ID\"\n"
        );
        let short = arrays(Path::new("out"), "5").script(1001, &[1002]).unwrap();
        let short = String::from_utf8(short).unwrap();
        assert!(
            !short.contains("--signal") && short.contains("--array=1%8\n") && short.contains("+ 1001))"),
            "{short}"
        );
        assert!(
            arrays(Path::new("out\n#SBATCH --uid=0"), "5")
                .script(0, &[1])
                .is_err()
        );
        assert!(arrays(Path::new("out"), "$(id)").script(0, &[1]).is_err());
    }

    #[test]
    fn lines_of_squeue() {
        let of = |line: &str| task_of(line).map(|(_, state)| state);
        assert_eq!(
            of("7|3|PENDING|Resources"),
            Some(TaskState::Waiting(Some("Resources".into())))
        );
        assert_eq!(of("7|3|RUNNING|None"), Some(TaskState::Running));
        assert_eq!(of("7|3|CANCELLED|None"), Some(TaskState::Cancelled));
        assert_eq!(
            of("7|3|NODE_FAIL|None"),
            Some(TaskState::Ended("NODE_FAIL".into()))
        );
        assert_eq!((of("7|N/A|RUNNING|None"), of(""), of("7|3")), (None, None, None));
    }

    #[test]
    fn numbers_and_times() {
        let limits = ["2h", "90m", "3d", "90", "1-02:00:00", "h"].map(time_limit);
        assert_eq!(limits, ["2:00:00", "90", "3-00", "90", "1-02:00:00", "h"]);
        assert_eq!(ranges(&[1, 2, 3, 5, 7, 8]), "1-3,5,7-8");
        assert_eq!(
            ["90", "5:30", "2:00:00", "1-02", "1-00:30", "UNLIMITED"].map(seconds),
            [
                Some(5400),
                Some(330),
                Some(7200),
                Some(93_600),
                Some(88_200),
                None
            ]
        );
    }
}
