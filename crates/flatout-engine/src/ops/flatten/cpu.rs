//! A transpose of each image.

use super::Flatten;
use crate::EngineError;
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::real::Real;

impl<T: Real> CpuOperation<T> for Flatten {
    fn forward(&self, io: &Io<T>) -> Result<(), EngineError> {
        let (input, mut output) = (io.input(0), io.output(0));
        let size = self.pixels * self.channels;
        for (target, source) in output.chunks_exact_mut(size).zip(input.chunks_exact(size)) {
            for (channel, target) in target.chunks_exact_mut(self.pixels).enumerate() {
                let values = source[channel..].iter().step_by(self.channels);
                target
                    .iter_mut()
                    .zip(values)
                    .for_each(|(target, &value)| *target = value);
            }
        }
        Ok(())
    }

    fn backward(&self, io: &Io<T>) {
        let (Some(gradient), Some((mut target, accumulate))) = (io.output_gradient(0), io.input_gradient(0))
        else {
            return;
        };
        let size = self.pixels * self.channels;
        for (target, source) in target.chunks_exact_mut(size).zip(gradient.chunks_exact(size)) {
            for (channel, source) in source.chunks_exact(self.pixels).enumerate() {
                let values = target[channel..].iter_mut().step_by(self.channels);
                for (value, &gradient) in values.zip(source) {
                    *value = if accumulate { *value + gradient } else { gradient };
                }
            }
        }
    }
}
