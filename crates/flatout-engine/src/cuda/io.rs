//! What an operation sees of the session while it puts its work into the queue.

use super::blas::{Matrix, Number};
use super::driver::{Argument, Block};
use super::error::CudaError;
use super::machine::Machine;
use super::memory::{Memory, Place};
use crate::plan::Node;

/// The CUDA side of an operation; one that has none yet is `impl CudaOperation for X {}`, and says so when asked. Everything it does is put into the machine's queue: nothing waits, nothing allocates.
pub(crate) trait CudaOperation {
    /// Its kernels, compiled with those of all others behind kernels/common.cu.
    fn kernels() -> &'static str
    where
        Self: Sized,
    {
        ""
    }

    /// Bytes of each scratch block it wants, kept between forward and backward. Loads kernels of its own, too.
    fn scratch(&self, _machine: &Machine) -> Result<Vec<usize>, CudaError> {
        Ok(Vec::new())
    }

    fn forward(&self, io: &Io) -> Result<(), CudaError> {
        Err(CudaError::Operation {
            operation: io.node.op.name(),
        })
    }

    fn backward(&self, io: &Io) -> Result<(), CudaError> {
        Err(CudaError::Operation {
            operation: io.node.op.name(),
        })
    }
}

pub(crate) struct Io<'a> {
    pub machine: &'a Machine,
    pub memory: &'a Memory,
    pub node: &'a Node,
    pub scratch: &'a [Block],
    /// The node's number: with a purpose, the key of its random numbers.
    pub index: usize,
    pub training: bool,
}

impl Io<'_> {
    pub fn input(&self, position: usize) -> u64 {
        self.memory.place(self.node.inputs[position]).address
    }

    /// A table, as it was attached.
    pub fn table(&self, position: usize) -> Place {
        self.memory.place(self.node.inputs[position])
    }

    pub fn output(&self, position: usize) -> u64 {
        self.memory.place(self.node.outputs[position]).address
    }

    /// The parameter in the precision of products.
    pub fn parameter(&self, position: usize) -> u64 {
        self.memory.place(self.node.parameters[position]).computing
    }

    /// The parameter in f32.
    pub fn master(&self, position: usize) -> u64 {
        self.memory.place(self.node.parameters[position]).address
    }

    pub fn parameter_gradient(&self, position: usize) -> u64 {
        self.memory.place(self.node.parameter_gradients[position]).address
    }

    /// Where an input's gradient goes, and whether it is added to what is there.
    pub fn input_gradient(&self, position: usize) -> Option<(u64, bool)> {
        let slot = (*self.node.input_gradients.get(position)?)?;
        Some((self.memory.place(slot.buffer).address, slot.accumulate))
    }

    pub fn output_gradient(&self, position: usize) -> Option<u64> {
        let id = (*self.node.output_gradients.get(position)?)?;
        Some(self.memory.place(id).address)
    }

    pub fn scratch(&self, position: usize) -> u64 {
        self.scratch[position].address()
    }

    pub fn number(&self) -> Number {
        self.machine.precision.number()
    }

    /// A matrix of activations.
    pub fn matrix(&self, address: u64, rows: usize, columns: usize) -> Matrix {
        Matrix::new(address, rows, columns, self.number())
    }

    pub fn control(&self) -> Argument {
        Argument::Address(self.memory.inputs.address())
    }

    pub fn results(&self) -> Argument {
        Argument::Address(self.memory.results.address())
    }
}
