//! By cuDNN; the first layer of a network, whose images have few channels, by kernels of its own: there is nothing in it for
//! the tensor cores, and its output is the largest tensor of all.

mod few_channels;
mod library;

use super::Conv2d;
use crate::cuda::io::{CudaOperation, Io, Site};
use crate::cuda::{CudaError, Machine};
use few_channels::FewChannels;
pub(crate) use few_channels::examples;
use library::Library;

impl CudaOperation for Conv2d {
    fn kernels() -> &'static str {
        include_str!("conv2d.cu")
    }

    fn scratch(&self, machine: &Machine, site: &Site) -> Result<Vec<usize>, CudaError> {
        match FewChannels::of(self, site) {
            Some(few) => few.scratch(machine),
            None => Library::of(self, site).scratch(machine, site),
        }
    }

    fn forward(&self, io: &Io) -> Result<(), CudaError> {
        match FewChannels::of(self, &io.site) {
            Some(few) => few.forward(io),
            None => Library::of(self, &io.site).forward(io),
        }
    }

    fn backward(&self, io: &Io) -> Result<(), CudaError> {
        match FewChannels::of(self, &io.site) {
            Some(few) => few.backward(io),
            None => Library::of(self, &io.site).backward(io),
        }
    }
}

/// Where the result of a convolution goes, pooled or not: output and its gradient.
fn result(io: &Io) -> (u64, Option<u64>) {
    let node = io.site.pool.unwrap_or(io.node);
    let gradient = node.output_gradients.first().copied().flatten();
    let output = io.memory.place(node.outputs[0]).address;
    (output, gradient.map(|id| io.memory.place(id).address))
}
