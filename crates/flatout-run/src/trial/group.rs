//! A program in a process group of its own, with its output in a file. When the trial ends, or flatout does, so does all of it.

use crate::RunError;
use crate::program::{Charge, Environment, Guard};
use flatout_core::files::private;
use std::ffi::OsString;
use std::fs;
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
    /// Ends what the program started when we are killed: the kernel ends only the program itself.
    guard: Option<Guard>,
}

/// From now on processes whose parent has died become our children, so that we can end what left its group.
pub fn adopt_orphans() {
    // SAFETY: prctl with this option only sets a flag of our own process.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
}

impl Group {
    /// `runtime` is the trial's private folder, which every process of the program names in its environment.
    pub fn start(
        command: &[OsString],
        environment: &Environment,
        log: &Path,
        runtime: &Path,
    ) -> Result<Self, RunError> {
        let (program, arguments) = command.split_first().ok_or(RunError::NoCommand)?;
        let output = private().append(true).open(log).map_err(RunError::Runtime)?;
        let errors = output.try_clone().map_err(RunError::Runtime)?;
        let mut start = Command::new(program);
        start.args(arguments).envs(environment.iter().cloned());
        start
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0);
        let own = std::process::id() as libc::pid_t;
        // SAFETY: between fork and exec only system calls are made, which is safe there: the program dies with us, even if that has
        // happened already.
        unsafe {
            start.pre_exec(move || {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
                if libc::getppid() != own {
                    libc::raise(libc::SIGKILL);
                }
                Ok(())
            });
        }
        let guard = Guard::start(&Charge {
            folder: Some(runtime.to_owned()),
            ends_program: true,
        });
        let child = start.spawn().map_err(|source| RunError::Start {
            program: program.to_string_lossy().into_owned(),
            source,
        })?;
        if let Some(guard) = &guard {
            guard.started(child.id());
        }
        Ok(Self {
            child,
            ended: None,
            guard,
        })
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
        end_orphans(self.guard.as_ref().map(Guard::pid));
        self.guard = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

/// Children of ours that we did not start: processes of the program whose parents have died.
fn end_orphans(guard: Option<u32>) {
    for _ in 0..50 {
        let mut children = children().unwrap_or_default();
        children.retain(|child| guard != Some(child.unsigned_abs()));
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
