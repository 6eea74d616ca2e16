//! What a page costs on this machine: taken from the kernel, emptied by it, touched once, and given back. It says what the page faults
//! of a program cost at least; how many there are, its processes tell.

use super::member::page_bytes;
use flatout_record::PageInfo;

/// Two MiB where pages have four KiB: 1 ms a round where a page takes 2 µs.
const PAGES: usize = 512;
/// The cheapest round counts: the first ones find the kernel's free lists cold, and neighbours slow down others.
const ROUNDS: usize = 8;

/// `None` where the kernel gives no memory or no clock.
pub fn cost() -> Option<PageInfo> {
    let bytes = page_bytes();
    let length = PAGES.checked_mul(usize::try_from(bytes).ok()?)?;
    let rounds = (0..ROUNDS).map_while(|_| round_ns(length));
    let best_ns = rounds.min()?;
    let us = best_ns as f64 / 1e3 / PAGES as f64;
    (us > 0.0).then(|| PageInfo {
        bytes,
        us: (us * 1e3).round() / 1e3,
    })
}

/// This thread's CPU time for a mapping that is touched page by page and given back: what others take of the CPU meanwhile is not in it.
fn round_ns(length: usize) -> Option<u64> {
    let begun = thread_cpu_ns()?;
    // SAFETY: a new private mapping that nobody else knows; the result is checked.
    let memory = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if memory == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the mapping above. A page of its own for every touch, where the kernel would take huge ones; a refusal changes nothing else.
    unsafe { libc::madvise(memory, length, libc::MADV_NOHUGEPAGE) };
    for offset in (0..length).step_by(length / PAGES) {
        // SAFETY: within the mapping; volatile, so that no touch is left out.
        unsafe { memory.cast::<u8>().add(offset).write_volatile(1) };
    }
    // SAFETY: mapped above with this length, and no pointer into it is kept.
    unsafe { libc::munmap(memory, length) };
    thread_cpu_ns()?.checked_sub(begun)
}

fn thread_cpu_ns() -> Option<u64> {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel fills the struct on this stack.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) } != 0;
    (!failed).then_some(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_costs_something() {
        let page = cost().unwrap();
        assert!(page.bytes >= 4096 && page.us > 0.0, "{page:?}");
    }
}
