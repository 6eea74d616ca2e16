//! Forward copies rows; backward adds them up in the order of the batch, each row of the table by one worker.

use super::Embedding;
use crate::EngineError;
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::pool::Parts;
use crate::cpu::real::Real;

impl<T: Real> CpuOperation<T> for Embedding {
    fn forward(&self, io: &Io<T>) -> Result<(), EngineError> {
        let indices = io.input_indices(0);
        let outside = |index: &i32| *index < 0 || *index as usize >= self.entries;
        if let Some(index) = indices.iter().copied().find(outside) {
            return Err(EngineError::Index {
                operation: "embedding",
                index: index.into(),
                rows: self.entries,
            });
        }
        let (weight, mut output) = (io.parameter(0), io.output(0));
        for (row, &index) in output.chunks_exact_mut(self.width).zip(&*indices) {
            row.copy_from_slice(&weight[index as usize * self.width..][..self.width]);
        }
        Ok(())
    }

    fn backward(&self, io: &Io<T>) {
        let Some(gradient) = io.output_gradient(0) else {
            return;
        };
        let (indices, mut target) = (io.input_indices(0), io.parameter_gradient(0));
        let workers = io.pool().workers();
        let target = Parts::new(&mut target);
        io.pool().run(&|worker| {
            for (row, &index) in gradient.chunks_exact(self.width).zip(&*indices) {
                let index = index as usize;
                if index % workers == worker {
                    // SAFETY: each row of the table belongs to the worker of its remainder.
                    let target = unsafe { target.part(index * self.width..(index + 1) * self.width) };
                    target.iter_mut().zip(row).for_each(|(sum, &value)| *sum += value);
                }
            }
        });
    }
}
