//! What LSTM and GRU share on the card beside the products; the kernels lie with the LSTM's.

mod choice;
mod layout;
mod persistent;
mod products;
mod wave;

use super::Layers;
use crate::cuda::io::Io;
use crate::cuda::{Argument, CudaError};
pub use choice::{Way, force_recurrence};
pub(crate) use layout::Layout;
pub(crate) use persistent::{RECURRENCE, variants as persistent_variants};
use std::ops::Range;

impl Layers {
    /// The first layer's input with the constant beside every step, rows of `stride` values.
    pub(crate) fn join_on_card(&self, io: &Io, target: u64, stride: usize) -> Result<(), CudaError> {
        let rows = self.steps * self.batch;
        let constant = if self.constants > 0 { io.input(1) } else { 0 };
        let arguments = [
            Argument::Address(io.input(0)),
            Argument::Address(constant),
            Argument::Address(target),
            Argument::Long(rows as i64),
            Argument::Word(self.batch as i32),
            Argument::Word(self.inputs as i32),
            Argument::Word(self.constants as i32),
            Argument::Word(stride as i32),
        ];
        io.machine.each("lstm_join", rows * stride, &arguments)
    }

    /// Dropout between layers, over some rows of `padded` values: the addresses are those of the first of them.
    pub(crate) fn dropout_on_card(
        &self,
        io: &Io,
        layer: usize,
        (source, target): (u64, u64),
        rows: Range<usize>,
        padded: usize,
    ) -> Result<(), CudaError> {
        let [purpose, threshold, scale] = io.dropout(layer as u64, self.stack.dropout);
        let arguments = [
            Argument::Address(source),
            Argument::Address(target),
            Argument::Long(rows.len() as i64),
            Argument::Long(rows.start as i64),
            Argument::Word(self.stack.hidden as i32),
            Argument::Word(padded as i32),
            purpose,
            threshold,
            scale,
            io.control(),
        ];
        io.machine.each("lstm_dropout", rows.len() * padded, &arguments)
    }

    /// Σ over time of `[steps, batch, columns]`.
    pub(crate) fn sum_time_on_card(
        &self,
        io: &Io,
        source: u64,
        target: u64,
        columns: usize,
    ) -> Result<(), CudaError> {
        let arguments = [
            Argument::Address(source),
            Argument::Address(target),
            Argument::Word(self.steps as i32),
            Argument::Long((self.batch * columns) as i64),
        ];
        io.machine.each("lstm_sum_time", self.batch * columns, &arguments)
    }
}
