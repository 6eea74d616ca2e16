//! Scores are never written: backward makes them again out of the rows' sums. Short sequences in 16 bits take tensor cores, one block
//! per sample and head; everything else a warp per row.

use super::Attention;
use crate::cuda::io::{CudaOperation, Io, Site};
use crate::cuda::{Argument, CudaError, Machine, Number};

/// Scratch: the logarithm of each row's sum of exponentials; the product of output and gradient of each row.
const SUMS: usize = 0;
const ALONG: usize = 1;

/// Steps whose queries, keys, values and gradients fit into the shared memory of every GPU since Ampere.
const MOST_STEPS: usize = 128;
/// Heads that the tensor cores' kernels are compiled for.
const SIZES: [usize; 3] = [16, 32, 64];
/// Warps of a block where a warp makes a row; a power of two so that halving it reaches one.
const WARPS: usize = 4;
/// Shared memory that a block may take without being asked for.
const SHARED_BYTES: usize = 48 << 10;

impl CudaOperation for Attention {
    fn kernels() -> &'static str {
        include_str!("attention.cu")
    }

    fn scratch(&self, machine: &Machine, _site: &Site) -> Result<Vec<usize>, CudaError> {
        if self.tiles(machine) {
            // The most that any sequence takes: a plan may have several lengths.
            for (direction, matrices) in [("forward", 3), ("backward", 4)] {
                let most = self.tile_bytes(matrices, MOST_STEPS);
                machine.allow_shared(&self.tile_kernel(direction), most)?;
            }
        }
        Ok(vec![4 * self.rows(), 4 * self.rows()])
    }

    fn forward(&self, io: &Io) -> Result<(), CudaError> {
        let given = [
            Argument::Address(io.input(0)),
            Argument::Address(io.output(0)),
            Argument::Address(io.scratch(SUMS)),
        ];
        if self.tiles(io.machine) {
            let arguments = [&given[..], &self.sizes(false)].concat();
            return self.launch_tiles(io, "forward", 3, &arguments);
        }
        let arguments = [&given[..], &self.sizes(true)].concat();
        self.launch_rows(io, "attention_forward", self.size + self.steps, &arguments)
    }

    fn backward(&self, io: &Io) -> Result<(), CudaError> {
        let (Some(gradient), Some((target, add))) = (io.output_gradient(0), io.input_gradient(0)) else {
            return Ok(());
        };
        let (qkv, output) = (Argument::Address(io.input(0)), Argument::Address(io.output(0)));
        let (gradient, target) = (Argument::Address(gradient), Argument::Address(target));
        let (sums, along) = (
            Argument::Address(io.scratch(SUMS)),
            Argument::Address(io.scratch(ALONG)),
        );
        let add = [Argument::Word(i32::from(add))];
        if self.tiles(io.machine) {
            let given = [qkv, output, gradient, sums, target];
            let arguments = [&given[..], &self.sizes(false), &add].concat();
            return self.launch_tiles(io, "backward", 4, &arguments);
        }
        let given = [qkv, output, gradient, sums, along, target];
        let arguments = [&given[..], &self.sizes(true), &add].concat();
        self.launch_rows(io, "attention_queries", 2 * self.size + self.steps, &arguments)?;
        let given = [qkv, gradient, sums, along, target];
        let arguments = [&given[..], &self.sizes(true), &add].concat();
        self.launch_rows(io, "attention_keys", 2 * (self.size + self.steps), &arguments)
    }
}

impl Attention {
    /// Whether the tensor cores take it.
    fn tiles(&self, machine: &Machine) -> bool {
        let number = machine.precision.number() != Number::F32;
        // The tiles' instructions came with Ampere.
        number && machine.architecture() >= 80 && self.steps <= MOST_STEPS && SIZES.contains(&self.size)
    }

    fn tile_kernel(&self, direction: &str) -> String {
        format!("attention_{direction}_tiles_{}", self.size)
    }

    /// Rows of so many matrices, padded to whole chunks of 64; in backward two numbers more per row.
    fn tile_bytes(&self, matrices: usize, steps: usize) -> usize {
        let rows = steps.div_ceil(64) * 64;
        rows * (matrices * (self.size + 8) * 2 + 8)
    }

    fn sizes(&self, with_size: bool) -> Vec<Argument> {
        let mut sizes: Vec<Argument> = [self.steps, self.batch, self.heads]
            .map(|value| Argument::Word(value as i32))
            .to_vec();
        if with_size {
            sizes.push(Argument::Word(self.size as i32));
        }
        sizes.push(Argument::Float(self.scale() as f32));
        sizes
    }

    fn launch_tiles(
        &self,
        io: &Io,
        direction: &str,
        matrices: usize,
        arguments: &[Argument],
    ) -> Result<(), CudaError> {
        let (grid, threads) = ((self.batch * self.heads, 1), self.steps.div_ceil(16) * 32);
        let shared = self.tile_bytes(matrices, self.steps);
        io.machine
            .blocks_with_shared(&self.tile_kernel(direction), grid, threads, shared, arguments)
    }

    /// A warp per row, each with so many numbers in shared memory.
    fn launch_rows(
        &self,
        io: &Io,
        kernel: &str,
        numbers: usize,
        arguments: &[Argument],
    ) -> Result<(), CudaError> {
        let mut warps = WARPS;
        while warps > 1 && warps * numbers * 4 > SHARED_BYTES {
            warps /= 2;
        }
        let grid = (self.rows().div_ceil(warps), 1);
        io.machine
            .blocks_with_shared(kernel, grid, warps * 32, warps * numbers * 4, arguments)
    }
}
