//! Three products by cuDNN; bias, activation and pooling around them.

use super::super::Conv2d;
use super::result;
use crate::activation::Activation;
use crate::cuda::columns::Columns;
use crate::cuda::dnn::{Direction, Tensors};
use crate::cuda::io::{Io, Site};
use crate::cuda::{Argument, CudaError, Machine};
use crate::ops::max_pool::MaxPool;

/// Scratch: the weight in the library's order, then its gradient; sums by channel; the gradient before the activation, or a
/// pooling's index; a gradient that is to be added to another.
const WEIGHT: usize = 0;
const WEIGHT_GRADIENT: usize = 1;
const PARTS: usize = 2;
const BETWEEN: usize = 3;
const ADDED: usize = 4;

pub(super) struct Library<'a> {
    op: &'a Conv2d,
    pool: Option<&'a MaxPool>,
}

impl<'a> Library<'a> {
    pub fn of(op: &'a Conv2d, site: &Site<'a>) -> Self {
        let pool = site.pooling().map(|(_, pool)| pool);
        Self { op, pool }
    }

    pub fn scratch(&self, machine: &Machine, site: &Site) -> Result<Vec<usize>, CudaError> {
        machine.open_convolutions()?;
        let (op, value) = (self.op, machine.precision.number().bytes());
        let weight = op.patch() * op.filters * value;
        let between = match self.pool {
            Some(pool) => pool.values(),
            None if op.activation == Activation::None => 0,
            None => op.pixels() * op.filters * value,
        };
        let slot = site.node.input_gradients.first().copied().flatten();
        let added = slot.is_some_and(|slot| slot.accumulate);
        let images = op.batch * op.height * op.width * op.channels * value;
        let parts = self.columns().bytes(1);
        Ok(vec![
            weight,
            weight,
            parts,
            between,
            if added { images } else { 0 },
        ])
    }

    /// Over what the bias' gradient is summed.
    fn columns(&self) -> Columns {
        let pixels = self.pool.map_or(self.op.pixels(), MaxPool::pixels);
        Columns::new(pixels, self.op.filters)
    }

    fn weight_sizes(&self) -> [Argument; 3] {
        let places = self.op.window.size * self.op.window.size;
        [self.op.filters, self.op.channels, places].map(|value| Argument::Word(value as i32))
    }

    pub fn forward(&self, io: &Io) -> Result<(), CudaError> {
        let op = self.op;
        let [filters, channels, places] = self.weight_sizes();
        let weight = io.scratch(WEIGHT);
        let arguments = [
            Argument::Address(io.master(0)),
            Argument::Address(weight),
            filters,
            channels,
            places,
        ];
        io.machine
            .each("conv_weight", op.patch() * op.filters, &arguments)?;
        let output = io.output(0);
        let tensors = Tensors {
            images: io.input(0),
            weight,
            output,
        };
        io.machine.convolve(op, Direction::Forward, tensors)?;
        if let Some(pool) = self.pool {
            let places = (output, result(io).0, io.scratch(BETWEEN));
            let bias = op.bias.then(|| io.master(1));
            return pool.forward_on_card(io, places, bias, op.activation);
        }
        if !op.bias && op.activation == Activation::None {
            return Ok(());
        }
        let arguments = [
            Argument::Address(output),
            Argument::Address(if op.bias { io.master(1) } else { 0 }),
            Argument::Long(op.pixels() as i64),
            filters,
            Argument::Word(op.activation.code()),
        ];
        self.columns().launch(io.machine, "conv_finish", &arguments)
    }

    pub fn backward(&self, io: &Io) -> Result<(), CudaError> {
        let Some(output) = self.before(io)? else {
            return Ok(());
        };
        let op = self.op;
        if op.bias {
            self.columns()
                .add(io.machine, io.scratch(PARTS), io.parameter_gradient(1))?;
        }
        let tensors = Tensors {
            images: io.input(0),
            weight: io.scratch(WEIGHT_GRADIENT),
            output,
        };
        io.machine.convolve(op, Direction::Weight, tensors)?;
        let [filters, channels, places] = self.weight_sizes();
        let arguments = [
            Argument::Address(tensors.weight),
            Argument::Address(io.parameter_gradient(0)),
            filters,
            channels,
            places,
        ];
        io.machine
            .each("conv_weight_gradient", op.patch() * op.filters, &arguments)?;
        let Some((target, add)) = io.input_gradient(0) else {
            return Ok(());
        };
        let tensors = Tensors {
            images: if add { io.scratch(ADDED) } else { target },
            weight: io.scratch(WEIGHT),
            output,
        };
        io.machine.convolve(op, Direction::Input, tensors)?;
        if add {
            let count = op.batch * op.height * op.width * op.channels;
            let arguments = [
                Argument::Address(tensors.images),
                Argument::Address(target),
                Argument::Long(count as i64),
            ];
            io.machine.each("conv_add", count, &arguments)?;
        }
        Ok(())
    }

    /// The address of the gradient before bias and activation; its sums by channel go to the parts.
    fn before(&self, io: &Io) -> Result<Option<u64>, CudaError> {
        let (output, Some(gradient)) = result(io) else {
            return Ok(None);
        };
        let op = self.op;
        let (rows, filters) = (
            Argument::Long(op.pixels() as i64),
            Argument::Word(op.filters as i32),
        );
        let parts = Argument::Address(io.scratch(PARTS));
        if let Some(pool) = self.pool {
            let Some(target) = io.output_gradient(0) else {
                return Ok(None);
            };
            let places = (gradient, output, io.scratch(BETWEEN));
            let parts = Some(io.scratch(PARTS));
            pool.backward_on_card(io, places, (target, false), parts, op.activation)?;
            return Ok(Some(target));
        }
        if op.activation == Activation::None && !op.bias {
            return Ok(Some(gradient));
        }
        if op.activation == Activation::None {
            let arguments = [Argument::Address(gradient), parts, rows, filters];
            self.columns().launch(io.machine, "column_sums", &arguments)?;
            return Ok(Some(gradient));
        }
        let before = io.scratch(BETWEEN);
        let arguments = [
            Argument::Address(gradient),
            Argument::Address(output),
            Argument::Address(before),
            parts,
            rows,
            filters,
            Argument::Word(op.activation.code()),
        ];
        self.columns()
            .launch(io.machine, "before_activation", &arguments)?;
        Ok(Some(before))
    }
}
