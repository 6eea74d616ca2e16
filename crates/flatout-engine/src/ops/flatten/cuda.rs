//! A transpose of each image, there and back.

use super::Flatten;
use crate::cuda::io::{CudaOperation, Io};
use crate::cuda::{Argument, CudaError};

impl CudaOperation for Flatten {
    fn kernels() -> &'static str {
        include_str!("flatten.cu")
    }

    fn forward(&self, io: &Io) -> Result<(), CudaError> {
        self.transpose(
            io,
            (io.input(0), io.output(0)),
            (self.pixels, self.channels),
            false,
        )
    }

    fn backward(&self, io: &Io) -> Result<(), CudaError> {
        let (Some(gradient), Some((target, add))) = (io.output_gradient(0), io.input_gradient(0)) else {
            return Ok(());
        };
        self.transpose(io, (gradient, target), (self.channels, self.pixels), add)
    }
}

impl Flatten {
    fn transpose(
        &self,
        io: &Io,
        (source, target): (u64, u64),
        (rows, columns): (usize, usize),
        add: bool,
    ) -> Result<(), CudaError> {
        let arguments = [
            Argument::Address(source),
            Argument::Address(target),
            Argument::Word(rows as i32),
            Argument::Word(columns as i32),
            Argument::Word(i32::from(add)),
        ];
        let tiles = rows.div_ceil(32) * columns.div_ceil(32) * self.batch;
        io.machine.blocks("transpose_images", (tiles, 1), 256, &arguments)
    }
}
