//! What flatout was started with and the program must get as well, although Rust's runtime and we need something else: standard streams
//! that were closed, which the runtime opens as `/dev/null` before `main`; SIGPIPE ignored, which the runtime does itself and undoes for
//! programs that it starts; SIGCHLD ignored, with which the kernel would not say how the program ended.

use std::sync::atomic::{AtomicU8, Ordering};

static CLOSED: AtomicU8 = AtomicU8::new(0);
static IGNORED: AtomicU8 = AtomicU8::new(0);
const SIGNALS: [libc::c_int; 2] = [libc::SIGPIPE, libc::SIGCHLD];

#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// Runs before Rust's runtime does.
extern "C" fn look() {
    for descriptor in 0..3 {
        // SAFETY: asks for the flags of a descriptor, which may be closed; nothing is changed.
        if unsafe { libc::fcntl(descriptor, libc::F_GETFD) } < 0 {
            CLOSED.fetch_or(1 << descriptor, Ordering::Relaxed);
        }
    }
    for (index, signal) in SIGNALS.into_iter().enumerate() {
        // SAFETY: asks what is done on a signal; what is filled lives on this stack. The default for SIGCHLD runs no code.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let asked = libc::sigaction(signal, std::ptr::null(), &mut action);
            if asked == 0 && action.sa_sigaction == libc::SIG_IGN {
                IGNORED.fetch_or(1 << index, Ordering::Relaxed);
                if signal == libc::SIGCHLD {
                    libc::signal(signal, libc::SIG_DFL);
                }
            }
        }
    }
}

/// In the child, before the program: only system calls.
pub fn give() {
    let (closed, ignored) = (CLOSED.load(Ordering::Relaxed), IGNORED.load(Ordering::Relaxed));
    for descriptor in (0..3).filter(|descriptor| closed & (1 << descriptor) != 0) {
        // SAFETY: closes a standard stream of this process, which is about to become the program.
        unsafe { libc::close(descriptor) };
    }
    for (index, signal) in SIGNALS.into_iter().enumerate() {
        if ignored & (1 << index) != 0 {
            // SAFETY: ignoring a signal runs no code.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
    }
}
