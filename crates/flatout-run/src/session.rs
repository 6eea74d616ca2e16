//! One run from its start to its end: start the program, empty its rings several times a second, write a line a tick, pass
//! signals on, and say how it ended.

mod attach;
mod early;
mod recording;

use crate::RunError;
use crate::collect::Progress;
use crate::probe::{Runtime, without_site};
use crate::profile;
use crate::program::{Program, Signals, Woken, exit_info};
pub use attach::{Access, access, attach};
use early::EarlyFinding;
pub use early::Live;
use flatout_telemetry::record::{self, JobInfo, SCHEMA};
use flatout_telemetry::sampler::job_from_environment;
use flatout_telemetry::{RecordWriter, RunInfo};
pub use recording::Recording;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Rings are emptied this often, so that a burst of messages finds room.
const POLL: Duration = Duration::from_millis(100);

#[derive(Clone, Debug)]
pub struct Options {
    pub command: Vec<OsString>,
    /// The run's name; the program's otherwise.
    pub name: Option<String>,
    /// Settings for the probe to put in force: `loader.num_workers=8`.
    pub apply: Vec<String>,
    /// Stop the program after this many optimizer steps.
    pub steps: Option<u64>,
    pub interval: Duration,
    /// Judge the run again and again while it goes on.
    pub live: bool,
    /// Have a few steps run under PyTorch's profiler.
    pub profile: bool,
    /// Read where the program's Python code stands.
    pub stacks: bool,
    /// Where records lie.
    pub runs: PathBuf,
}

impl Options {
    pub fn new(command: Vec<OsString>) -> Self {
        Self {
            command,
            name: None,
            apply: Vec::new(),
            steps: None,
            interval: Duration::from_secs(1),
            stacks: true,
            profile: false,
            live: false,
            runs: record::runs_folder(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Ended {
    Code(i32),
    Signal(i32),
}

#[derive(Clone, Debug)]
pub struct Outcome {
    pub folder: PathBuf,
    pub ended: Ended,
    pub progress: Progress,
    pub duration_s: f64,
}

/// Runs a program to its end. `live` is called while the program still runs.
pub fn run(options: &Options, live: &mut dyn FnMut(Live)) -> Result<Outcome, RunError> {
    let signals = Signals::block();
    let runtime = Runtime::create()?;
    let job = job_from_environment().map(|job| job_name(&job));
    let folder =
        record::new_folder(&options.runs, &run_name(options), job.as_deref()).map_err(RunError::Record)?;
    let mut writer = RecordWriter::create(&folder, info(options, &folder)).map_err(RunError::Record)?;
    let trace = std::path::absolute(folder.join(profile::TRACE)).ok();
    let trace = trace.as_deref().filter(|_| options.profile);
    let mut environment = runtime.environment(&options.apply, options.steps, trace);
    if without_site(&options.command) {
        // The probe is not loaded, and nothing would take its folder out of `sys.path`.
        environment.retain(|(name, _)| name != "PYTHONPATH");
    }
    let mut program = Program::start(&options.command, &environment, &signals).inspect_err(|_| {
        // Nothing ran: an empty record would only be in the way of `last`.
        let _ = std::fs::remove_dir_all(&folder);
    })?;
    let mut recording = Recording::start(&runtime, program.pid(), options, &mut writer);
    let mut early = EarlyFinding::new(&folder, options.live);
    let status = loop {
        match signals.wait(POLL) {
            Woken::PassOn(signal) => program.send(signal),
            Woken::Child | Woken::Time | Woken::Terminal(_) => {}
        }
        if let Some(status) = program.ended()? {
            break status;
        }
        recording.poll(&mut writer);
        early.look(recording.progress(), recording.elapsed_s(), live);
    };
    let exit = exit_info(status, recording.elapsed_s());
    recording.finish(&mut writer);
    if let Some(profile) = profile::of_record(&folder).filter(|_| options.profile) {
        writer.profile(&profile);
    }
    writer.finish(exit);
    Ok(Outcome {
        folder,
        ended: match exit.signal {
            Some(signal) => Ended::Signal(signal),
            None => Ended::Code(exit.code.unwrap_or(0)),
        },
        progress: recording.progress(),
        duration_s: exit.t,
    })
}

fn info(options: &Options, folder: &Path) -> RunInfo {
    RunInfo {
        schema: SCHEMA,
        id: folder
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default(),
        name: run_name(options),
        kind: "run".into(),
        command: options
            .command
            .iter()
            .map(|part| part.to_string_lossy().into_owned())
            .collect(),
        apply: options.apply.clone(),
        folder: std::env::current_dir().ok(),
        started_unix_ms: SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |since| since.as_millis() as u64),
        interval_s: Some(options.interval.as_secs_f64()),
        ..RunInfo::default()
    }
}

/// The job's number; with several tasks the rank too, because they all begin at once and want folders of their own.
fn job_name(job: &JobInfo) -> String {
    let field = |name: &str| job.fields.get(name).map(String::as_str);
    match (field("rank"), field("tasks")) {
        (Some(rank), Some(tasks)) if tasks != "1" => format!("{}-rank{rank}", job.id),
        _ => job.id.clone(),
    }
}

/// The name given, else the script's, else the program's: `train` for `python -u train.py --lr 1`.
pub fn run_name(options: &Options) -> String {
    if let Some(name) = &options.name {
        return name.clone();
    }
    let is_script = |part: &&OsString| {
        let extension = Path::new(part).extension();
        extension.is_some_and(|extension| extension == "py" || extension == "sh")
    };
    let part = options.command.iter().find(is_script).or(options.command.first());
    let stem = part.and_then(|part| Path::new(part).file_stem());
    stem.map_or_else(|| "run".into(), |stem| stem.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_named_after_its_script() {
        let named = |command: &[&str]| {
            let command = command.iter().map(OsString::from).collect();
            run_name(&Options::new(command))
        };
        assert_eq!(named(&["python", "-u", "src/train.py", "--lr", "1"]), "train");
        assert_eq!(named(&["/usr/bin/python3", "-c", "pass"]), "python3");
        assert_eq!(named(&["torchrun", "--nproc_per_node=2", "a.py"]), "a");
    }
}
