//! Copies rows between the parts and the whole.

use super::Concat;
use crate::EngineError;
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::real::Real;

impl<T: Real> CpuOperation<T> for Concat {
    fn forward(&self, io: &Io<T>) -> Result<(), EngineError> {
        let mut output = io.output(0);
        let total: usize = self.widths.iter().sum();
        let mut offset = 0;
        for (position, &width) in self.widths.iter().enumerate() {
            let input = io.input(position);
            for row in 0..self.rows {
                output[row * total + offset..][..width].copy_from_slice(&input[row * width..][..width]);
            }
            offset += width;
        }
        Ok(())
    }

    fn backward(&self, io: &Io<T>) {
        let Some(gradient) = io.output_gradient(0) else {
            return;
        };
        let total: usize = self.widths.iter().sum();
        let mut offset = 0;
        for (position, &width) in self.widths.iter().enumerate() {
            if let Some((mut target, accumulate)) = io.input_gradient(position) {
                for row in 0..self.rows {
                    let source = &gradient[row * total + offset..][..width];
                    let target = &mut target[row * width..][..width];
                    if accumulate {
                        target
                            .iter_mut()
                            .zip(source)
                            .for_each(|(sum, &value)| *sum += value);
                    } else {
                        target.copy_from_slice(source);
                    }
                }
            }
            offset += width;
        }
    }
}
