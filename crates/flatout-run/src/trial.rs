//! Trials of `flatout tune`: a program run for some steps, each time as a process group of its own, with the probe inside.
//!
//! - [`route`]: how a setting reaches the program: a placeholder, a configuration file, our trainer's flags, or the probe.
//! - [`group`]: the process group; nothing of it outlives the trial.
//! - [`measured`]: what the probe, or our trainer's own record, says of it.
//! - [`power`]: what its GPUs take.
//!
//! A trial changes nothing of the user's: changed configuration files are copies, checkpoints go to the trial's own folder
//! (`trials/overlay.py` of `_flatout_apply`).

mod group;
mod measured;
mod power;
mod route;

pub use group::adopt_orphans;
pub use route::{Route, RouteError};

use crate::RunError;
use crate::collect::Clock;
use crate::probe::Runtime;
use crate::program::exit_info;
use crate::session::{Options, Recording};
use flatout_core::{Message, Result, leftover, message};
use flatout_record::{EventKind, Record, RecordWriter, RunData, RunInfo, SCHEMA};
use flatout_tune::disk;
use flatout_tune::trial::{Outcome, Plan, Settings, Trial};
use group::Group;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant, SystemTime};

/// The plan of a trial, for the probe and for our own trainer.
pub const ENVIRONMENT: &str = "FLATOUT_TRIAL";
const POLL: Duration = Duration::from_millis(50);
/// The diagnosis wants several ticks of a run that lasts only seconds.
const TICK: Duration = Duration::from_millis(500);
/// A program that prints more than this is stopped before it fills the disk.
const MOST_OUTPUT_BYTES: u64 = 256 << 20;
/// A program that leaves less than this on the disk is stopped; half of what there was, where it was less to begin with.
const LEAST_FREE_BYTES: u64 = 512 << 20;
/// What programs print that met a full disk: the system's own words.
const FULL: &str = "No space left on device";
/// Once the trial is over, the program may end by itself for so long.
const GRACE: Duration = Duration::from_secs(3);

/// A program as a [`Trial`].
pub struct ProgramTrial<'a> {
    route: Route,
    /// Where each trial's record and output lie.
    folder: PathBuf,
    count: usize,
    stop: &'a dyn Fn() -> bool,
}

/// Why the watching ended.
enum Ended {
    By(ExitStatus),
    /// It was done, or the trial was, and did not exit in time: nothing failed.
    Stopped,
    Hung(f64),
    /// It printed without end.
    Flooded,
    /// It fills the disk.
    DiskFull,
    /// It failed while the disk was full: what it had to say may not have fitted either.
    FailedOnFullDisk(ExitStatus),
    Interrupted,
}

impl<'a> ProgramTrial<'a> {
    /// `stop` says whether the user wants to end.
    pub fn new(route: Route, folder: &Path, stop: &'a dyn Fn() -> bool) -> Self {
        let count = std::fs::read_dir(folder).map_or(0, |entries| entries.flatten().count());
        Self {
            route,
            folder: folder.to_owned(),
            count,
            stop,
        }
    }
}

impl Trial for ProgramTrial<'_> {
    fn run(&mut self, settings: &Settings, plan: &Plan) -> Result<Outcome> {
        self.count += 1;
        let folder = self.folder.join(format!("{:03}", self.count));
        let runtime = Runtime::create()?;
        let prepared = self.route.prepare(settings, &runtime.scratch())?;
        let own_record = prepared.own_record.clone();
        let mut writer =
            RecordWriter::create(&folder, info(&prepared.command, &folder)).map_err(RunError::Record)?;
        // What the program saves may be large: on the disk, not in shared memory, and gone with the trial, or with the next search.
        let saved = folder.join(leftover::name("saved".as_ref()));
        let saved = std::path::absolute(&saved).unwrap_or(saved);
        let mut environment = runtime.environment(&prepared.apply, None, None);
        environment.push((
            ENVIRONMENT.into(),
            probe_plan(plan, &runtime.scratch(), &saved).into(),
        ));
        let log = folder.join("output.log");
        std::fs::create_dir_all(&saved).map_err(RunError::Runtime)?;
        let clock = Clock::since(Instant::now());
        let mut group = Group::start(&prepared.command, &environment, &log, runtime.folder())?;
        let run = Options {
            interval: TICK,
            // Stacks at 20 per second cost 0.2% of a step, in every trial alike, and name the lines that no setting can change.
            windows: false,
            ..Options::new(Vec::new())
        };
        let mut recording = Recording::start(&runtime, group.pid(), &run, &mut writer);
        let done = || match &own_record {
            Some(record) => measured::own_is_enough(record, plan),
            None => runtime.scratch().join("trial-0.json").exists(),
        };
        let ended = self.watch(&mut group, plan, &log, &done, &mut |steps| {
            recording.poll(&mut writer);
            *steps = recording
                .progress()
                .steps
                .max(own_record.as_deref().map_or(0, measured::own_steps));
        })?;
        group.end();
        let _ = std::fs::remove_dir_all(&saved);
        recording.finish(&mut writer);
        let status = match &ended {
            Ended::By(status) | Ended::FailedOnFullDisk(status) => Some(*status),
            _ => None,
        };
        if let Some(status) = status {
            writer.finish(exit_info(status, recording.elapsed_s()));
        }
        drop(writer);
        let tail = tail(&log);
        if matches!(ended, Ended::Interrupted) {
            return Ok(Outcome::Interrupted);
        }
        let record = own_record.filter(|record| record.join("run.json").exists());
        let record = match record {
            Some(own) => measured::keep(&own, &folder),
            None => folder.clone(),
        };
        let data = Record::open(&record)?.load();
        let told = if record == folder {
            measured::from_probe(&runtime.scratch(), &data, &clock)
        } else {
            measured::from_record(&data, plan)
        };
        Ok(self.judge(ended, told, settings, &data, &record, tail))
    }
}

impl ProgramTrial<'_> {
    /// Until the trial is done and the program has ended, or it hangs, or the user has had enough.
    fn watch(
        &self,
        group: &mut Group,
        plan: &Plan,
        log: &Path,
        done: &dyn Fn() -> bool,
        poll: &mut dyn FnMut(&mut u64),
    ) -> Result<Ended> {
        let (mut steps, mut seen) = (0, Instant::now());
        let room = Room::now(&self.folder);
        let mut over: Option<Instant> = None;
        loop {
            if let Some(status) = group.ended()? {
                return Ok(if !status.success() && room.is_short() {
                    Ended::FailedOnFullDisk(status)
                } else {
                    Ended::By(status)
                });
            }
            let before = steps;
            poll(&mut steps);
            if steps > before {
                seen = Instant::now();
            }
            if (self.stop)() {
                return Ok(Ended::Interrupted);
            }
            if std::fs::metadata(log).is_ok_and(|log| log.len() > MOST_OUTPUT_BYTES) {
                return Ok(Ended::Flooded);
            }
            if room.is_short() {
                return Ok(Ended::DiskFull);
            }
            if over.is_none() && done() {
                over = Some(Instant::now());
                group.ask_to_end_if(self.route.is_own());
            }
            if over.is_some_and(|since| since.elapsed() > GRACE) {
                group.end_now()?;
                return Ok(Ended::Stopped);
            }
            let waited = seen.elapsed().as_secs_f64();
            if over.is_none() && waited > plan.patience_s {
                return Ok(Ended::Hung(waited));
            }
            std::thread::sleep(POLL);
        }
    }

    fn judge(
        &self,
        ended: Ended,
        told: measured::Told,
        settings: &Settings,
        data: &RunData,
        record: &Path,
        tail: String,
    ) -> Outcome {
        if let Some(message) = out_of_memory(data, told.until_s) {
            let batch = flatout_diagnose::Analysis::new(data)
                .loaders
                .iter()
                .filter_map(|loader| loader.batch_size)
                .max();
            return Outcome::OutOfMemory { message, batch };
        }
        let failed = match ended {
            // What was measured before is whole, whatever the steps after it did.
            Ended::Hung(seconds) if !told.complete => return Outcome::Hung { seconds, tail },
            Ended::Flooded => Some(message!(en: "it printed more than 256 MiB", zh: "输出超过 256 MiB")),
            Ended::DiskFull => {
                Some(message!(en: "stopped because it was filling the disk", zh: "正在写满磁盘，已被停止"))
            }
            Ended::FailedOnFullDisk(_) if !told.complete => Some(disk_full()),
            Ended::By(status) if !status.success() && !told.complete => Some(how(status, &tail)),
            _ => None,
        };
        if let Some(how) = failed {
            return Outcome::Failed { how, tail };
        }
        let steps = told.steps;
        let Some(mut measured) = told.measurement(settings) else {
            return Outcome::TooShort { steps, tail };
        };
        measured.not_in_force = self.route.not_in_force(settings, data, &measured);
        measured.record = record.to_owned();
        Outcome::Measured(Box::new(measured))
    }
}

/// How much must stay free where the trial and the program write.
struct Room([(PathBuf, u64); 2]);

impl Room {
    fn now(folder: &Path) -> Self {
        Self([folder, Path::new(".")].map(|place| {
            let half = disk::free_bytes(place).unwrap_or(0) / 2;
            (place.to_owned(), half.min(LEAST_FREE_BYTES))
        }))
    }

    fn is_short(&self) -> bool {
        let short =
            |(place, least): &(PathBuf, u64)| disk::free_bytes(place).is_some_and(|free| free < *least);
        self.0.iter().any(short)
    }
}

fn probe_plan(plan: &Plan, folder: &Path, saved: &Path) -> String {
    serde_json::json!({
        "warm_up": plan.warm_up_steps,
        "steps": plan.steps,
        "seconds": plan.seconds,
        "longest": plan.longest_s,
        "beat": plan.beat,
        "noise": plan.noise,
        "settle": plan.settle_s,
        "best": plan.best.map(|best| (best.low, best.high)),
        "sizes": plan.sizes,
        "workers": plan.workers,
        "freeze": plan.freeze,
        "variants": plan.variants,
        "folder": folder,
        "saved": saved,
    })
    .to_string()
}

/// While it was measured; steps of other sizes may come to their limits after that.
fn out_of_memory(data: &RunData, until_s: Option<f64>) -> Option<String> {
    let during = data
        .events
        .iter()
        .filter(|event| until_s.is_none_or(|until_s| event.t <= until_s));
    during.into_iter().find_map(|event| match &event.kind {
        EventKind::OutOfMemory { message, .. } => Some(
            message
                .lines()
                .next()
                .unwrap_or_default()
                .chars()
                .take(160)
                .collect(),
        ),
        _ => None,
    })
}

fn how(status: ExitStatus, tail: &str) -> Message {
    if tail.contains(FULL) {
        return disk_full();
    }
    exit_info(status, 0.0).failure().unwrap_or_default()
}

fn disk_full() -> Message {
    message!(en: "the disk is full", zh: "磁盘已满")
}

/// The end of what it printed.
fn tail(log: &Path) -> String {
    const KEPT: usize = 4000;
    let bytes = std::fs::read(log).unwrap_or_default();
    String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(KEPT)..]).into_owned()
}

fn info(command: &[std::ffi::OsString], folder: &Path) -> RunInfo {
    RunInfo {
        schema: SCHEMA,
        id: folder
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default(),
        name: "trial".into(),
        kind: "tune".into(),
        command: crate::session::shown(command),
        folder: std::env::current_dir().ok(),
        started_unix_ms: SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |since| since.as_millis() as u64),
        interval_s: Some(TICK.as_secs_f64()),
        ..RunInfo::default()
    }
}
