//! Ctrl-C and its kin, as something one can wait for ([`Interrupt`]: watching ends in order, the record is closed, the verdict
//! printed) or look at between two steps ([`flag`]: the trainer saves).

use crate::signals::Signals;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

static CAME: Signals = Signals::new();
/// The end of a pipe that the handler writes to, so that a signal between looking and waiting is not missed.
static WAKE: AtomicI32 = AtomicI32::new(-1);

/// Set with the first signal.
static FLAG: AtomicBool = AtomicBool::new(false);

/// From its making on, SIGINT, SIGTERM and SIGHUP no longer end the process.
#[derive(Debug)]
pub struct Interrupt {
    wake: RawFd,
}

/// Seconds to end in order after the terminal of a screen is gone. A reader of keys that was in the middle of reading never returns.
const AFTER_HANGUP_S: libc::c_uint = 5;
static ON_SCREEN: AtomicBool = AtomicBool::new(false);

extern "C" fn handle(signal: libc::c_int) {
    if signal == libc::SIGHUP && ON_SCREEN.load(Ordering::SeqCst) {
        // SAFETY: alarm may be called in a handler.
        unsafe { libc::alarm(AFTER_HANGUP_S) };
    }
    FLAG.store(true, Ordering::SeqCst);
    CAME.note();
    // SAFETY: write may be called in a handler; the descriptor is ours and stays open.
    unsafe { libc::write(WAKE.load(Ordering::SeqCst), [1u8].as_ptr().cast(), 1) };
}

fn catch(signals: &[libc::c_int]) {
    // SAFETY: sigaction gets a zeroed structure with a handler that only touches atomics and calls what may be called in a handler.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handle as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        for signal in signals {
            libc::sigaction(*signal, &action, std::ptr::null_mut());
        }
    }
}

/// From here on SIGINT and SIGTERM set this flag instead of ending the process; the second one ends it.
pub fn flag() -> &'static AtomicBool {
    catch(&[libc::SIGINT, libc::SIGTERM]);
    &FLAG
}

/// Whether a signal came.
pub fn came() -> bool {
    CAME.came()
}

impl Interrupt {
    pub fn catch() -> Self {
        let mut ends: [RawFd; 2] = [-1, -1];
        // SAFETY: pipe2 fills two descriptors.
        unsafe {
            libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK);
            WAKE.store(ends[1], Ordering::SeqCst);
        }
        catch(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP]);
        Self { wake: ends[0] }
    }

    /// For a program that draws on a terminal: when that is gone, so is the program soon.
    pub fn catch_on_screen() -> Self {
        ON_SCREEN.store(true, Ordering::SeqCst);
        Self::catch()
    }

    pub fn came(&self) -> bool {
        CAME.came()
    }

    /// Waits this long, or until a signal comes. Says whether one did.
    pub fn wait(&self, at_most: Duration) -> bool {
        let mut descriptor = libc::pollfd {
            fd: self.wake,
            events: libc::POLLIN,
            revents: 0,
        };
        // Rounded up: waking early would only mean to wait again.
        let milliseconds = at_most.as_micros().div_ceil(1000).min(i32::MAX as u128) as i32;
        if !self.came() && milliseconds > 0 {
            // SAFETY: one valid pollfd is passed.
            unsafe { libc::poll(&mut descriptor, 1, milliseconds) };
        }
        self.came()
    }
}
