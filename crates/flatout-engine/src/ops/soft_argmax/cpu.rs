//! Image by image and map by map; sums in f64.

use super::SoftArgmax;
use crate::EngineError;
use crate::cpu::gemm::GemmSpace;
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::pool::Parts;
use crate::cpu::real::Real;

impl SoftArgmax {
    fn center(place: usize, side: usize) -> f64 {
        (2 * place + 1) as f64 / side as f64 - 1.0
    }

    /// Where a pixel lies.
    fn position(&self, pixel: usize) -> (f64, f64) {
        (
            Self::center(pixel % self.width, self.width),
            Self::center(pixel / self.width, self.height),
        )
    }
}

impl<T: Real> CpuOperation<T> for SoftArgmax {
    fn scratch(&self, _gemm: &GemmSpace<T>, _workers: usize) -> Vec<usize> {
        // The logarithm of each map's sum of exponentials.
        vec![self.batch * self.maps]
    }

    fn forward(&self, io: &Io<T>) -> Result<(), EngineError> {
        let (input, mut output, mut sums) = (io.input(0), io.output(0), io.scratch(0));
        let (pixels, maps) = (self.height * self.width, self.maps);
        let (output, sums) = (Parts::new(&mut output), Parts::new(&mut sums));
        io.pool().run(&|worker| {
            for item in io.pool().share(worker, self.batch * maps, 1) {
                let values = &input[item / maps * pixels * maps + item % maps..];
                let value = |pixel: usize| values[pixel * maps].to_f64();
                let largest = (0..pixels).map(value).fold(value(0), f64::max);
                let (mut sum, mut x, mut y) = (0.0, 0.0, 0.0);
                for pixel in 0..pixels {
                    let weight = (value(pixel) - largest).exp();
                    let (over, down) = self.position(pixel);
                    sum += weight;
                    x += weight * over;
                    y += weight * down;
                }
                // SAFETY: each map belongs to one worker.
                let (target, sums) =
                    unsafe { (output.part(2 * item..2 * item + 2), sums.part(item..item + 1)) };
                (target[0], target[1]) = (T::of(x / sum), T::of(y / sum));
                sums[0] = T::of(largest + sum.ln());
            }
        });
        Ok(())
    }

    fn backward(&self, io: &Io<T>) {
        let (Some(gradient), Some((mut target, accumulate))) = (io.output_gradient(0), io.input_gradient(0))
        else {
            return;
        };
        let (input, result, sums) = (io.input(0), io.result(0), io.scratch_result(0));
        let (pixels, maps) = (self.height * self.width, self.maps);
        let target = Parts::new(&mut target);
        io.pool().run(&|worker| {
            for row in io.pool().share(worker, self.batch * pixels, 1) {
                // SAFETY: each pixel belongs to one worker.
                let target = unsafe { target.part(row * maps..(row + 1) * maps) };
                let (over, down) = self.position(row % pixels);
                for (map, target) in target.iter_mut().enumerate() {
                    let item = row / pixels * maps + map;
                    let weight = (input[row * maps + map].to_f64() - sums[item].to_f64()).exp();
                    let along = |part: usize, place: f64| {
                        gradient[2 * item + part].to_f64() * (place - result[2 * item + part].to_f64())
                    };
                    let value = T::of(weight * (along(0, over) + along(1, down)));
                    *target = if accumulate { *target + value } else { value };
                }
            }
        });
    }
}
