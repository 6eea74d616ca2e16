//! A warp an answer; the answers' losses are added up by one block.

use super::CrossEntropy;
use crate::cuda::io::{CudaOperation, Io, Site};
use crate::cuda::{Argument, CudaError, Machine};

/// Answers that a block takes.
const WARPS: usize = 8;

impl CudaOperation for CrossEntropy {
    fn kernels() -> &'static str {
        include_str!("cross_entropy.cu")
    }

    fn scratch(&self, _machine: &Machine, _site: &Site) -> Result<Vec<usize>, CudaError> {
        Ok(vec![self.rows() * 4])
    }

    fn forward(&self, io: &Io) -> Result<(), CudaError> {
        let [rows, answers, classes] = self.sizes();
        let arguments = [
            Argument::Address(io.input(0)),
            Argument::Address(io.input(1)),
            Argument::Address(io.scratch(0)),
            rows,
            answers,
            classes,
            io.control(),
            io.results(),
        ];
        let blocks = (self.rows().div_ceil(WARPS), 1);
        io.machine
            .blocks("cross_entropy_rows", blocks, 32 * WARPS, &arguments)?;
        let arguments = [
            Argument::Address(io.scratch(0)),
            Argument::Address(io.output(0)),
            rows,
            answers,
            io.control(),
        ];
        io.machine.blocks("cross_entropy_mean", (1, 1), 1024, &arguments)
    }

    fn backward(&self, io: &Io) -> Result<(), CudaError> {
        let Some((gradient, add)) = io.input_gradient(0) else {
            return Ok(());
        };
        let [rows, answers, classes] = self.sizes();
        let arguments = [
            Argument::Address(io.input(0)),
            Argument::Address(io.input(1)),
            Argument::Address(gradient),
            rows,
            answers,
            classes,
            io.control(),
            io.results(),
            Argument::Word(i32::from(add)),
        ];
        let blocks = (self.rows().div_ceil(WARPS), 1);
        io.machine
            .blocks("cross_entropy_backward", blocks, 32 * WARPS, &arguments)
    }
}

impl CrossEntropy {
    fn rows(&self) -> usize {
        self.batch * self.answers
    }

    fn sizes(&self) -> [Argument; 3] {
        [
            Argument::Long(self.rows() as i64),
            Argument::Word(self.answers as i32),
            Argument::Word(self.classes as i32),
        ]
    }
}
