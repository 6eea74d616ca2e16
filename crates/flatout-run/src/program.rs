//! Starting a program so that it notices nothing: it inherits stdin, stdout, stderr, the process group and the signal mask; the
//! signals sent to us reach it; its exit, by code or by signal, becomes ours.

mod closed;
mod signals;

pub use signals::{Signals, Woken};

use crate::RunError;
use flatout_telemetry::record::ExitInfo;
use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};

/// Variables to set, beside the inherited ones.
pub type Environment = Vec<(OsString, OsString)>;

pub struct Program {
    child: Child,
}

impl Program {
    pub fn start(
        command: &[OsString],
        environment: &Environment,
        signals: &Signals,
    ) -> Result<Self, RunError> {
        let (program, arguments) = command.split_first().ok_or(RunError::NoCommand)?;
        let mask = signals.mask_before();
        let mut start = Command::new(program);
        start.args(arguments).envs(environment.iter().cloned());
        // SAFETY: between fork and exec only close and pthread_sigmask are called, which are safe there; they give the program
        // the standard streams and the signal mask that we were started with, since ours blocks what we wait for.
        unsafe {
            start.pre_exec(move || {
                closed::at_start().for_each(|descriptor| {
                    libc::close(descriptor);
                });
                libc::pthread_sigmask(libc::SIG_SETMASK, &mask, std::ptr::null_mut());
                Ok(())
            });
        }
        let child = start.spawn().map_err(|source| RunError::Start {
            program: program.to_string_lossy().into_owned(),
            source,
        })?;
        Ok(Self { child })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, RunError> {
        self.child.try_wait().map_err(RunError::Wait)
    }

    pub fn send(&self, signal: i32) {
        // SAFETY: sends a signal to our own child, which has not been waited for yet, so its id is still its own.
        unsafe { libc::kill(self.child.id() as libc::pid_t, signal) };
    }
}

/// How a program ended, as the record keeps it.
pub fn exit_info(status: ExitStatus, t: f64) -> ExitInfo {
    ExitInfo {
        t,
        code: status.code(),
        signal: status.signal(),
    }
}

/// Ends this process as the program ended: by the same signal, so that a shell sees what it would have seen without us.
/// Returns only when the signal does not kill; `128 + signal` is the code then.
pub fn die_of(signal: i32) -> u8 {
    // SAFETY: plain system calls on our own process: no core dump of ours on top of the program's, the default action for
    // the signal, the signal let through, and sent to ourselves.
    unsafe {
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        libc::signal(signal, libc::SIG_DFL);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
        libc::raise(signal);
    }
    u8::try_from(128 + signal).unwrap_or(255)
}
