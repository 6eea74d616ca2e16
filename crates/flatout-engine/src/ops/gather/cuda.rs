//! One kernel: the table stays on the card, only indices come in; pictures are normalised, flipped and shifted on the way.

use super::pictures::PURPOSE;
use super::{Gather, Pictures};
use crate::cuda::io::{CudaOperation, Io};
use crate::cuda::{Argument, CudaError, Kind};

impl CudaOperation for Gather {
    fn kernels() -> &'static str {
        include_str!("gather.cu")
    }

    fn forward(&self, io: &Io) -> Result<(), CudaError> {
        let table = io.table(0);
        // Rows that were carried over lie sample by sample: no index is needed.
        let (address, index, rows) = match io.streamed {
            Some(rows) => (rows, 0, self.batch * self.length()),
            None => (table.address, io.input(1), table.rows),
        };
        if let (Some(pictures), true) = (&self.pictures, io.training) {
            return self.moved(io, pictures, address, index == 0);
        }
        let mut arguments = vec![
            Argument::Address(address),
            Argument::Address(index),
            Argument::Address(io.output(0)),
            Argument::Long(rows as i64),
            Argument::Word(self.batch as i32),
            Argument::Word(self.width as i32),
            Argument::Word(self.length() as i32),
            io.results(),
        ];
        let kernel = match table.kind {
            Kind::I32 => "gather_i32",
            Kind::U8 => {
                arguments.extend([
                    Argument::Float(self.scale as f32),
                    Argument::Float(self.shift as f32),
                ]);
                "gather_u8"
            }
            Kind::F32 => "gather_f32",
            Kind::Real => "gather_real",
        };
        io.machine
            .each(kernel, self.length() * self.batch * self.width, &arguments)
    }

    fn backward(&self, _io: &Io) -> Result<(), CudaError> {
        Ok(())
    }
}

impl Gather {
    /// Pictures that change at random. `carried`: they lie in the batch's order already.
    fn moved(&self, io: &Io, pictures: &Pictures, address: u64, carried: bool) -> Result<(), CudaError> {
        let arguments = [
            Argument::Address(address),
            Argument::Address(io.input(1)),
            Argument::Address(io.output(0)),
            Argument::Long(io.table(0).rows as i64),
            Argument::Word(self.batch as i32),
            Argument::Word(pictures.height as i32),
            Argument::Word(pictures.width as i32),
            Argument::Word(pictures.channels as i32),
            io.results(),
            Argument::Float(self.scale as f32),
            Argument::Float(self.shift as f32),
            Argument::Word(i32::from(pictures.augment.flip)),
            Argument::Word(pictures.augment.padding as i32),
            Argument::Word(i32::from(carried)),
            Argument::Long(PURPOSE as i64),
            io.control(),
        ];
        io.machine
            .each("gather_pictures", self.batch * self.width, &arguments)
    }
}
