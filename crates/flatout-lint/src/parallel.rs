//! The same work for many items on the CPUs we may use. Results keep the items' order.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Parsing recurses; deep source must not overflow. Memory is only reserved, not used.
const STACK_BYTES: usize = 64 << 20;
/// Items taken at a time: few enough to balance, many enough to keep the counter cool.
const CHUNK: usize = 8;
/// More threads than this gain nothing on a tree of source files.
const MOST_THREADS: usize = 16;

pub fn map<I: Sync, O: Send>(items: &[I], work: impl Fn(&I) -> O + Sync) -> Vec<O> {
    let cpus = flatout_core::cpus::UsableCpus::here().count();
    let threads = cpus.min(MOST_THREADS).min(items.len().div_ceil(CHUNK));
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Vec<O>)>> = Mutex::new(Vec::new());
    let run = || {
        loop {
            let start = next.fetch_add(CHUNK, Ordering::Relaxed);
            let Some(chunk) = items.get(start..items.len().min(start + CHUNK)) else {
                break;
            };
            if chunk.is_empty() {
                break;
            }
            let made = chunk.iter().map(&work).collect();
            done.lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner())
                .push((start, made));
        }
    };
    std::thread::scope(|scope| {
        let started = (0..threads.max(1))
            .filter(|_| {
                std::thread::Builder::new()
                    .stack_size(STACK_BYTES)
                    .spawn_scoped(scope, run)
                    .is_ok()
            })
            .count();
        if started == 0 {
            run();
        }
    });
    let mut parts = done.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    parts.sort_unstable_by_key(|(start, _)| *start);
    parts.into_iter().flat_map(|(_, made)| made).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn order_is_kept() {
        let items: Vec<usize> = (0..1000).collect();
        assert_eq!(super::map(&items, |item| item * 2)[999], 1998);
        assert!(super::map(&[] as &[usize], |item| *item).is_empty());
    }
}
