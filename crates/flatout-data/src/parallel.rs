//! Plain threads over a counter of tasks: all the parallelism that loading needs. Results do not depend on the thread count.

use flatout_core::cpus::UsableCpus;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Threads to use: what was asked for, else the CPUs this process may use.
pub fn threads(asked: Option<usize>) -> usize {
    asked.unwrap_or_else(|| UsableCpus::here().count()).max(1)
}

/// Runs `task(0..count)` on up to `threads` threads. After an error no new task starts; of several errors the one of the
/// lowest task is returned, so that a message does not depend on timing more than it must.
pub fn for_each<E: Send>(
    count: usize,
    threads: usize,
    task: impl Fn(usize) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let threads = threads.clamp(1, count.max(1));
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let first_error: Mutex<Option<(usize, E)>> = Mutex::new(None);
    let work = || {
        while !failed.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                break;
            }
            if let Err(error) = task(index) {
                failed.store(true, Ordering::Relaxed);
                let mut slot = first_error.lock().unwrap_or_else(|poison| poison.into_inner());
                if slot.as_ref().is_none_or(|(known, _)| index < *known) {
                    *slot = Some((index, error));
                }
            }
        }
    };
    if threads == 1 {
        work();
    } else {
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(work);
            }
            work();
        });
    }
    match first_error
        .into_inner()
        .unwrap_or_else(|poison| poison.into_inner())
    {
        Some((_, error)) => Err(error),
        None => Ok(()),
    }
}

/// [`for_each`] that keeps what each task returns, in order.
pub fn map<T: Send, E: Send>(
    count: usize,
    threads: usize,
    task: impl Fn(usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let results: Vec<Mutex<Option<T>>> = (0..count).map(|_| Mutex::new(None)).collect();
    for_each(count, threads, |index| {
        let value = task(index)?;
        *results[index].lock().unwrap_or_else(|poison| poison.into_inner()) = Some(value);
        Ok(())
    })?;
    Ok(results
        .into_iter()
        .filter_map(|slot| slot.into_inner().unwrap_or_else(|poison| poison.into_inner()))
        .collect())
}

/// Splits `0..count` into at most `parts` ranges of nearly equal length.
pub fn ranges(count: usize, parts: usize) -> Vec<std::ops::Range<usize>> {
    let parts = parts.clamp(1, count.max(1));
    (0..parts)
        .map(|part| count * part / parts..count * (part + 1) / parts)
        .filter(|range| !range.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_and_errors_stop() {
        let squares = map::<_, ()>(100, 4, |i| Ok(i * i)).unwrap();
        assert_eq!(squares, (0..100).map(|i| i * i).collect::<Vec<_>>());
        assert_eq!(
            for_each(1000, 3, |i| if i == 500 { Err(i) } else { Ok(()) }),
            Err(500)
        );
        assert_eq!(map::<(), ()>(0, 8, |_| Ok(())).unwrap().len(), 0);
    }

    #[test]
    fn ranges_cover_everything_once() {
        assert_eq!(ranges(10, 3), vec![0..3, 3..6, 6..10]);
        assert_eq!(ranges(2, 8), vec![0..1, 1..2]);
        assert!(ranges(0, 4).is_empty());
    }
}
