//! Rows out of the f32 table; gradients back without atomics.

use super::Embedding;
use crate::cuda::io::{CudaOperation, Io};
use crate::cuda::{Argument, CudaError};

impl CudaOperation for Embedding {
    fn kernels() -> &'static str {
        include_str!("embedding.cu")
    }

    fn forward(&self, io: &Io) -> Result<(), CudaError> {
        let arguments = [
            Argument::Address(io.master(0)),
            Argument::Address(io.input(0)),
            Argument::Address(io.output(0)),
            Argument::Word(self.batch as i32),
            Argument::Word(self.entries as i32),
            Argument::Word(self.width as i32),
            io.results(),
        ];
        io.machine
            .each("embedding_forward", self.batch * self.width, &arguments)
    }

    fn backward(&self, io: &Io) -> Result<(), CudaError> {
        let Some(gradient) = io.output_gradient(0) else {
            return Ok(());
        };
        let arguments = [
            Argument::Address(gradient),
            Argument::Address(io.input(0)),
            Argument::Address(io.parameter_gradient(0)),
            Argument::Word(self.batch as i32),
            Argument::Word(self.entries as i32),
            Argument::Word(self.width as i32),
        ];
        io.machine
            .blocks("embedding_backward", (self.batch.div_ceil(8), 1), 256, &arguments)
    }
}
