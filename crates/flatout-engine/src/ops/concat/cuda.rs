//! One copy an input.

use super::Concat;
use crate::cuda::io::{CudaOperation, Io};
use crate::cuda::{Argument, CudaError};

impl CudaOperation for Concat {
    fn kernels() -> &'static str {
        include_str!("concat.cu")
    }

    fn forward(&self, io: &Io) -> Result<(), CudaError> {
        let total = self.widths.iter().sum();
        let mut first = 0;
        for (position, &width) in self.widths.iter().enumerate() {
            let (source, target) = ((io.input(position), width, 0), (io.output(0), total, first));
            copy_columns(io, self.rows, width, source, target, false)?;
            first += width;
        }
        Ok(())
    }

    fn backward(&self, io: &Io) -> Result<(), CudaError> {
        let Some(gradient) = io.output_gradient(0) else {
            return Ok(());
        };
        let total = self.widths.iter().sum();
        let mut first = 0;
        for (position, &width) in self.widths.iter().enumerate() {
            if let Some((target, add)) = io.input_gradient(position) {
                copy_columns(
                    io,
                    self.rows,
                    width,
                    (gradient, total, first),
                    (target, width, 0),
                    add,
                )?;
            }
            first += width;
        }
        Ok(())
    }
}

/// Address, values from row to row, first column.
type Columns = (u64, usize, usize);

pub(crate) fn copy_columns(
    io: &Io,
    rows: usize,
    width: usize,
    source: Columns,
    target: Columns,
    add: bool,
) -> Result<(), CudaError> {
    let arguments = [
        Argument::Address(source.0),
        Argument::Address(target.0),
        Argument::Long(rows as i64),
        Argument::Word(width as i32),
        Argument::Word(source.1 as i32),
        Argument::Word(source.2 as i32),
        Argument::Word(target.1 as i32),
        Argument::Word(target.2 as i32),
        Argument::Word(i32::from(add)),
    ];
    io.machine.each("copy_columns", rows * width, &arguments)
}
