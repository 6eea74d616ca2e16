//! One cell of a notebook: the kernel runs already and goes on afterwards. It loads the probe by itself, from the folder that it is
//! told, so that a cell has steps and phases like a program under `flatout run`.

use super::recording::Recording;
use super::{Ended, Options, Outcome, POLL, info};
use crate::RunError;
use crate::probe::Runtime;
use crate::program::{Signals, Woken};
use flatout_record::{ExitInfo, RecordWriter};
use std::path::{Path, PathBuf};

/// What the kernel must know to load the probe.
#[derive(Clone, Debug)]
pub struct Probe {
    pub python: PathBuf,
    pub rings: PathBuf,
}

/// Watches a kernel from the call of `ready` until `ended` says how the cell ended: with an error or without.
pub fn cell(
    pid: u32,
    name: &str,
    ready: impl FnOnce(&Probe),
    ended: impl Fn() -> Option<bool>,
) -> Result<Outcome, RunError> {
    let process = Path::new("/proc").join(pid.to_string());
    if !process.exists() {
        return Err(RunError::NoProcess(pid));
    }
    let signals = Signals::block_ending();
    let options = Options {
        name: Some(name.to_owned()),
        // A cell cannot be started again from outside: advice has no command to name.
        ..Options::new(Vec::new())
    };
    let runtime = Runtime::create()?;
    let mut writer =
        RecordWriter::begin(&options.runs, name, None, info(&options)).map_err(RunError::Record)?;
    let mut recording = Recording::start(&runtime, pid, &options, &mut writer);
    ready(&Probe {
        python: runtime.folder().join("python"),
        rings: runtime.rings(),
    });
    let failed = loop {
        if let Some(failed) = ended() {
            break failed;
        }
        if !process.exists() {
            break true;
        }
        match signals.wait(POLL) {
            Woken::PassOn { .. } | Woken::Kernel(_) => break true,
            Woken::Child | Woken::Time => recording.poll(&mut writer),
        }
    };
    let t = recording.elapsed_s();
    recording.finish(&mut writer);
    writer.finish(ExitInfo {
        t,
        code: Some(i32::from(failed)),
        signal: None,
    });
    Ok(Outcome {
        folder: Some(writer.folder().to_owned()),
        ended: Ended::Code(i32::from(failed)),
        progress: recording.progress(),
        duration_s: t,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_a_process_that_does_not_exist() {
        let outcome = cell(u32::MAX, "cell", |_| {}, || Some(false));
        assert!(matches!(outcome, Err(RunError::NoProcess(u32::MAX))));
    }
}
