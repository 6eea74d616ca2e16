//! The input of all time steps is projected by one product a layer; the recurrence is the persistent kernel where the card and
//! the size allow it and measurement prefers it, else one product and one kernel a step; the weight gradients are one product each
//! again.

mod stepwise;

use super::Lstm;
use crate::cuda::io::{CudaOperation, Io, Site};
use crate::cuda::{CudaError, Machine};
use crate::ops::recurrent::{Layout, SequenceOutput};

impl CudaOperation for Lstm {
    fn kernels() -> &'static str {
        include_str!("lstm.cu")
    }

    fn scratch(&self, machine: &Machine, _site: &Site) -> Result<Vec<usize>, CudaError> {
        self.either_way(machine, |_| self.sizes_on_card(machine))
    }

    fn forward(&self, io: &Io) -> Result<(), CudaError> {
        self.choose_on_card(io, &|| self.forward_as_chosen(io))?;
        self.forward_as_chosen(io)
    }

    fn backward(&self, io: &Io) -> Result<(), CudaError> {
        let Some(gradient) = io.output_gradient(0) else {
            return Ok(());
        };
        if let Some(persistent) = self.persistent(io.machine) {
            return self.persistent_backward(io, &persistent, gradient);
        }
        let last_only = self.stack.output == SequenceOutput::Last;
        let mut upstream = gradient;
        for layer in (0..self.stack.layers).rev() {
            let last_only = last_only && layer + 1 == self.stack.layers;
            self.step_by_step_back(io, layer, upstream, last_only)?;
            io.machine.aside(|| self.weight_gradients_on_card(io, layer))?;
            upstream = io.scratch(self.layout_on_card().upstream());
            self.pass_down_on_card(io, layer, &(0..self.steps))?;
        }
        self.input_gradients_on_card(io)
    }
}

impl Lstm {
    fn forward_as_chosen(&self, io: &Io) -> Result<(), CudaError> {
        if let Some(persistent) = self.persistent(io.machine) {
            return self.persistent_forward(io, &persistent);
        }
        self.join_on_card(io, io.scratch(Layout::JOINED), self.stride(0, io.machine))?;
        for layer in 0..self.stack.layers {
            self.prepare(io, layer)?;
            self.project_on_card(io, layer, &(0..self.steps))?;
            self.step_by_step(io, layer)?;
            self.drop_on_card(io, layer, &(0..self.steps))?;
        }
        self.output_on_card(io)
    }
}
