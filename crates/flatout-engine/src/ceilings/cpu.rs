//! The CPUs: how many are really there beside other programs, and what their vector units give in f32 products.

use super::Ceiling;
use crate::EngineError;
use crate::cpu::gemm::{GemmSpace, Matrix, Product};
use crate::cpu::pool::{Parts, Pool};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// One thread and all of them in turn, so often: others on the machine and the clock's own changes fall on both.
const ROUNDS: usize = 6;
const SPIN_ONE: Duration = Duration::from_millis(60);
/// Long enough for a scheduler's share to show.
const SPIN_ALL: Duration = Duration::from_millis(150);
const PRODUCTS: Duration = Duration::from_millis(1500);
/// Two or three products: enough for a yardstick, too short to be noticed at a training's start.
const BRIEF: Duration = Duration::from_millis(60);
const SIDE: usize = 1024;

/// All of it, on so many threads.
pub fn measure(threads: usize) -> Result<Vec<Ceiling>, EngineError> {
    let mut found: Vec<Ceiling> = usable(threads)
        .map(|usable| Ceiling::new("cpu.usable", usable, "CPUs"))
        .into_iter()
        .collect();
    found.push(Ceiling::new(
        "cpu.f32",
        products(threads, PRODUCTS)? / 1e9,
        "GFLOP/s",
    ));
    Ok(found)
}

/// Operations a second in f32 products on so many threads, in a moment.
pub fn brief(threads: usize) -> Result<f64, EngineError> {
    products(threads, BRIEF)
}

/// How many CPUs' work all threads get done together. A whole CPU is the most that any one thread has got done: a single one that
/// had to share its CPU is no measure for the others.
fn usable(threads: usize) -> Option<f64> {
    let (mut whole, mut together) = (0.0f64, 0.0);
    for _ in 0..ROUNDS {
        let one = spun(1, SPIN_ONE);
        let all = spun(threads, SPIN_ALL);
        together += all.iter().sum::<f64>() / ROUNDS as f64;
        whole = one.into_iter().chain(all).fold(whole, f64::max);
    }
    (whole > 0.0).then_some(together / whole)
}

/// Rounds of a dependent chain of integers a second, by each thread: what the scheduler gives, not what the cores are.
fn spun(threads: usize, for_about: Duration) -> Vec<f64> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let spinning: Vec<_> = (0..threads)
            .map(|seed| {
                let stop = &stop;
                scope.spawn(move || {
                    let (mut value, mut done) = (seed as u64 | 1, 0u64);
                    let began = Instant::now();
                    while !stop.load(Ordering::Relaxed) {
                        for _ in 0..10_000 {
                            value = value.wrapping_mul(6_364_136_223_846_793_005).rotate_left(7);
                        }
                        done += 1;
                    }
                    std::hint::black_box(value);
                    done as f64 / began.elapsed().as_secs_f64()
                })
            })
            .collect();
        std::thread::sleep(for_about);
        stop.store(true, Ordering::Relaxed);
        spinning
            .into_iter()
            .map(|thread| thread.join().unwrap_or(0.0))
            .collect()
    })
}

/// Operations a second in products of f32 matrices; the best of several, since others may use the machine.
fn products(threads: usize, for_at_least: Duration) -> Result<f64, EngineError> {
    let pool = Pool::new(threads);
    let space = GemmSpace::<f32>::new(threads)?;
    let (left, right) = (vec![0.5f32; SIDE * SIDE], vec![0.25f32; SIDE * SIDE]);
    let mut result = vec![0f32; SIDE * SIDE];
    let mut best = f64::INFINITY;
    let began = Instant::now();
    while began.elapsed() < for_at_least {
        let start = Instant::now();
        let product = Product {
            a: &Matrix::new(&left, SIDE, SIDE),
            b: &Matrix::new(&right, SIDE, SIDE),
            c: Parts::new(&mut result),
            stride: SIDE,
            accumulate: false,
            epilogue: None,
        };
        space.multiply(&pool, &product);
        best = best.min(start.elapsed().as_secs_f64());
    }
    std::hint::black_box(&result);
    Ok(2.0 * (SIDE * SIDE * SIDE) as f64 / best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_a_core_and_can_multiply() {
        let found = measure(1).unwrap();
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|ceiling| ceiling.value > 0.0), "{found:?}");
    }

    /// However busy the machine is, so many threads are no more than so many CPUs.
    #[test]
    fn threads_never_get_more_than_themselves() {
        for threads in [1, 2, 8] {
            let usable = usable(threads).unwrap();
            assert!(
                usable > 0.0 && usable <= threads as f64 + 1e-9,
                "{usable} of {threads}"
            );
        }
    }
}
