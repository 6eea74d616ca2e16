//! The CPUs: how many are really there beside other programs, and what their vector units give in f32 products.

use super::Ceiling;
use crate::EngineError;
use crate::cpu::gemm::{GemmSpace, Matrix, Product};
use crate::cpu::pool::{Parts, Pool};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Long enough for a scheduler's share to show.
const SPIN: Duration = Duration::from_millis(600);
const PRODUCTS: Duration = Duration::from_millis(1500);
/// Two or three products: enough for a yardstick, too short to be noticed at a training's start.
const BRIEF: Duration = Duration::from_millis(60);
const SIDE: usize = 1024;

/// All of it, on so many threads.
pub fn measure(threads: usize) -> Result<Vec<Ceiling>, EngineError> {
    let (one, all) = (spun(1), spun(threads));
    let mut found = Vec::new();
    if one > 0.0 {
        found.push(Ceiling::new("cpu.usable", all / one, "CPUs"));
    }
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

/// Rounds of a dependent chain of integers a second, all threads together: what the scheduler gives, not what the cores are.
fn spun(threads: usize) -> f64 {
    let stop = AtomicBool::new(false);
    let rounds = AtomicU64::new(0);
    let began = Instant::now();
    std::thread::scope(|scope| {
        for seed in 0..threads {
            let (stop, rounds) = (&stop, &rounds);
            scope.spawn(move || {
                let (mut value, mut done) = (seed as u64 | 1, 0u64);
                while !stop.load(Ordering::Relaxed) {
                    for _ in 0..10_000 {
                        value = value.wrapping_mul(6_364_136_223_846_793_005).rotate_left(7);
                    }
                    done += 1;
                }
                std::hint::black_box(value);
                rounds.fetch_add(done, Ordering::Relaxed);
            });
        }
        std::thread::sleep(SPIN);
        stop.store(true, Ordering::Relaxed);
    });
    rounds.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64()
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
}
