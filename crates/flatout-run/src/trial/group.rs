//! A program in a process group of its own, with its output in a file. When the trial ends, or flatout does, so does all of it.

use crate::RunError;
use crate::program::Environment;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Between asking and killing.
const PATIENCE: Duration = Duration::from_secs(2);

pub struct Group {
    child: Child,
    ended: Option<ExitStatus>,
}

/// From now on processes whose parent has died become our children, so that we can end what left its group.
pub fn adopt_orphans() {
    // SAFETY: prctl with this option only sets a flag of our own process.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
}

impl Group {
    pub fn start(command: &[OsString], environment: &Environment, log: &Path) -> Result<Self, RunError> {
        let (program, arguments) = command.split_first().ok_or(RunError::NoCommand)?;
        let output = File::create(log).map_err(RunError::Runtime)?;
        let errors = output.try_clone().map_err(RunError::Runtime)?;
        let mut start = Command::new(program);
        start.args(arguments).envs(environment.iter().cloned());
        start
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0);
        // SAFETY: between fork and exec only prctl is called, which is safe there: the program dies with us.
        unsafe {
            start.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
                Ok(())
            });
        }
        let child = start.spawn().map_err(|source| RunError::Start {
            program: program.to_string_lossy().into_owned(),
            source,
        })?;
        Ok(Self { child, ended: None })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn ended(&mut self) -> Result<Option<ExitStatus>, RunError> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().map_err(RunError::Wait)?;
        }
        Ok(self.ended)
    }

    fn send(&self, signal: i32) {
        // SAFETY: sends a signal to the group that we made; its id stays taken until its leader was waited for and all of it is gone.
        unsafe { libc::kill(-(self.child.id() as libc::pid_t), signal) };
    }

    /// Our own trainer does not know when a trial is over.
    pub fn ask_to_end_if(&self, asks: bool) {
        if asks {
            self.send(libc::SIGTERM);
        }
    }

    /// Ends the leader: asks, then kills.
    pub fn end_now(&mut self) -> Result<ExitStatus, RunError> {
        let began = Instant::now();
        self.send(libc::SIGTERM);
        loop {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            if began.elapsed() > PATIENCE {
                self.send(libc::SIGKILL);
                let status = self.child.wait().map_err(RunError::Wait)?;
                self.ended = Some(status);
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends the whole group and what it left behind.
    pub fn end(&mut self) {
        if self.ended.is_none() {
            self.ended = self.end_now().ok().or(Some(ExitStatus::from_raw(libc::SIGKILL)));
        }
        self.send(libc::SIGKILL);
        end_orphans();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

/// Children of ours that we did not start: processes of the program whose parents have died.
fn end_orphans() {
    for _ in 0..50 {
        let children = children().unwrap_or_default();
        if children.is_empty() {
            return;
        }
        for child in children {
            // SAFETY: our own children, by the kernel's word, that nobody else waits for; ended and waited for.
            unsafe {
                libc::kill(child, libc::SIGKILL);
                libc::waitpid(child, std::ptr::null_mut(), libc::WNOHANG);
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn children() -> io::Result<Vec<libc::pid_t>> {
    let mut all = Vec::new();
    for thread in fs::read_dir("/proc/self/task")? {
        let text = fs::read_to_string(thread?.path().join("children")).unwrap_or_default();
        all.extend(
            text.split_whitespace()
                .filter_map(|word| word.parse::<libc::pid_t>().ok()),
        );
    }
    Ok(all)
}
