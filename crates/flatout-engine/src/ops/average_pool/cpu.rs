//! Image by image.

use super::AveragePool;
use crate::EngineError;
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::pool::Parts;
use crate::cpu::real::Real;

impl<T: Real> CpuOperation<T> for AveragePool {
    fn forward(&self, io: &Io<T>) -> Result<(), EngineError> {
        let (input, mut output) = (io.input(0), io.output(0));
        let factor = T::of(1.0 / self.pixels.max(1) as f64);
        let output = Parts::new(&mut output);
        io.pool().run(&|worker| {
            for image in io.pool().share(worker, self.batch, 1) {
                // SAFETY: each image belongs to one worker.
                let target = unsafe { output.part(image * self.channels..(image + 1) * self.channels) };
                target.fill(T::ZERO);
                let source = &input[image * self.pixels * self.channels..][..self.pixels * self.channels];
                for pixel in source.chunks_exact(self.channels) {
                    target
                        .iter_mut()
                        .zip(pixel)
                        .for_each(|(sum, &value)| *sum += value);
                }
                target.iter_mut().for_each(|value| *value *= factor);
            }
        });
        Ok(())
    }

    fn backward(&self, io: &Io<T>) {
        let (Some(gradient), Some((mut target, accumulate))) = (io.output_gradient(0), io.input_gradient(0))
        else {
            return;
        };
        let factor = T::of(1.0 / self.pixels.max(1) as f64);
        let size = self.pixels * self.channels;
        let target = Parts::new(&mut target);
        io.pool().run(&|worker| {
            for image in io.pool().share(worker, self.batch, 1) {
                // SAFETY: each image belongs to one worker.
                let target = unsafe { target.part(image * size..(image + 1) * size) };
                let gradient = &gradient[image * self.channels..][..self.channels];
                for pixel in target.chunks_exact_mut(self.channels) {
                    for (value, &gradient) in pixel.iter_mut().zip(gradient) {
                        let share = gradient * factor;
                        *value = if accumulate { *value + share } else { share };
                    }
                }
            }
        });
    }
}
