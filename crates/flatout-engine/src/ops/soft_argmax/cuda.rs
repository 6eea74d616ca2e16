//! A block per image forward, one pass back.

use super::SoftArgmax;
use crate::cuda::io::{CudaOperation, Io, Site};
use crate::cuda::{Argument, CudaError, Machine};

/// Threads of a block; the kernel's shared memory is made for them.
const THREADS: usize = 256;
/// Scratch: the logarithm of each map's sum of exponentials; the positions in f32.
const SUMS: usize = 0;
const CENTERS: usize = 1;

impl CudaOperation for SoftArgmax {
    fn kernels() -> &'static str {
        include_str!("soft_argmax.cu")
    }

    fn scratch(&self, _machine: &Machine, _site: &Site) -> Result<Vec<usize>, CudaError> {
        let maps = self.batch * self.maps;
        Ok(vec![4 * maps, 8 * maps])
    }

    fn forward(&self, io: &Io) -> Result<(), CudaError> {
        let given = [
            Argument::Address(io.input(0)),
            Argument::Address(io.scratch(SUMS)),
            Argument::Address(io.scratch(CENTERS)),
            Argument::Address(io.output(0)),
        ];
        let arguments = [&given[..], &self.sizes()].concat();
        let grid = (self.batch, self.maps.div_ceil(THREADS));
        io.machine
            .blocks("soft_argmax_forward", grid, THREADS, &arguments)
    }

    fn backward(&self, io: &Io) -> Result<(), CudaError> {
        let (Some(gradient), Some((target, add))) = (io.output_gradient(0), io.input_gradient(0)) else {
            return Ok(());
        };
        let given = [
            Argument::Address(gradient),
            Argument::Address(io.input(0)),
            Argument::Address(io.scratch(SUMS)),
            Argument::Address(io.scratch(CENTERS)),
            Argument::Address(target),
            Argument::Long(self.batch as i64),
        ];
        let add = [Argument::Word(i32::from(add))];
        let arguments = [&given[..], &self.sizes(), &add].concat();
        let threads = self.batch * self.height * self.width * self.maps;
        io.machine.each("soft_argmax_backward", threads, &arguments)
    }
}

impl SoftArgmax {
    fn sizes(&self) -> [Argument; 3] {
        [self.height, self.width, self.maps].map(|value| Argument::Word(value as i32))
    }
}
