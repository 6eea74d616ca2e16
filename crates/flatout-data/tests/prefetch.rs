//! Batches out of the prefetcher: the same whatever the threads, resumable, without hangs, without allocation.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use flatout_data::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn table(rows: usize) -> Arc<Tabular> {
    Arc::new(Tabular {
        rows,
        features: (0..rows * 3).map(|value| value as f32).collect::<Vec<_>>().into(),
        feature_names: ["a", "b", "c"].map(String::from).to_vec(),
        codes: (0..rows as i32).collect::<Vec<_>>().into(),
        categories: vec![Category::default()],
        labels: Labels::Real((0..rows).map(|row| -(row as f32)).collect::<Vec<_>>().into()),
        ..Tabular::default()
    })
}

fn prefetcher(
    rows: usize,
    batch_size: usize,
    start: Position,
    memories: usize,
    threads: Threads,
) -> Prefetcher<HostBatch> {
    let source: Arc<dyn SampleSource> = Arc::new(TabularSource(table(rows)));
    let order = EpochOrder::new((0..rows as u32).collect(), batch_size, false, Some(11));
    let memories = (0..memories)
        .map(|_| HostBatch::new(source.shape(), batch_size))
        .collect();
    Prefetcher::new(source, order, start, memories, threads).unwrap()
}

type Seen = (Position, Vec<f32>, Vec<i32>, Vec<f32>);

fn take(prefetcher: &mut Prefetcher<HostBatch>, count: usize) -> Vec<Seen> {
    (0..count)
        .map(|_| {
            let batch = prefetcher.next_batch().unwrap();
            let memory = &batch.memory;
            (
                batch.position,
                memory.inputs[..batch.samples * 3].to_vec(),
                memory.codes[..batch.samples].to_vec(),
                memory.targets[..batch.samples].to_vec(),
            )
        })
        .collect()
}

#[test]
fn batches_do_not_depend_on_threads_or_depth() {
    let reference = take(
        &mut prefetcher(103, 10, Position::default(), 1, Threads::Fixed(1)),
        35,
    );
    assert_eq!(
        reference[10].1.len(),
        9,
        "the last batch of an epoch has the rest"
    );
    assert_eq!(reference[11].0, Position { epoch: 1, batch: 0 });
    assert_ne!(reference[0].1, reference[11].1, "another order in the next epoch");
    for (memories, threads) in [(2, Threads::Fixed(2)), (5, Threads::Fixed(4)), (3, Threads::Auto)] {
        assert_eq!(
            take(
                &mut prefetcher(103, 10, Position::default(), memories, threads),
                35
            ),
            reference
        );
    }
    for (_, inputs, codes, targets) in &reference {
        for (index, &code) in codes.iter().enumerate() {
            assert_eq!(targets[index], -(code as f32));
            assert_eq!(inputs[index * 3], code as f32 * 3.0);
        }
    }
}

#[test]
fn resuming_goes_on_exactly() {
    let all = take(
        &mut prefetcher(103, 10, Position::default(), 4, Threads::Fixed(3)),
        30,
    );
    for stop in [1, 10, 11, 17] {
        let rest = take(
            &mut prefetcher(103, 10, all[stop].0, 4, Threads::Fixed(2)),
            30 - stop,
        );
        assert_eq!(rest, all[stop..]);
    }
}

/// Fails at the third batch, after counting its calls.
struct Failing(AtomicU64);

impl SampleSource for Failing {
    fn shape(&self) -> SampleShape {
        SampleShape {
            inputs: 1,
            ..SampleShape::default()
        }
    }

    fn fill(&self, _: &[u32], _: Draw, _: BatchSlices<'_>) -> Result<FillTime> {
        match self.0.fetch_add(1, Ordering::SeqCst) {
            0 | 1 => Ok(FillTime::default()),
            _ => Err(DataError::NoRows { path: "x.csv".into() }),
        }
    }
}

#[test]
fn an_error_reaches_the_trainer_and_nothing_hangs() {
    let source: Arc<dyn SampleSource> = Arc::new(Failing(AtomicU64::new(0)));
    let order = EpochOrder::new((0..100).collect(), 10, false, None);
    let memories = (0..3).map(|_| HostBatch::new(source.shape(), 10)).collect();
    let mut batches =
        Prefetcher::new(source, order, Position::default(), memories, Threads::Fixed(1)).unwrap();
    drop(batches.next_batch().unwrap());
    drop(batches.next_batch().unwrap());
    assert_eq!(
        batches.next_batch().err().unwrap().to_string(),
        "`x.csv` has no rows"
    );
    assert!(batches.next_batch().is_err(), "and stays an error");
}

#[test]
fn back_pressure_bounds_the_work_ahead() {
    let source = Arc::new(Counting(AtomicU64::new(0)));
    let order = EpochOrder::new((0..1000).collect(), 10, false, None);
    let memories: Vec<_> = (0..3).map(|_| HostBatch::new(source.shape(), 10)).collect();
    let shared: Arc<dyn SampleSource> = Arc::clone(&source) as _;
    let mut batches =
        Prefetcher::new(shared, order, Position::default(), memories, Threads::Fixed(2)).unwrap();
    let lease = batches.next_batch().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(30));
    assert!(
        source.0.load(Ordering::SeqCst) <= 3,
        "three memories, three batches"
    );
    drop(lease);
    drop(batches.next_batch().unwrap());
}

struct Counting(AtomicU64);

impl SampleSource for Counting {
    fn shape(&self) -> SampleShape {
        SampleShape {
            inputs: 1,
            ..SampleShape::default()
        }
    }

    fn fill(&self, _: &[u32], _: Draw, _: BatchSlices<'_>) -> Result<FillTime> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(FillTime::default())
    }
}

#[test]
fn dropping_while_threads_work_or_wait_ends_them() {
    for memories in 1..4 {
        let mut batches = prefetcher(1000, 10, Position::default(), memories, Threads::Fixed(3));
        let kept = batches.next_batch().unwrap();
        drop(batches);
        drop(kept);
    }
}

/// A source with a bug.
struct Panicking;

impl SampleSource for Panicking {
    fn shape(&self) -> SampleShape {
        SampleShape {
            inputs: 1,
            ..SampleShape::default()
        }
    }

    fn fill(&self, _: &[u32], _: Draw, _: BatchSlices<'_>) -> Result<FillTime> {
        panic!("a bug")
    }
}

#[test]
fn a_panic_in_a_source_is_an_error_and_not_a_hang() {
    let source: Arc<dyn SampleSource> = Arc::new(Panicking);
    let order = EpochOrder::new((0..100).collect(), 10, false, None);
    let memories = (0..2).map(|_| HostBatch::new(source.shape(), 10)).collect();
    let mut batches =
        Prefetcher::new(source, order, Position::default(), memories, Threads::Fixed(2)).unwrap();
    assert!(batches.next_batch().is_err());
}

#[test]
fn a_budget_bounds_the_memories() {
    let shape = SampleShape {
        inputs: 256,
        ..SampleShape::default()
    };
    assert_eq!(prefetch::memories_for_budget(shape, 1024, 8 << 20), 8);
    assert_eq!(prefetch::memories_for_budget(shape, 1024, 0), 2);
}
