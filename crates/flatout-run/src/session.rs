//! One run from its start to its end: start the program, empty its rings several times a second, write a line a tick, pass
//! signals on, and say how it ended.

mod attach;
pub mod cell;
mod early;
mod peaks;
mod recording;
mod stall;

use crate::RunError;
use crate::auto::Auto;
use crate::collect::Progress;
use crate::probe::{Runtime, without_site};
use crate::profile;
use crate::program::{self, Charge, Environment, Guard, Program, Signals, Woken, exit_info};
pub use attach::{Access, Attach, access, attach};
use early::EarlyFinding;
pub use early::Live;
use flatout_record::{self as record, ExitInfo, JobInfo, SCHEMA};
use flatout_record::{RecordWriter, RunInfo};
use flatout_telemetry::sampler::job_from_environment;
pub use recording::Recording;
pub use stall::OnHang;
use stall::Stall;
use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant, SystemTime};

/// Rings are emptied this often, so that a burst of messages finds room.
const POLL: Duration = Duration::from_millis(100);

#[derive(Clone, Debug)]
pub struct Options {
    pub command: Vec<OsString>,
    /// The run's name; the program's otherwise.
    pub name: Option<String>,
    /// Settings for the probe to put in force: `loader.num_workers=8`.
    pub apply: Vec<String>,
    /// Have the program's settings changed while it runs.
    pub auto: Option<Auto>,
    /// Stop the program after this many optimizer steps.
    pub steps: Option<u64>,
    pub interval: Duration,
    /// Judge the run again and again while it goes on.
    pub live: bool,
    /// Have a few steps run under PyTorch's profiler.
    pub profile: bool,
    /// Read where the program's Python code stands.
    pub stacks: bool,
    /// Look closely for some seconds now and then: stacks 250 times per second, and what the GPU does.
    pub windows: bool,
    /// Let the program go on when flatout is killed.
    pub keep_running: bool,
    /// Report where every rank is after so long without progress; `None` for never.
    pub patience: Option<Duration>,
    pub on_hang: OnHang,
    /// Where records lie.
    pub runs: PathBuf,
}

/// How long a program may make no progress before that is reported.
pub const PATIENCE: Duration = Duration::from_secs(300);

impl Options {
    pub fn new(command: Vec<OsString>) -> Self {
        Self {
            command,
            name: None,
            apply: Vec::new(),
            auto: None,
            steps: None,
            interval: Duration::from_secs(1),
            stacks: true,
            windows: true,
            profile: false,
            live: false,
            keep_running: false,
            patience: Some(PATIENCE),
            on_hang: OnHang::Leave,
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
    /// The record; `None` where none could be written.
    pub folder: Option<PathBuf>,
    pub ended: Ended,
    pub progress: Progress,
    pub duration_s: f64,
}

/// Runs a program to its end. `live` is called while the program still runs. Where nothing can be recorded (a full disk, a folder
/// without permission, no free descriptors), the program runs all the same.
pub fn run(options: &Options, live: &mut dyn FnMut(Live)) -> Result<Outcome, RunError> {
    let signals = Signals::block();
    // Settings are put in force through the folder of the recording.
    let must_record = !options.apply.is_empty() || options.auto.is_some() || options.steps.is_some();
    let mut desk = match Desk::prepare(options) {
        Ok(desk) => Some(desk),
        Err(error) if must_record => return Err(error),
        Err(error) => {
            live(Live::Unrecorded(&error));
            None
        }
    };
    let mut guard = Guard::start(&charge(options, desk.as_ref()));
    let mut started = start(options, desk.as_ref(), &signals);
    if let Err(error) = &started {
        if let Some(desk) = &desk {
            // Nothing ran: an empty record would only be in the way of `last`.
            let _ = std::fs::remove_dir_all(desk.writer.folder());
        }
        if is_scarcity(error) && !must_record {
            if desk.is_some() {
                live(Live::Unrecorded(error));
            }
            (desk, guard) = (None, None);
            started = start(options, None, &signals);
        }
    }
    let mut program = started?;
    if let Some(guard) = &guard {
        guard.started(program.pid());
    }
    let mut wait = Waiting {
        signals: &signals,
        guard: guard.as_ref(),
    };
    let Some(Desk { runtime, mut writer }) = desk else {
        return unrecorded(&mut program, &mut wait);
    };
    let folder = writer.folder().to_owned();
    let begun = Instant::now();
    let mut watching = guarded(|| Watching::start(options, &runtime, program.pid(), &mut writer));
    let status = loop {
        if let Some(status) = wait.turn(&mut program)? {
            break status;
        }
        if let Some(mut watched) = watching.take() {
            let looked = guarded(|| watched.look(&mut writer, &program, live));
            watching = looked.map(|()| watched);
        }
    };
    drop(guard);
    let recorded_s = watching.as_ref().map(|watching| watching.recording.elapsed_s());
    let exit = exit_info(
        status,
        recorded_s.unwrap_or_else(|| begun.elapsed().as_secs_f64()),
    );
    let progress = watching.and_then(|mut watching| {
        guarded(|| {
            watching.recording.finish(&mut writer);
            watching.recording.progress()
        })
    });
    guarded(|| {
        if let Some(profile) = profile::of_record(&folder).filter(|_| options.profile) {
            writer.profile(&profile);
        }
    });
    // By itself: a record without its end reads as that of a run that was killed.
    guarded(|| writer.finish(exit));
    Ok(Outcome {
        folder: Some(folder),
        ended: ended(exit),
        progress: progress.unwrap_or_default(),
        duration_s: exit.t,
    })
}

fn charge(options: &Options, desk: Option<&Desk>) -> Charge {
    Charge {
        folder: desk.map(|desk| desk.runtime.folder().to_owned()),
        ends_program: !options.keep_running,
    }
}

fn start(options: &Options, desk: Option<&Desk>, signals: &Signals) -> Result<Program, RunError> {
    let mut environment = desk.map(|desk| desk.environment(options)).unwrap_or_default();
    if without_site(&options.command) {
        // The probe is not loaded, and nothing would take its folder out of `sys.path`.
        environment.retain(|(name, _)| name != "PYTHONPATH");
    }
    Program::start(&options.command, &environment, signals, options.keep_running)
}

/// Whether a program could not be started for want of something that recording takes as well.
fn is_scarcity(error: &RunError) -> bool {
    let scarce = [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::EAGAIN];
    let code = match error {
        RunError::Start { source, .. } => source.raw_os_error(),
        _ => None,
    };
    code.is_some_and(|code| scarce.contains(&code))
}

/// A mistake of ours ends the recording, with its message, and not the program. `None` after a panic.
pub fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}

/// What is done several times a second while the program runs.
struct Watching {
    recording: Recording,
    early: EarlyFinding,
    stall: Stall,
}

impl Watching {
    fn start(options: &Options, runtime: &Runtime, pid: u32, writer: &mut RecordWriter) -> Self {
        Self {
            early: EarlyFinding::new(writer.folder(), options.live),
            stall: Stall::new(options, runtime.folder()),
            recording: Recording::start(runtime, pid, options, writer),
        }
    }

    fn look(&mut self, writer: &mut RecordWriter, program: &Program, live: &mut dyn FnMut(Live)) {
        self.recording.poll(writer);
        let (progress, now_s) = (self.recording.progress(), self.recording.elapsed_s());
        self.early.look(progress, now_s, live);
        self.stall.look(&self.recording, writer, program, live);
    }
}

/// What recording needs before the program starts.
struct Desk {
    runtime: Runtime,
    writer: RecordWriter,
}

impl Desk {
    fn prepare(options: &Options) -> Result<Self, RunError> {
        let runtime = Runtime::create()?;
        let job = job_from_environment().map(|job| job_name(&job));
        let writer = RecordWriter::begin(&options.runs, &run_name(options), job.as_deref(), info(options))
            .map_err(RunError::Record)?;
        Ok(Self { runtime, writer })
    }

    fn environment(&self, options: &Options) -> Environment {
        let trace = std::path::absolute(self.writer.folder().join(profile::TRACE)).ok();
        let trace = trace.as_deref().filter(|_| options.profile);
        let mut environment = self.runtime.environment(&options.apply, options.steps, trace);
        if let Some(auto) = &options.auto {
            environment.push(("FLATOUT_AUTO".into(), auto.environment().into()));
        }
        environment
    }
}

/// Between two looks at the program.
struct Waiting<'a> {
    signals: &'a Signals,
    guard: Option<&'a Guard>,
}

impl Waiting<'_> {
    /// Waits a moment and passes on what came; how the program ended, if it has.
    fn turn(&mut self, program: &mut Program) -> Result<Option<ExitStatus>, RunError> {
        match self.signals.wait(POLL) {
            Woken::PassOn { signal, sender } => {
                let from_guard = self.guard.is_some_and(|guard| guard.pid() == sender);
                // What was sent to the whole group has reached the program as well.
                if !from_guard && !self.guard.is_some_and(|guard| guard.saw(signal)) {
                    program.send(signal);
                }
            }
            Woken::Kernel(signal) => {
                // A terminal sends its keys to the whole group. That it is gone it tells the leader of its session alone, and an alarm
                // rings for one process.
                let alone = self
                    .guard
                    .map_or(signal == libc::SIGHUP, |guard| !guard.saw(signal));
                if alone {
                    program.send(signal);
                }
            }
            Woken::Child if program.was_stopped() => program::stop_too(self.guard),
            Woken::Child | Woken::Time => {}
        }
        program.ended()
    }
}

/// Waits for a program that nobody watches.
fn unrecorded(program: &mut Program, wait: &mut Waiting<'_>) -> Result<Outcome, RunError> {
    let begun = Instant::now();
    loop {
        if let Some(status) = wait.turn(program)? {
            let exit = exit_info(status, begun.elapsed().as_secs_f64());
            return Ok(Outcome {
                folder: None,
                ended: ended(exit),
                progress: Progress::default(),
                duration_s: exit.t,
            });
        }
    }
}

fn ended(exit: ExitInfo) -> Ended {
    match exit.signal {
        Some(signal) => Ended::Signal(signal),
        None => Ended::Code(exit.code.unwrap_or(0)),
    }
}

/// Its id is that of the folder it gets.
fn info(options: &Options) -> RunInfo {
    RunInfo {
        schema: SCHEMA,
        name: run_name(options),
        kind: "run".into(),
        command: shown(&options.command),
        apply: options.apply.clone(),
        folder: std::env::current_dir().ok(),
        started_unix_ms: SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |since| since.as_millis() as u64),
        interval_s: Some(options.interval.as_secs_f64()),
        ..RunInfo::default()
    }
}

/// The command as a record may keep it.
pub(crate) fn shown(command: &[OsString]) -> Vec<String> {
    let words: Vec<_> = command.iter().map(|part| part.to_string_lossy()).collect();
    flatout_core::secrets::redact(&words)
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
    let parts = words(&options.command);
    let part = parts.iter().find(is_script).or(options.command.first());
    let stem = part.and_then(|part| Path::new(part).file_stem());
    stem.map_or_else(|| "run".into(), |stem| stem.to_string_lossy().into_owned())
}

/// The words of a command; those of a shell's `-c` one by one, because it may contain more than the script's name.
fn words(command: &[OsString]) -> Vec<OsString> {
    let is_code = |part: &OsString| {
        let part = part.to_string_lossy();
        part.starts_with('-') && !part.starts_with("--") && part.ends_with('c')
    };
    let mut words = Vec::new();
    for (place, part) in command.iter().enumerate() {
        if place > 0 && is_code(&command[place - 1]) {
            let text = part.to_string_lossy();
            words.extend(text.split_whitespace().map(OsString::from));
        } else {
            words.push(part.clone());
        }
    }
    words
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
        assert_eq!(named(&["python", "my train.py"]), "my train");
        let code = "curl -H 'Authorization: Bearer abc' h; python src/train.py";
        assert_eq!(named(&["bash", "-lc", code]), "train");
    }
}
