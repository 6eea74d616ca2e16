//! Which pixel won is kept as a byte, so that backward reads neither the input nor the windows again.

use super::MaxPool;
use crate::activation::Activation;
use crate::cuda::columns::Columns;
use crate::cuda::io::{CudaOperation, Io, Site};
use crate::cuda::{Argument, CudaError, Machine};

/// Windows of more pixels than a byte can number are not for this kernel.
pub(crate) const LARGEST: usize = 16;

impl CudaOperation for MaxPool {
    fn kernels() -> &'static str {
        include_str!("max_pool.cu")
    }

    fn scratch(&self, _machine: &Machine, _site: &Site) -> Result<Vec<usize>, CudaError> {
        if self.size > LARGEST {
            return Err(CudaError::Operation {
                operation: "max_pool",
            });
        }
        Ok(vec![self.values()])
    }

    fn forward(&self, io: &Io) -> Result<(), CudaError> {
        let places = (io.input(0), io.output(0), io.scratch(0));
        self.forward_on_card(io, places, None, Activation::None)
    }

    fn backward(&self, io: &Io) -> Result<(), CudaError> {
        let (Some(gradient), Some((target, add))) = (io.output_gradient(0), io.input_gradient(0)) else {
            return Ok(());
        };
        let places = (gradient, io.output(0), io.scratch(0));
        self.backward_on_card(io, places, (target, add), None, Activation::None)
    }
}

impl MaxPool {
    pub(crate) fn pixels(&self) -> usize {
        self.batch * (self.height / self.size) * (self.width / self.size)
    }

    /// Values of the output.
    pub(crate) fn values(&self) -> usize {
        self.pixels() * self.channels
    }

    /// Input, output and index; a bias and an activation that commute with the maximum.
    pub(crate) fn forward_on_card(
        &self,
        io: &Io,
        (input, output, index): (u64, u64, u64),
        bias: Option<u64>,
        activation: Activation,
    ) -> Result<(), CudaError> {
        let columns = Columns::new(self.pixels(), self.channels);
        let mut arguments = vec![
            Argument::Address(input),
            Argument::Address(bias.unwrap_or(0)),
            Argument::Address(output),
            Argument::Address(index),
        ];
        arguments.extend(self.sizes(activation));
        let kernel = columns.name("max_pool_forward");
        io.machine
            .each(&kernel, self.values() / columns.vector(), &arguments)
    }

    /// Gradient, result and index to the gradient of the input; `parts` takes the gradient's sums by channel.
    pub(crate) fn backward_on_card(
        &self,
        io: &Io,
        (gradient, result, index): (u64, u64, u64),
        (target, add): (u64, bool),
        parts: Option<u64>,
        activation: Activation,
    ) -> Result<(), CudaError> {
        let left_over = self.height % self.size + self.width % self.size > 0;
        if left_over && !add {
            let bytes = self.batch * self.height * self.width * self.channels * io.number().bytes();
            io.machine.stream.clear(target, bytes)?;
        }
        let columns = Columns::new(self.pixels(), self.channels);
        let mut arguments = vec![
            Argument::Address(gradient),
            Argument::Address(result),
            Argument::Address(index),
            Argument::Address(target),
            Argument::Address(parts.unwrap_or(0)),
        ];
        arguments.extend(self.sizes(activation));
        arguments.push(Argument::Word(i32::from(add)));
        columns.launch(io.machine, "max_pool_backward", &arguments)
    }

    fn sizes(&self, activation: Activation) -> [Argument; 6] {
        [
            Argument::Long(self.pixels() as i64),
            Argument::Word(self.height as i32),
            Argument::Word(self.width as i32),
            Argument::Word(self.channels as i32),
            Argument::Word(self.size as i32),
            Argument::Word(activation.code()),
        ]
    }
}
