//! What an operation's CPU side is given: its buffers by position, the workers, and the facts of this step.

use super::aligned::Aligned;
use super::gemm::GemmSpace;
use super::guarded::{Guarded, Reading, Writing};
use super::memory::Memory;
use super::pool::{Parts, Pool};
use super::real::Real;
use crate::EngineError;
use crate::activation::Activation;
use crate::plan::Node;
use crate::random::Stream;
use crate::session::Table;

/// What is the same for all operations of a step.
pub struct Context<'a, T: Real> {
    pub memory: &'a Memory<T>,
    pub pool: &'a Pool,
    pub gemm: &'a GemmSpace<T>,
    /// Dropout on, batch statistics from the batch.
    pub training: bool,
    pub seed: u64,
    /// With the seed and a picture's number, the key of what happens to it.
    pub epoch: u64,
    /// Micro-batches so far: the key of this step's random numbers.
    pub tick: u64,
    /// Rows of the batch that are real; the rest is padding that no loss counts.
    pub valid_rows: usize,
    /// Factor on the loss's gradient: one over the number of micro-batches.
    pub loss_weight: f64,
}

pub struct Io<'a, T: Real> {
    pub context: &'a Context<'a, T>,
    pub node: &'a Node,
    /// The node's place in the plan.
    pub index: usize,
    pub scratch: &'a [Guarded<Aligned<T>>],
}

impl<T: Real> Io<'_, T> {
    pub fn pool(&self) -> &Pool {
        self.context.pool
    }

    pub fn gemm(&self) -> &GemmSpace<T> {
        self.context.gemm
    }

    pub fn input(&self, position: usize) -> Reading<'_, [T]> {
        self.context.memory.read(self.node.inputs[position])
    }

    pub fn input_indices(&self, position: usize) -> Reading<'_, [i32]> {
        self.context.memory.read_indices(self.node.inputs[position])
    }

    pub fn table(&self, position: usize, name: impl FnOnce() -> String) -> Result<Table, EngineError> {
        let table = self.context.memory.table(self.node.inputs[position]);
        table.ok_or_else(|| EngineError::NotAttached { name: name() })
    }

    pub fn output(&self, position: usize) -> Writing<'_, [T]> {
        self.context.memory.write(self.node.outputs[position])
    }

    pub fn output_indices(&self, position: usize) -> Writing<'_, [i32]> {
        self.context.memory.write_indices(self.node.outputs[position])
    }

    /// What forward wrote.
    pub fn result(&self, position: usize) -> Reading<'_, [T]> {
        self.context.memory.read(self.node.outputs[position])
    }

    /// The gradient before an activation that follows the operation, out of the one behind it.
    pub fn gradient_before(&self, activation: Activation, gradient: &[T], before: &mut [T]) {
        let result = self.result(0);
        let target = Parts::new(before);
        self.pool().run(&|worker| {
            let range = self.pool().share(worker, gradient.len(), 64);
            // SAFETY: shares do not overlap.
            let target = unsafe { target.part(range.clone()) };
            activation.gradient(target, &gradient[range.clone()], &result[range]);
        });
    }

    pub fn parameter(&self, position: usize) -> Reading<'_, [T]> {
        self.context.memory.read(self.node.parameters[position])
    }

    pub fn parameter_gradient(&self, position: usize) -> Writing<'_, [T]> {
        self.context.memory.write(self.node.parameter_gradients[position])
    }

    pub fn state(&self, position: usize) -> Writing<'_, [T]> {
        self.context.memory.write(self.node.states[position])
    }

    /// Where the gradient of an input goes, and whether to add to it; `None` when nobody wants it.
    pub fn input_gradient(&self, position: usize) -> Option<(Writing<'_, [T]>, bool)> {
        let slot = self.node.input_gradients[position]?;
        Some((self.context.memory.write(slot.buffer), slot.accumulate))
    }

    /// `None` when no operation behind this one used the output.
    pub fn output_gradient(&self, position: usize) -> Option<Reading<'_, [T]>> {
        let buffer = self.node.output_gradients[position]?;
        Some(self.context.memory.read(buffer))
    }

    /// Memory of this node's own, kept from forward to backward.
    pub fn scratch(&self, position: usize) -> Writing<'_, Aligned<T>> {
        self.scratch[position].borrow_mut()
    }

    pub fn scratch_result(&self, position: usize) -> Reading<'_, Aligned<T>> {
        self.scratch[position].borrow()
    }

    /// The random numbers of this node in this step: the same in forward and backward.
    pub fn random(&self, purpose: u64) -> Stream {
        let purpose = (self.index as u64) << 8 | purpose;
        Stream::new(self.context.seed, purpose ^ 1 << 63, self.context.tick)
    }
}

/// The CPU side of an operation.
pub trait CpuOperation<T: Real> {
    /// Sizes of the memory the node wants for itself, allocated once.
    fn scratch(&self, _gemm: &GemmSpace<T>, _workers: usize) -> Vec<usize> {
        Vec::new()
    }

    fn forward(&self, io: &Io<T>) -> Result<(), EngineError>;

    /// Writes or adds the input gradients, adds the parameter gradients.
    fn backward(&self, io: &Io<T>);
}
