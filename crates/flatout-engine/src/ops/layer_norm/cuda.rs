//! A warp per row each way. Rows that fit into a warp's registers are read once each way, and the sums for weight and bias are made on the
//! way; longer rows are read again, and their sums are made on the side stream.

use super::LayerNorm;
use crate::cuda::columns::{Columns, sum_parts};
use crate::cuda::io::{CudaOperation, Io, Site};
use crate::cuda::{Argument, CudaError, Machine};

/// Scratch: mean and 1/deviation of each row; sums of the parts.
const MOMENTS: usize = 0;
const PARTS: usize = 1;

impl CudaOperation for LayerNorm {
    fn kernels() -> &'static str {
        include_str!("layer_norm.cu")
    }

    fn scratch(&self, _machine: &Machine, _site: &Site) -> Result<Vec<usize>, CudaError> {
        Ok(vec![8 * self.rows, self.columns().bytes(2)])
    }

    fn forward(&self, io: &Io) -> Result<(), CudaError> {
        let arguments = [
            Argument::Address(io.input(0)),
            Argument::Address(io.master(0)),
            Argument::Address(io.master(1)),
            Argument::Address(io.output(0)),
            Argument::Address(io.scratch(MOMENTS)),
            Argument::Long(self.rows as i64),
            Argument::Word(self.width as i32),
            Argument::Float(self.epsilon as f32),
        ];
        let name = match self.packs() {
            Some(packs) => format!("layer_norm_whole_forward_{packs}"),
            None => self.columns().name("layer_norm_forward"),
        };
        io.machine.blocks(&name, self.warps(), 256, &arguments)
    }

    fn backward(&self, io: &Io) -> Result<(), CudaError> {
        let Some(gradient) = io.output_gradient(0) else {
            return Ok(());
        };
        let (rows, width) = (
            Argument::Long(self.rows as i64),
            Argument::Word(self.width as i32),
        );
        let (gradient, input) = (Argument::Address(gradient), Argument::Address(io.input(0)));
        let (columns, parts) = (self.columns(), Argument::Address(io.scratch(PARTS)));
        let (moments, weight) = (
            Argument::Address(io.scratch(MOMENTS)),
            Argument::Address(io.master(0)),
        );
        let wanted = io.input_gradient(0);
        let (target, add) = wanted.unwrap_or_default();
        let (target, add) = (Argument::Address(target), Argument::Word(i32::from(add)));
        if let Some(packs) = self.packs() {
            let arguments = [gradient, input, weight, moments, target, parts, rows, width, add];
            let name = format!("layer_norm_whole_backward_{packs}");
            io.machine.blocks(&name, (columns.parts(), 1), 256, &arguments)?;
            return io.machine.aside(|| self.add_up(io));
        }
        io.machine.aside(|| {
            let arguments = [gradient, input, moments, parts, rows, width];
            columns.launch(io.machine, "layer_norm_sums", &arguments)?;
            self.add_up(io)
        })?;
        if wanted.is_none() {
            return Ok(());
        }
        let arguments = [gradient, input, weight, moments, target, rows, width, add];
        let name = columns.name("layer_norm_backward");
        io.machine.blocks(&name, self.warps(), 256, &arguments)
    }
}

impl LayerNorm {
    fn columns(&self) -> Columns {
        Columns::new(self.rows, self.width)
    }

    /// Packs of eight values of a row per lane, where its registers hold them.
    fn packs(&self) -> Option<usize> {
        let packs = self.width.div_ceil(256).next_power_of_two();
        (self.width.is_multiple_of(8) && packs <= 4).then_some(packs)
    }

    /// The parts of weight and bias into their gradients.
    fn add_up(&self, io: &Io) -> Result<(), CudaError> {
        let (count, width) = (self.columns().parts(), self.width);
        (0..2).try_for_each(|kind| {
            let from = io.scratch(PARTS) + (kind * width * 4) as u64;
            let target = io.parameter_gradient(kind);
            sum_parts(io.machine, from, target, count, width, 2 * width)
        })
    }

    /// A warp per row.
    fn warps(&self) -> (usize, usize) {
        (self.rows.div_ceil(8), 1)
    }
}
