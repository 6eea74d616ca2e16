//! The host's memory: bytes read and written a second by copies that no cache holds.

use super::Ceiling;
use std::time::{Duration, Instant};

const BYTES: usize = 128 << 20;
const LONG: Duration = Duration::from_millis(1200);

/// Copies on so many threads, each with buffers of its own; the best round counts.
pub fn measure(threads: usize) -> Vec<Ceiling> {
    // Together at most half a gigabyte, whatever the number of threads.
    let each = (BYTES * 2 / threads.max(1)).min(BYTES);
    let mut buffers: Vec<(Vec<u8>, Vec<u8>)> = (0..threads.max(1))
        .map(|_| (vec![1u8; each], vec![0u8; each]))
        .collect();
    let mut best = f64::INFINITY;
    let began = Instant::now();
    while began.elapsed() < LONG {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for (from, to) in &mut buffers {
                scope.spawn(|| to.copy_from_slice(from));
            }
        });
        best = best.min(start.elapsed().as_secs_f64());
    }
    std::hint::black_box(&buffers);
    let moved = (each * buffers.len() * 2) as f64;
    vec![Ceiling::new("memory.copy", moved / best / 1e9, "GB/s")]
}
