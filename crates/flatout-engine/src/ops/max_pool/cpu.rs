//! Windows do not overlap, so backward gives each output's gradient to the first place that holds the maximum.

use super::MaxPool;
use crate::EngineError;
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::pool::Parts;
use crate::cpu::real::Real;
use crate::cpu::vectorised::vectorised;

vectorised! {
    /// One line of outputs: `source` begins at the first line under its windows.
    #[allow(clippy::eq_op)]
    fn pool_line<T>(target: &mut [T], source: &[T], size: usize, channels: usize, width: usize) {
        for (column, target) in target.chunks_exact_mut(channels).enumerate() {
            let first = column * size * channels;
            target.copy_from_slice(&source[first..first + channels]);
            for place in 1..size * size {
                let offset = first + (place / size * width + place % size) * channels;
                let values = &source[offset..offset + channels];
                for (target, &value) in target.iter_mut().zip(values) {
                    // NaN wins, as in PyTorch.
                    *target = if value > *target || value != value { value } else { *target };
                }
            }
        }
    }
}

vectorised! {
    /// One line of outputs: where the source is the maximum and nobody before was, the gradient goes there and is used up.
    fn route_line<T>(
        target: &mut [T],
        source: &[T],
        result: &[T],
        gradient: &[T],
        left: &mut [T],
        size: usize,
        width: usize,
    ) {
        let channels = left.len();
        let outputs = result.chunks_exact(channels).zip(gradient.chunks_exact(channels));
        for (column, (result, gradient)) in outputs.enumerate() {
            left.copy_from_slice(gradient);
            for place in 0..size * size {
                let offset = (place / size * width + column * size + place % size) * channels;
                let (target, source) = (&mut target[offset..offset + channels], &source[offset..offset + channels]);
                for i in 0..channels {
                    let hit = source[i] == result[i];
                    target[i] += if hit { left[i] } else { T::ZERO };
                    left[i] = if hit { T::ZERO } else { left[i] };
                }
            }
        }
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
                let range = line * over * channels..(line + 1) * over * channels;
                // SAFETY: each line belongs to one worker.
                let target = unsafe { output.part(range) };
                let first = line % down * self.size * self.width * channels;
                pool_line(target, &source[first..], self.size, channels, self.width);
            }
        });
        Ok(())
    }

    fn backward(&self, io: &Io<T>) {
        let (Some(gradient), Some((mut target, accumulate))) = (io.output_gradient(0), io.input_gradient(0))
        else {
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
                for line in 0..down {
                    let outputs = (number * down + line) * over * channels
                        ..(number * down + line + 1) * over * channels;
                    let first = line * self.size * self.width * channels;
                    route_line(
                        &mut target[first..],
                        &source[first..],
                        &result[outputs.clone()],
                        &gradient[outputs],
                        left,
                        self.size,
                        self.width,
                    );
                }
            }
        });
    }

    fn scratch(&self, _gemm: &crate::cpu::gemm::GemmSpace<T>, workers: usize) -> Vec<usize> {
        vec![workers * self.channels]
    }
}
