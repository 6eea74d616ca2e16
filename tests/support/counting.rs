//! An allocator that counts, for tests that show that nothing is allocated in a steady state. It counts for the whole process, so
//! such a test is alone in its file, and for each thread.

#![allow(dead_code, reason = "each test asks for its count")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

struct Counting;

static CALLS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static OWN_CALLS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    CALLS.fetch_add(1, Ordering::Relaxed);
    // A thread that is ending has no counter of its own any more.
    let _ = OWN_CALLS.try_with(|calls| calls.set(calls.get() + 1));
}

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count();
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Calls of the allocator so far, of either kind.
pub fn allocator_calls() -> u64 {
    CALLS.load(Ordering::SeqCst)
}

/// The same of this thread alone.
pub fn own_allocator_calls() -> u64 {
    OWN_CALLS.get()
}
