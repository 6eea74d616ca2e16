//! Waiting for signals instead of handling them: they are blocked, and taken one by one where the loop waits anyway.

use std::time::Duration;

/// Signals that ask a program to end.
const ENDING: [i32; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];

/// What a program may not block, and what the kernel sends for an error in our own code.
const OURS: [i32; 8] = [
    libc::SIGKILL,
    libc::SIGSTOP,
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGSYS,
];

pub struct Signals {
    waited_for: libc::sigset_t,
    before: libc::sigset_t,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// The time has passed.
    Time,
    /// A child changed its state.
    Child,
    /// To be passed on to the program.
    PassOn { signal: i32, sender: u32 },
    /// Came from no process: from the terminal, or a timer.
    Kernel(i32),
}

impl Signals {
    /// Blocks every signal that can be passed on, in this thread; threads made later inherit that.
    pub fn block() -> Self {
        // SIGRTMIN is the first that glibc leaves to programs.
        let all = (1..libc::SIGRTMIN()).take_while(|signal| *signal < 32);
        let all = all.chain(libc::SIGRTMIN()..=libc::SIGRTMAX());
        Self::block_these(all.filter(|signal| !OURS.contains(signal)))
    }

    /// Blocks those that ask to end.
    pub fn block_ending() -> Self {
        Self::block_these(ENDING.into_iter().chain([libc::SIGCHLD]))
    }

    fn block_these(signals: impl Iterator<Item = i32>) -> Self {
        // SAFETY: fills two signal sets that live on the stack and changes this thread's mask.
        unsafe {
            let mut waited_for: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut waited_for);
            for signal in signals {
                libc::sigaddset(&mut waited_for, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &waited_for, &mut before);
            Self { waited_for, before }
        }
    }

    /// The mask this process was started with.
    pub fn mask_before(&self) -> libc::sigset_t {
        self.before
    }

    /// Waits for a signal, at most this long.
    pub fn wait(&self, at_most: Duration) -> Woken {
        let timeout = libc::timespec {
            tv_sec: at_most.as_secs() as libc::time_t,
            tv_nsec: libc::c_long::from(at_most.subsec_nanos()),
        };
        // SAFETY: all three point to values on this stack; the kernel fills `info`, whose sender is there for every code that is
        // not positive, and is a number in any case.
        let (signal, code, sender) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let signal = libc::sigtimedwait(&self.waited_for, &mut info, &timeout);
            (signal, info.si_code, info.si_pid().unsigned_abs())
        };
        match signal {
            ..=0 => Woken::Time,
            libc::SIGCHLD if code > 0 => Woken::Child,
            // Our own limits of CPU time and of the size of files; the program has its own.
            libc::SIGXCPU | libc::SIGXFSZ if code > 0 => Woken::Time,
            signal if code > 0 => Woken::Kernel(signal),
            // A pipe that we wrote to was closed, a file would have become too large: the kernel sends these in our name.
            _ if sender == std::process::id() => Woken::Time,
            signal => Woken::PassOn { signal, sender },
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // SAFETY: puts back the mask that `block` found.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}
