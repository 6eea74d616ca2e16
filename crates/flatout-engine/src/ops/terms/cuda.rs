//! One launch per term; the losses of the rows are added up in the terms' order, then by one block.

use super::Terms;
use super::shape::{Term, TermLoss};
use crate::cuda::io::{CudaOperation, Io, Site};
use crate::cuda::{Argument, CudaError, Machine};

/// Rows that a block takes where a row takes a warp.
const WARPS: usize = 8;

impl CudaOperation for Terms {
    fn kernels() -> &'static str {
        include_str!("terms.cu")
    }

    fn scratch(&self, _machine: &Machine, _site: &Site) -> Result<Vec<usize>, CudaError> {
        Ok(vec![self.rows * 4])
    }

    fn forward(&self, io: &Io) -> Result<(), CudaError> {
        for (number, term) in self.terms.iter().enumerate() {
            let add = Argument::Word(i32::from(number > 0));
            let mut arguments = self.arguments(io, io.scratch(0), term);
            match term.loss {
                TermLoss::Classes { .. } => {
                    arguments.extend([io.control(), io.results(), add]);
                    self.warps(io, "terms_class_values", &arguments)?;
                }
                _ => {
                    arguments.extend([io.control(), add]);
                    io.machine.each("terms_values", self.rows, &arguments)?;
                }
            }
        }
        let arguments = [
            Argument::Address(io.scratch(0)),
            Argument::Address(io.output(0)),
            Argument::Long(self.rows as i64),
            io.control(),
        ];
        io.machine.blocks("terms_mean", (1, 1), 1024, &arguments)
    }

    fn backward(&self, io: &Io) -> Result<(), CudaError> {
        let Some((gradient, add)) = io.input_gradient(0) else {
            return Ok(());
        };
        for term in &self.terms {
            let mut arguments = self.arguments(io, gradient, term);
            arguments.extend([io.control(), io.results(), Argument::Word(i32::from(add))]);
            match term.loss {
                TermLoss::Classes { .. } => self.warps(io, "terms_class_slopes", &arguments)?,
                _ => {
                    let total = self.rows * term.count;
                    io.machine.each("terms_slopes", total, &arguments)?;
                }
            }
        }
        Ok(())
    }
}

impl Terms {
    fn warps(&self, io: &Io, kernel: &str, arguments: &[Argument]) -> Result<(), CudaError> {
        let blocks = (self.rows.div_ceil(WARPS), 1);
        io.machine.blocks(kernel, blocks, 32 * WARPS, arguments)
    }

    /// What all kernels begin with: where they read and write, the term's place, its loss.
    fn arguments(&self, io: &Io, target: u64, term: &Term) -> Vec<Argument> {
        let (code, parameter, smoothing) = term.loss.code();
        let word = |value: usize| Argument::Word(value as i32);
        let mut arguments = vec![
            Argument::Address(io.input(0)),
            Argument::Address(io.input(1)),
            Argument::Address(target),
            Argument::Long(self.rows as i64),
            word(self.width),
            word(self.columns),
            word(term.first),
        ];
        match term.loss {
            TermLoss::Classes { .. } => arguments.extend([
                word(term.classes),
                word(term.column),
                Argument::Float(term.share as f32),
                Argument::Float(parameter as f32),
                Argument::Float(smoothing as f32),
            ]),
            _ => arguments.extend([
                word(term.count),
                word(term.column),
                Argument::Float(term.share as f32),
                Argument::Word(code),
                Argument::Float(parameter as f32),
            ]),
        }
        arguments
    }
}
