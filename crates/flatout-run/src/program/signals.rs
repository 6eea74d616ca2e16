//! Waiting for signals instead of handling them: they are blocked, and taken one by one where the loop waits anyway.

use std::time::Duration;

/// What is passed on to the program. SIGTSTP, SIGCONT and SIGWINCH are left alone: the terminal sends them to both.
const PASSED_ON: [i32; 8] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGXCPU,
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
    PassOn(i32),
    /// Came from the terminal, which sent it to the program as well.
    Terminal(i32),
}

impl Signals {
    /// Blocks them in this thread; threads made later inherit that.
    pub fn block() -> Self {
        // SAFETY: fills two signal sets that live on the stack and changes this thread's mask.
        unsafe {
            let mut waited_for: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut waited_for);
            libc::sigaddset(&mut waited_for, libc::SIGCHLD);
            for signal in PASSED_ON {
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
        // SAFETY: all three point to values on this stack; the kernel fills `info`.
        let (signal, code) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let signal = libc::sigtimedwait(&self.waited_for, &mut info, &timeout);
            (signal, info.si_code)
        };
        match signal {
            libc::SIGCHLD => Woken::Child,
            signal if signal > 0 && code == libc::SI_KERNEL => Woken::Terminal(signal),
            signal if signal > 0 => Woken::PassOn(signal),
            _ => Woken::Time,
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // SAFETY: puts back the mask that `block` found.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}
