//! Batches worked on by several threads and taken in the order in which they were read. Batches go round and are used again, so
//! memory does not grow with what is read.

use flatout_core::cpus::UsableCpus;
use std::sync::mpsc;

/// More threads than this wait for the one that reads.
const MOST_WORKERS: usize = 8;
/// Batches waiting at each end of a worker.
const WAITING: usize = 2;

/// `fill` reads a batch (false at the end), one of the workers that `worker` makes works on it, `take` gets it in its turn.
pub fn in_order<B, W>(
    fill: &mut (impl FnMut(&mut B) -> bool + Send),
    worker: impl Fn() -> W + Sync,
    mut take: impl FnMut(&mut B),
) where
    B: Default + Send,
    W: FnMut(&mut B),
{
    let (spare, spares) = mpsc::channel::<B>();
    let worker = &worker;
    std::thread::scope(|scope| {
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for _ in 0..UsableCpus::here().count().clamp(1, MOST_WORKERS) {
            let (input, given) = mpsc::sync_channel::<B>(WAITING);
            let (done, output) = mpsc::sync_channel::<B>(WAITING);
            inputs.push(input);
            outputs.push(output);
            scope.spawn(move || {
                let mut work = worker();
                for mut batch in given {
                    work(&mut batch);
                    if done.send(batch).is_err() {
                        return;
                    }
                }
            });
        }
        scope.spawn(move || {
            for input in inputs.iter().cycle() {
                let mut batch = spares.try_recv().unwrap_or_default();
                if !fill(&mut batch) || input.send(batch).is_err() {
                    return;
                }
            }
        });
        // The first worker that has nothing more in its turn: the end.
        for output in outputs.iter().cycle() {
            let Ok(mut batch) = output.recv() else { return };
            take(&mut batch);
            let _ = spare.send(batch);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_batch_comes_once_and_in_its_turn() {
        for count in [0u64, 1, 2, 3, 1000] {
            let mut next = 0;
            let mut fill = |batch: &mut (u64, u64)| {
                *batch = (next, 0);
                next += 1;
                next <= count
            };
            let mut taken = Vec::new();
            in_order(
                &mut fill,
                || |batch: &mut (u64, u64)| batch.1 = batch.0 * batch.0,
                |batch| taken.push(*batch),
            );
            let expected: Vec<_> = (0..count).map(|number| (number, number * number)).collect();
            assert_eq!(taken, expected);
        }
    }
}
