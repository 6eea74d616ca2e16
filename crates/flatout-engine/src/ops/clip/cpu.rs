//! The norm in pieces of fixed size, each summed by one worker, the sums added in the order of the pieces.

use crate::cpu::memory::Memory;
use crate::cpu::pool::{Parts, Pool};
use crate::cpu::real::Real;
use crate::cpu::sums::squares;
use crate::plan::Plan;

/// Values in a piece.
const PIECE: usize = 16_384;

/// One sum for each piece of each gradient, allocated once.
pub struct NormSpace {
    sums: Vec<f64>,
}

impl NormSpace {
    pub fn new(plan: &Plan) -> Self {
        let pieces = |gradient| plan.buffer(gradient).len().div_ceil(PIECE);
        let total = plan
            .trained()
            .iter()
            .map(|trained| pieces(trained.gradient))
            .sum();
        Self {
            sums: vec![0.0; total],
        }
    }
}

/// √Σ g² over all gradients.
pub fn norm<T: Real>(plan: &Plan, memory: &Memory<T>, pool: &Pool, space: &mut NormSpace) -> f64 {
    let mut first = 0;
    for trained in plan.trained() {
        let gradient = memory.read(trained.gradient);
        let count = gradient.len().div_ceil(PIECE);
        let sums = Parts::new(&mut space.sums[first..first + count]);
        let sum = |worker: usize| {
            for piece in pool.share(worker, count, 1) {
                let values = &gradient[piece * PIECE..gradient.len().min((piece + 1) * PIECE)];
                // SAFETY: each piece belongs to one worker.
                let target = unsafe { sums.part(piece..piece + 1) };
                target[0] = squares(values);
            }
        };
        // A single piece is not worth waking anybody for.
        if count > 1 {
            pool.run(&sum);
        } else {
            (0..pool.workers()).for_each(sum);
        }
        first += count;
    }
    space.sums.iter().sum::<f64>().sqrt()
}
