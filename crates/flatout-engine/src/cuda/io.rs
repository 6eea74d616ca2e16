//! What an operation sees of the session while it puts its work into the queue.

use super::blas::{Matrix, Number};
use super::driver::{Argument, Block};
use super::error::CudaError;
use super::machine::Machine;
use super::memory::{Memory, Place};
use crate::ops::Op;
use crate::ops::max_pool::MaxPool;
use crate::plan::{Node, Plan};

/// The CUDA side of an operation. Everything it does is put into the machine's queue: nothing waits, nothing allocates.
pub(crate) trait CudaOperation {
    /// Its kernels, compiled with those of all others behind kernels/common.cu.
    fn kernels() -> &'static str
    where
        Self: Sized,
    {
        ""
    }

    /// Bytes of each scratch block it wants, kept between forward and backward. Loads kernels of its own, too.
    fn scratch(&self, _machine: &Machine, _site: &Site) -> Result<Vec<usize>, CudaError> {
        Ok(Vec::new())
    }

    fn forward(&self, io: &Io) -> Result<(), CudaError>;

    fn backward(&self, io: &Io) -> Result<(), CudaError>;
}

/// A node and the pooling that it does on the way, see fusion.rs.
#[derive(Clone, Copy)]
pub(crate) struct Site<'a> {
    pub node: &'a Node,
    pub pool: Option<&'a Node>,
}

impl<'a> Site<'a> {
    /// The pooling with its sizes.
    pub fn pooling(&self) -> Option<(&'a Node, &'a MaxPool)> {
        match self.pool.map(|node| (node, &node.op)) {
            Some((node, Op::MaxPool(pool))) => Some((node, pool)),
            _ => None,
        }
    }
}

pub(crate) struct Io<'a> {
    pub plan: &'a Plan,
    pub machine: &'a Machine,
    pub memory: &'a Memory,
    pub node: &'a Node,
    pub site: Site<'a>,
    pub scratch: &'a [Block],
    /// Where a gather's rows lie when its table stays with the host.
    pub streamed: Option<u64>,
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

    /// A running statistic, f32.
    pub fn state(&self, position: usize) -> u64 {
        self.memory.place(self.node.states[position]).address
    }

    /// How many values an output has.
    pub fn values(&self, position: usize) -> usize {
        self.plan.buffer(self.node.outputs[position]).len()
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

    /// What a kernel needs to draw a mask of cpu/dropout.rs: the key of cpu/io.rs, the threshold, the scale.
    pub fn dropout(&self, purpose: u64, rate: f64) -> [Argument; 3] {
        let key = ((self.index as u64) << 8 | purpose) ^ 1 << 63;
        [
            Argument::Long(key as i64),
            Argument::Long((rate * 4_294_967_296.0) as i64),
            Argument::Float((1.0 / (1.0 - rate)) as f32),
        ]
    }
}
