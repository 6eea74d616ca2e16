//! Starting a program so that it notices nothing: it inherits stdin, stdout, stderr, the process group and the signal mask; the
//! signals sent to us reach it; its exit, by code or by signal, becomes ours.

mod guard;
mod inherited;
mod signals;
mod tree;

pub use guard::{Charge, Guard, sweep};
pub use signals::{Signals, Woken};

use crate::RunError;
use flatout_record::ExitInfo;
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
        keep_running: bool,
    ) -> Result<Self, RunError> {
        let (program, arguments) = command.split_first().ok_or(RunError::NoCommand)?;
        let mask = signals.mask_before();
        let mut start = Command::new(program);
        start.args(arguments).envs(environment.iter().cloned());
        let own = std::process::id() as libc::pid_t;
        // SAFETY: between fork and exec only system calls are made, which is safe there. The program gets the standard streams and
        // the signal mask that we were started with, since ours blocks what we wait for, and is asked to end when we are killed,
        // even if that has happened already.
        unsafe {
            start.pre_exec(move || {
                inherited::give();
                if !keep_running {
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM, 0, 0, 0);
                    if libc::getppid() != own {
                        libc::raise(libc::SIGTERM);
                    }
                }
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

    /// Whether it was stopped since the last call, as by Ctrl-Z.
    pub fn was_stopped(&self) -> bool {
        // SAFETY: asks the kernel about our own child; what it fills lives on this stack. An exit is left for `ended`.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let options = libc::WSTOPPED | libc::WNOHANG;
            let asked = libc::waitid(libc::P_PID, self.child.id(), &mut info, options);
            asked == 0 && info.si_pid() != 0
        }
    }

    pub fn send(&self, signal: i32) {
        // SAFETY: sends a signal to our own child, which has not been waited for yet, so its id is still its own.
        unsafe { libc::kill(self.child.id() as libc::pid_t, signal) };
    }
}

/// Stops this process as the program was stopped: the shell must see its job stopped. Returns when it is continued.
pub fn stop_too(guard: Option<&Guard>) {
    let Some(guard) = guard else {
        return;
    };
    guard.stopping();
    // SAFETY: stops our own process; the guard or the shell continues it.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// Kills every process of the run that has this folder.
pub fn kill_marked(folder: &std::path::Path) {
    for process in tree::marked(folder) {
        // SAFETY: sends a signal to a process whose environment names our run's own folder.
        unsafe { libc::kill(process as libc::pid_t, libc::SIGKILL) };
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
