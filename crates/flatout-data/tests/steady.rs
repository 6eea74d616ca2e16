//! Nothing is allocated once the first round of batches is through. Alone in its file: the allocator counts for the whole process.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use flatout_data::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn a_steady_stream_allocates_nothing() {
    let (rows, width) = (5000usize, 16usize);
    let panel = Panel {
        features: vec![1.0; rows * width].into(),
        feature_names: (0..width).map(|index| index.to_string()).collect(),
        labels: vec![0.5; rows].into(),
        entity_of_row: vec![0; rows].into(),
        ..Panel::default()
    };
    let source: Arc<dyn SampleSource> = Arc::new(WindowSource {
        panel: Arc::new(panel),
        sequence_length: 30,
        horizon: 1,
    });
    let order = EpochOrder::new((0..4000).collect(), 64, false, Some(1));
    let memories = (0..4).map(|_| HostBatch::new(source.shape(), 64)).collect();
    let mut batches =
        Prefetcher::new(source, order, Position::default(), memories, Threads::Fixed(2)).unwrap();
    for _ in 0..100 {
        batches.next_batch().unwrap();
    }
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    // Several epochs: a new order each, the short last batch, the controller's windows.
    for _ in 0..400 {
        batches.next_batch().unwrap();
    }
    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed) - before, 0);
}
