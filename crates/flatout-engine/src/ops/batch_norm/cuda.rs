//! Two passes each way, the fewest that statistics of the whole batch allow: one adds up, one writes. The activation and its
//! slope are part of them; sums are f32, in an order that follows from the sizes.

use super::BatchNorm;
use crate::cuda::columns::Columns;
use crate::cuda::io::{CudaOperation, Io, Site};
use crate::cuda::{Argument, CudaError, Machine};

/// Scratch: sums of the parts; mean and 1/deviation, used again in backward; totals of backward.
const PARTS: usize = 0;
const MOMENTS: usize = 1;
const TOTALS: usize = 2;

impl CudaOperation for BatchNorm {
    fn kernels() -> &'static str {
        include_str!("batch_norm.cu")
    }

    fn scratch(&self, _machine: &Machine, _site: &Site) -> Result<Vec<usize>, CudaError> {
        Ok(vec![
            self.columns().bytes(2),
            8 * self.channels,
            8 * self.channels,
        ])
    }

    fn forward(&self, io: &Io) -> Result<(), CudaError> {
        let columns = self.columns();
        let (rows, channels) = (
            Argument::Long(self.rows as i64),
            Argument::Word(self.channels as i32),
        );
        let (parts, moments) = (
            Argument::Address(io.scratch(PARTS)),
            Argument::Address(io.scratch(MOMENTS)),
        );
        let (input, epsilon) = (
            Argument::Address(io.input(0)),
            Argument::Float(self.epsilon as f32),
        );
        let (mean, variance) = (Argument::Address(io.state(0)), Argument::Address(io.state(1)));
        if io.training {
            columns.launch(io.machine, "batch_norm_moments", &[input, parts, rows, channels])?;
            let (count, momentum) = (
                Argument::Word(columns.parts() as i32),
                Argument::Float(self.momentum as f32),
            );
            let arguments = [
                input, parts, count, moments, mean, variance, rows, channels, epsilon, momentum,
            ];
            io.machine
                .blocks("batch_norm_statistics", self.warps(), 256, &arguments)?;
        } else {
            let arguments = [moments, mean, variance, channels, epsilon];
            io.machine.each("batch_norm_running", self.channels, &arguments)?;
        }
        let arguments = [
            input,
            moments,
            Argument::Address(io.master(0)),
            Argument::Address(io.master(1)),
            Argument::Address(io.output(0)),
            rows,
            channels,
            Argument::Word(self.activation.code()),
        ];
        columns.launch(io.machine, "batch_norm_apply", &arguments)
    }

    fn backward(&self, io: &Io) -> Result<(), CudaError> {
        let Some(gradient) = io.output_gradient(0) else {
            return Ok(());
        };
        let columns = self.columns();
        let parts = Argument::Address(io.scratch(PARTS));
        let totals = Argument::Address(io.scratch(TOTALS));
        let (rows, channels) = (
            Argument::Long(self.rows as i64),
            Argument::Word(self.channels as i32),
        );
        let activation = Argument::Word(self.activation.code());
        let given = [
            Argument::Address(gradient),
            Argument::Address(io.input(0)),
            Argument::Address(io.scratch(MOMENTS)),
            Argument::Address(io.master(0)),
            Argument::Address(io.master(1)),
        ];
        let arguments = [&given[..], &[parts, rows, channels, activation]].concat();
        columns.launch(io.machine, "batch_norm_sums", &arguments)?;
        let arguments = [
            parts,
            Argument::Word(columns.parts() as i32),
            totals,
            Argument::Address(io.parameter_gradient(0)),
            Argument::Address(io.parameter_gradient(1)),
            channels,
        ];
        io.machine
            .blocks("batch_norm_totals", self.warps(), 256, &arguments)?;
        let Some((target, add)) = io.input_gradient(0) else {
            return Ok(());
        };
        let rest = [
            totals,
            Argument::Address(target),
            rows,
            channels,
            activation,
            Argument::Word(i32::from(add)),
        ];
        columns.launch(io.machine, "batch_norm_gradient", &[&given[..], &rest].concat())
    }
}

impl BatchNorm {
    fn columns(&self) -> Columns {
        Columns::new(self.rows, self.channels)
    }

    /// A warp a channel.
    fn warps(&self) -> (usize, usize) {
        (self.channels.div_ceil(8), 1)
    }
}
