//! One thread makes the means of up to eight channels of an image.

use super::AveragePool;
use crate::cuda::columns::Columns;
use crate::cuda::io::{CudaOperation, Io};
use crate::cuda::{Argument, CudaError};

impl CudaOperation for AveragePool {
    fn kernels() -> &'static str {
        include_str!("average_pool.cu")
    }

    fn forward(&self, io: &Io) -> Result<(), CudaError> {
        let columns = Columns::new(self.batch, self.channels);
        let [images, pixels, channels] = self.sizes();
        let arguments = [
            Argument::Address(io.input(0)),
            Argument::Address(io.output(0)),
            images,
            pixels,
            channels,
        ];
        let threads = self.batch * self.channels / columns.vector();
        io.machine
            .each(&columns.name("average_pool_forward"), threads, &arguments)
    }

    fn backward(&self, io: &Io) -> Result<(), CudaError> {
        let (Some(gradient), Some((target, add))) = (io.output_gradient(0), io.input_gradient(0)) else {
            return Ok(());
        };
        let columns = Columns::new(self.batch, self.channels);
        let [images, pixels, channels] = self.sizes();
        let arguments = [
            Argument::Address(gradient),
            Argument::Address(target),
            images,
            pixels,
            channels,
            Argument::Word(i32::from(add)),
        ];
        let threads = self.batch * self.pixels * self.channels / columns.vector();
        io.machine
            .each(&columns.name("average_pool_backward"), threads, &arguments)
    }
}

impl AveragePool {
    fn sizes(&self) -> [Argument; 3] {
        [
            Argument::Long(self.batch as i64),
            Argument::Word(self.pixels as i32),
            Argument::Word(self.channels as i32),
        ]
    }
}
