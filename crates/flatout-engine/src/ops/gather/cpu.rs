//! Copies rows. Indices are checked in every step: they come from outside.

use super::{Gather, Pictures};
use crate::EngineError;
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::pool::Parts;
use crate::cpu::real::Real;
use crate::plan::DataType;
use crate::session::Table;

impl<T: Real> CpuOperation<T> for Gather {
    fn forward(&self, io: &Io<T>) -> Result<(), EngineError> {
        let table = io.table(0, || self.table.clone())?;
        let indices = io.input_indices(1);
        self.check(&indices, table.len() / self.width.max(1))?;
        if self.data_type == DataType::I32 {
            if let Table::I32(values) = &table {
                self.copy(
                    io,
                    &indices,
                    (**values).as_ref(),
                    &mut io.output_indices(0),
                    |value| value,
                );
            }
            return Ok(());
        }
        let mut output = io.output(0);
        if let (Some(pictures), Table::U8(values), true) = (&self.pictures, &table, io.context.training) {
            self.copy_moved(io, pictures, &indices, (**values).as_ref(), &mut output);
            return Ok(());
        }
        let (scale, shift) = (self.scale as f32, self.shift as f32);
        match &table {
            Table::F32(values) => self.copy(io, &indices, (**values).as_ref(), &mut output, T::from_f32),
            Table::U8(values) => self.copy(io, &indices, (**values).as_ref(), &mut output, |byte: u8| {
                T::from_f32(f32::from(byte) * scale + shift)
            }),
            Table::I32(_) => {}
        }
        Ok(())
    }

    fn backward(&self, _io: &Io<T>) {}
}

impl Gather {
    fn check(&self, indices: &[i32], rows: usize) -> Result<(), EngineError> {
        let outside = |index: &i32| *index < 0 || *index as usize + self.length() > rows;
        match indices.iter().copied().find(outside) {
            Some(index) => Err(EngineError::Index {
                operation: "gather",
                index: index.into(),
                rows,
            }),
            None => Ok(()),
        }
    }

    fn copy_moved<T: Real>(
        &self,
        io: &Io<T>,
        pictures: &Pictures,
        indices: &[i32],
        table: &[u8],
        output: &mut [T],
    ) {
        let (size, line) = (self.width, pictures.width * pictures.channels);
        let (scale, shift) = (self.scale as f32, self.shift as f32);
        let random = Pictures::random(io.context.seed, io.context.epoch);
        let output = Parts::new(output);
        io.pool().run(&|worker| {
            for sample in io.pool().share(worker, self.batch, 1) {
                let picture = &table[indices[sample] as usize * size..][..size];
                let step = pictures.draw(random, indices[sample]);
                // SAFETY: each sample belongs to one worker.
                let moved = unsafe { output.part(sample * size..(sample + 1) * size) };
                for (row, moved) in moved.chunks_exact_mut(line).enumerate() {
                    for (column, pixel) in moved.chunks_exact_mut(pictures.channels).enumerate() {
                        let source = &picture[pictures.source(step, row, column)..][..pictures.channels];
                        for (target, &byte) in pixel.iter_mut().zip(source) {
                            *target = T::from_f32(f32::from(byte) * scale + shift);
                        }
                    }
                }
            }
        });
    }

    fn copy<T: Real, S: Copy + Sync, D: Send>(
        &self,
        io: &Io<T>,
        indices: &[i32],
        table: &[S],
        output: &mut [D],
        convert: impl Fn(S) -> D + Sync,
    ) {
        let (width, batch) = (self.width, self.batch);
        let output = Parts::new(output);
        io.pool().run(&|worker| {
            for sample in io.pool().share(worker, batch, 1) {
                for time in 0..self.length() {
                    let source = &table[(indices[sample] as usize + time) * width..][..width];
                    let place = (time * batch + sample) * width;
                    // SAFETY: each sample belongs to one worker.
                    let target = unsafe { output.part(place..place + width) };
                    for (target, &source) in target.iter_mut().zip(source) {
                        *target = convert(source);
                    }
                }
            }
        });
    }
}
