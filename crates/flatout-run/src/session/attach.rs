//! Looking at a program that runs already: its process tree, the GPUs, and where its Python code stands. Steps and phases need the probe
//! inside it, which Python 3.14 can take while it runs, when the user asks for it.

mod inject;

use super::recording::Recording;
use super::{Ended, Options, Outcome, POLL, info};
use crate::RunError;
use crate::probe::Runtime;
use crate::program::{Signals, Woken};
use flatout_core::Message;
use flatout_record::{ExitInfo, RecordWriter};
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Whether a process's memory may be read, and if not, what forbids it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Allowed,
    /// The kernel's `ptrace_scope`, where it is the reason.
    Denied {
        ptrace_scope: Option<u32>,
    },
}

/// Asks the kernel the question that reading stacks will ask.
pub fn access(pid: u32) -> Result<Access, RunError> {
    let process = Path::new("/proc").join(pid.to_string());
    if !process.exists() {
        return Err(RunError::NoProcess(pid));
    }
    if File::open(process.join("mem")).is_ok() {
        return Ok(Access::Allowed);
    }
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    let scope = scope.ok().and_then(|text| text.trim().parse().ok());
    Ok(Access::Denied {
        ptrace_scope: scope.filter(|scope| *scope > 0),
    })
}

/// What to do with a process that runs.
pub struct Attach<'a> {
    pub pid: u32,
    pub duration: Duration,
    /// Where records are.
    pub runs: &'a Path,
    /// Read where its Python code stands.
    pub stacks: bool,
    /// Put the probe into it.
    pub probe: bool,
}

/// Watches a process for so long, until it ends, or until Ctrl-C. `refused` hears why the probe is not in it, or stays in it.
pub fn attach(wanted: &Attach<'_>, refused: &mut dyn FnMut(Message)) -> Result<Outcome, RunError> {
    let Attach {
        pid,
        duration,
        runs,
        stacks,
        probe,
    } = *wanted;
    let signals = Signals::block_ending();
    let options = Options {
        name: Some(format!("attach-{pid}")),
        runs: runs.to_owned(),
        stacks,
        ..Options::new(command_of(pid))
    };
    let runtime = Runtime::create()?;
    let mut writer = RecordWriter::begin(&options.runs, &format!("attach-{pid}"), None, info(&options))
        .map_err(RunError::Record)?;
    let mut recording = Recording::start(&runtime, pid, &options, &mut writer);
    let injected = if probe {
        inject::Injected::put(pid, &runtime).map_err(&mut *refused).ok()
    } else {
        None
    };
    let begun = Instant::now();
    let lives = || Path::new("/proc").join(pid.to_string()).exists();
    while begun.elapsed() < duration && lives() {
        match signals.wait(POLL) {
            Woken::PassOn { .. } | Woken::Kernel(_) => break,
            Woken::Child | Woken::Time => recording.poll(&mut writer),
        }
    }
    if let Some(injected) = injected.filter(|_| lives())
        && let Err(why) = injected.take_out()
    {
        refused(why);
    }
    let t = recording.elapsed_s();
    recording.finish(&mut writer);
    // The program's own end is not ours to tell.
    writer.finish(ExitInfo {
        t,
        code: None,
        signal: None,
    });
    Ok(Outcome {
        folder: Some(writer.folder().to_owned()),
        ended: Ended::Code(0),
        progress: recording.progress(),
        duration_s: t,
    })
}

/// The command line as the kernel knows it.
fn command_of(pid: u32) -> Vec<OsString> {
    use std::os::unix::ffi::OsStringExt;
    let line: PathBuf = Path::new("/proc").join(pid.to_string()).join("cmdline");
    let line = fs::read(line).unwrap_or_default();
    let parts = line.split(|byte| *byte == 0).filter(|part| !part.is_empty());
    parts.map(|part| OsString::from_vec(part.to_vec())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_a_missing_process() {
        assert!(matches!(access(u32::MAX), Err(RunError::NoProcess(u32::MAX))));
        assert!(matches!(access(std::process::id()), Ok(Access::Allowed)));
    }
}
