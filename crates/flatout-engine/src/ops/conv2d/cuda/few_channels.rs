//! Images of few channels: kernels compiled for the one shape, see few_channels.cu.

use super::super::{Conv2d, Window};
use super::result;
use crate::activation::Activation;
use crate::cuda::columns::sum_parts;
use crate::cuda::io::{Io, Site};
use crate::cuda::{Argument, COMMON, CudaError, Machine};
use crate::ops::max_pool::MaxPool;

const KERNELS: &str = include_str!("../few_channels.cu");
const THREADS: usize = 256;
/// A filter's weights are kept in registers: three channels under a window of three, or one under a window of five.
const LARGEST_PATCH: usize = 27;
/// Output pixels of a tile, and the most values that a tile may read: a thread keeps its share of the next in registers.
const TILE: (usize, usize) = (8, 16);
const LARGEST_READ: usize = 4096;
/// Blocks a multiprocessor, in forward and backward.
const FORWARD_BLOCKS: usize = 4;
const BACKWARD_BLOCKS: usize = 2;

/// Scratch: which pixel of its window won; sums of each block.
const INDEX: usize = 0;
const PARTS: usize = 1;

pub(super) struct FewChannels<'a> {
    op: &'a Conv2d,
    pool: Option<&'a MaxPool>,
}

impl<'a> FewChannels<'a> {
    /// Where the shape allows it, and nobody asks for the gradient of the images.
    pub fn of(op: &'a Conv2d, site: &Site<'a>) -> Option<Self> {
        let pool = site.pooling().map(|(_, pool)| pool);
        let given = site.node.input_gradients.first().copied().flatten().is_none();
        (given && Self::fits(op, pool)).then_some(Self { op, pool })
    }

    fn fits(op: &Conv2d, pool: Option<&MaxPool>) -> bool {
        let pool = pool.map_or(1, |pool| pool.size);
        let lanes = op.filters.is_power_of_two() && (8..=256).contains(&op.filters);
        let side = |tile: usize| (tile * pool - 1) * op.window.stride + op.window.size;
        let read = side(TILE.0) * side(TILE.1) * op.channels;
        op.bias && lanes && op.patch() <= LARGEST_PATCH && read <= LARGEST_READ
    }

    fn pool_size(&self) -> usize {
        self.pool.map_or(1, |pool| pool.size)
    }

    /// Rows and columns of the output, pooled.
    fn output(&self) -> (usize, usize) {
        let size = self.pool_size();
        (self.op.output_height() / size, self.op.output_width() / size)
    }

    fn module(&self) -> String {
        let op = self.op;
        format!(
            "few-{}-{}-{}-{}-{}-{}-{}",
            op.channels,
            op.filters,
            op.window.size,
            op.window.stride,
            op.window.padding,
            self.pool_size(),
            op.activation.code()
        )
    }

    fn defines(&self) -> Vec<String> {
        let op = self.op;
        let vector = if op.patch() <= 12 { 4 } else { 2 };
        let sizes = [
            ("CHANNELS", op.channels),
            ("FILTERS", op.filters),
            ("SIZE", op.window.size),
            ("STRIDE", op.window.stride),
            ("PADDING", op.window.padding),
            ("POOL", self.pool_size()),
            ("ACTIVATION", op.activation.code() as usize),
            ("VECTOR", vector),
        ];
        sizes.map(|(name, value)| format!("{name}={value}")).into()
    }

    pub fn scratch(&self, machine: &Machine) -> Result<Vec<usize>, CudaError> {
        machine.load(&self.module(), &text(), &self.defines())?;
        let (rows, columns) = self.output();
        let index = if self.pool.is_some() {
            self.op.batch * rows * columns * self.op.filters
        } else {
            0
        };
        Ok(vec![index, self.parts(machine) * self.gradients() * 4])
    }

    /// Gradients of weight and bias together.
    fn gradients(&self) -> usize {
        self.op.filters * (self.op.patch() + 1)
    }

    fn parts(&self, machine: &Machine) -> usize {
        BACKWARD_BLOCKS * machine.device.multiprocessors as usize
    }

    fn sizes(&self) -> [Argument; 5] {
        let (rows, columns) = self.output();
        let word = |value: usize| Argument::Word(value as i32);
        let op = self.op;
        [
            Argument::Long(op.batch as i64),
            word(op.height),
            word(op.width),
            word(rows),
            word(columns),
        ]
    }

    pub fn forward(&self, io: &Io) -> Result<(), CudaError> {
        let given = [
            Argument::Address(io.input(0)),
            Argument::Address(io.master(0)),
            Argument::Address(io.master(1)),
            Argument::Address(result(io).0),
            Argument::Address(io.scratch(INDEX)),
        ];
        let blocks = FORWARD_BLOCKS * io.machine.device.multiprocessors as usize;
        self.launch(io, "few_forward", blocks, &[&given[..], &self.sizes()].concat())
    }

    pub fn backward(&self, io: &Io) -> Result<(), CudaError> {
        let (output, Some(gradient)) = result(io) else {
            return Ok(());
        };
        let parts = io.scratch(PARTS);
        let given = [
            Argument::Address(io.input(0)),
            Argument::Address(gradient),
            Argument::Address(output),
            Argument::Address(io.scratch(INDEX)),
            Argument::Address(parts),
        ];
        let (count, stride) = (self.parts(io.machine), self.gradients());
        self.launch(io, "few_backward", count, &[&given[..], &self.sizes()].concat())?;
        let weights = self.op.filters * self.op.patch();
        sum_parts(
            io.machine,
            parts,
            io.parameter_gradient(0),
            count,
            weights,
            stride,
        )?;
        let bias = parts + weights as u64 * 4;
        sum_parts(
            io.machine,
            bias,
            io.parameter_gradient(1),
            count,
            self.op.filters,
            stride,
        )
    }

    fn launch(&self, io: &Io, kernel: &str, blocks: usize, arguments: &[Argument]) -> Result<(), CudaError> {
        let function = io.machine.function(&self.module(), kernel)?;
        // SAFETY: the arguments are the kernel's, over buffers of the sizes that the plan and `scratch` gave them.
        unsafe { function.launch(io.machine.queue(), (blocks, 1), THREADS, 0, arguments) }
    }
}

fn text() -> String {
    COMMON.to_owned() + KERNELS
}

/// Some shapes, for tests without a card: grey and coloured images, with and without a pooling.
pub(crate) fn examples() -> Vec<(String, String, Vec<String>)> {
    let shapes = [
        (1, 32, 3, 1, 1, 2),
        (3, 16, 3, 1, 1, 2),
        (1, 64, 5, 2, 2, 1),
        (3, 64, 3, 2, 1, 1),
    ];
    let example = |(channels, filters, size, stride, padding, pool)| {
        let window = Window {
            size,
            stride,
            padding,
        };
        let op = Conv2d {
            batch: 8,
            height: 32,
            width: 32,
            channels,
            filters,
            window,
            bias: true,
            activation: Activation::Relu,
        };
        let pooling = MaxPool {
            batch: 8,
            height: op.output_height(),
            width: op.output_width(),
            channels: filters,
            size: pool,
        };
        let few = FewChannels {
            op: &op,
            pool: (pool > 1).then_some(&pooling),
        };
        (few.module(), text(), few.defines())
    };
    shapes.into_iter().map(example).collect()
}
