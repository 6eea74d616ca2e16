//! Nothing is allocated once the first round of batches is through. Alone in its file: the allocator counts for the whole process.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "../../../tests/support/counting.rs"]
mod counting;

use counting::allocator_calls;
use flatout_data::*;
use std::sync::Arc;

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
    let before = allocator_calls();
    // Several epochs: a new order each, the short last batch, the controller's windows.
    for _ in 0..400 {
        batches.next_batch().unwrap();
    }
    assert_eq!(allocator_calls() - before, 0);
}
