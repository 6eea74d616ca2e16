//! Windows do not overlap, so backward gives each output's gradient to the first place that holds the maximum.

use super::MaxPool;
use crate::EngineError;
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::pool::Parts;
use crate::cpu::real::Real;
use crate::cpu::vectorised::vectorised;

vectorised! {
    #[allow(clippy::eq_op)]
    fn larger<T>(target: &mut [T], source: &[T]) {
        for (target, &source) in target.iter_mut().zip(source) {
            // NaN wins, as in PyTorch.
            *target = if source > *target || source != source { source } else { *target };
        }
    }
}

vectorised! {
    /// Where `source` is the maximum and nobody before was, the gradient goes there and is used up.
    fn route<T>(target: &mut [T], source: &[T], result: &[T], left: &mut [T]) {
        let count = target.len();
        let (source, result, left) = (&source[..count], &result[..count], &mut left[..count]);
        for i in 0..count {
            let hit = source[i] == result[i];
            target[i] += if hit { left[i] } else { T::ZERO };
            left[i] = if hit { T::ZERO } else { left[i] };
        }
    }
}

impl MaxPool {
    /// Offsets of the pixels under the window of an output pixel of one image.
    fn window(&self, row: usize, column: usize) -> impl Iterator<Item = usize> + '_ {
        let (size, channels, width) = (self.size, self.channels, self.width);
        let lines = (0..size).flat_map(move |y| (0..size).map(move |x| (row * size + y, column * size + x)));
        lines.map(move |(y, x)| (y * width + x) * channels)
    }
}

impl<T: Real> CpuOperation<T> for MaxPool {
    fn forward(&self, io: &Io<T>) -> Result<(), EngineError> {
        let (input, mut output) = (io.input(0), io.output(0));
        let (down, over, channels) = (self.height / self.size, self.width / self.size, self.channels);
        let image = self.height * self.width * channels;
        let output = Parts::new(&mut output);
        io.pool().run(&|worker| {
            for line in io.pool().share(worker, self.batch * down, 1) {
                let source = &input[line / down * image..][..image];
                for column in 0..over {
                    let place = (line * over + column) * channels;
                    // SAFETY: each line belongs to one worker.
                    let target = unsafe { output.part(place..place + channels) };
                    for (number, offset) in self.window(line % down, column).enumerate() {
                        let values = &source[offset..offset + channels];
                        if number == 0 {
                            target.copy_from_slice(values);
                        } else {
                            larger(target, values);
                        }
                    }
                }
            }
        });
        Ok(())
    }

    fn backward(&self, io: &Io<T>) {
        let (Some(gradient), Some((mut target, accumulate))) = (io.output_gradient(0), io.input_gradient(0)) else {
            return;
        };
        let (input, result) = (io.input(0), io.result(0));
        let (down, over, channels) = (self.height / self.size, self.width / self.size, self.channels);
        let image = self.height * self.width * channels;
        let target = Parts::new(&mut target);
        let mut left = io.scratch(0);
        let left = Parts::new(&mut left);
        io.pool().run(&|worker| {
            // SAFETY: each worker has its own part.
            let left = unsafe { left.part(worker * channels..(worker + 1) * channels) };
            for number in io.pool().share(worker, self.batch, 1) {
                let range = number * image..(number + 1) * image;
                // SAFETY: each image belongs to one worker.
                let target = unsafe { target.part(range.clone()) };
                let source = &input[range];
                if !accumulate {
                    target.fill(T::ZERO);
                }
                for pixel in 0..down * over {
                    let place = (number * down * over + pixel) * channels;
                    left.copy_from_slice(&gradient[place..place + channels]);
                    let result = &result[place..place + channels];
                    for offset in self.window(pixel / over, pixel % over) {
                        let there = offset..offset + channels;
                        route(&mut target[there.clone()], &source[there], result, left);
                    }
                }
            }
        });
    }

    fn scratch(&self, _gemm: &crate::cpu::gemm::GemmSpace<T>, workers: usize) -> Vec<usize> {
        vec![workers * self.channels]
    }
}
