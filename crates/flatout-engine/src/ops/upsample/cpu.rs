//! Row by row.

use super::Upsample;
use crate::EngineError;
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::pool::Parts;
use crate::cpu::real::Real;

impl<T: Real> CpuOperation<T> for Upsample {
    fn forward(&self, io: &Io<T>) -> Result<(), EngineError> {
        let (input, mut output) = (io.input(0), io.output(0));
        let (channels, line) = (self.channels, self.output_width * self.channels);
        let target = Parts::new(&mut output);
        io.pool().run(&|worker| {
            for row in io.pool().share(worker, self.batch * self.output_height, 1) {
                // SAFETY: each row of pixels belongs to one worker.
                let target = unsafe { target.part(row * line..(row + 1) * line) };
                let (image, y) = (row / self.output_height, row % self.output_height);
                let above = image * self.height + y * self.height / self.output_height;
                for (x, target) in target.chunks_exact_mut(channels).enumerate() {
                    let from = (above * self.width + x * self.width / self.output_width) * channels;
                    target.copy_from_slice(&input[from..from + channels]);
                }
            }
        });
        Ok(())
    }

    fn backward(&self, io: &Io<T>) {
        let (Some(gradient), Some((mut target, accumulate))) = (io.output_gradient(0), io.input_gradient(0))
        else {
            return;
        };
        let channels = self.channels;
        let target = Parts::new(&mut target);
        io.pool().run(&|worker| {
            for pixel in io.pool().share(worker, self.batch * self.height * self.width, 1) {
                // SAFETY: each pixel belongs to one worker.
                let target = unsafe { target.part(pixel * channels..(pixel + 1) * channels) };
                if !accumulate {
                    target.fill(T::ZERO);
                }
                let (row, x) = (pixel / self.width, pixel % self.width);
                let (image, y) = (row / self.height, row % self.height);
                for down in Self::copies(y, self.height, self.output_height) {
                    for over in Self::copies(x, self.width, self.output_width) {
                        let from =
                            ((image * self.output_height + down) * self.output_width + over) * channels;
                        let source = &gradient[from..from + channels];
                        target
                            .iter_mut()
                            .zip(source)
                            .for_each(|(sum, &value)| *sum += value);
                    }
                }
            }
        });
    }
}
