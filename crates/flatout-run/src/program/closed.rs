//! Standard streams that were closed when flatout started. Rust's runtime opens `/dev/null` in their place before `main`; the program
//! gets them closed, as it would alone.

use std::sync::atomic::{AtomicU8, Ordering};

static CLOSED: AtomicU8 = AtomicU8::new(0);

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
}

/// The descriptors, 0 to 2, that were closed at the start.
pub fn at_start() -> impl Iterator<Item = i32> {
    let closed = CLOSED.load(Ordering::Relaxed);
    (0..3).filter(move |descriptor| closed & (1 << descriptor) != 0)
}
