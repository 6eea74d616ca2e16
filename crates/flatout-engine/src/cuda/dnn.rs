//! Convolutions by cuDNN, channels-last, through its graph interface. Each shape's engine is chosen once by timing what the
//! library proposes, and the choice is kept on disk for this card and this version; nothing is chosen inside a step.

mod api;
mod choice;
mod graph;

use super::blas::Number;
use super::driver::{Block, Stream};
use super::error::CudaError;
use super::libraries::Found;
use crate::ops::conv2d::Conv2d;
use api::{Api, Handle};
use graph::Plan;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Which of a convolution's three products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Direction {
    /// images, weight → output.
    Forward,
    /// images, output gradient → weight gradient.
    Weight,
    /// weight, output gradient → image gradient.
    Input,
}

/// Everything that an engine depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    direction: Direction,
    number: Number,
    tf32: bool,
    /// Batch, height, width, channels.
    images: [usize; 4],
    filters: usize,
    size: usize,
    stride: usize,
    padding: usize,
    output: [usize; 2],
}

/// Images, weight in the order filter, row, column, channel, and output; or their gradients.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tensors {
    pub images: u64,
    pub weight: u64,
    pub output: u64,
}

/// Memory that engines may use: allocated once, so that recorded graphs stay true.
const WORKSPACE_BYTES: usize = 256 << 20;

pub(crate) struct Dnn {
    api: Api,
    handle: Handle,
    workspace: Block,
    card: String,
    number: Number,
    tf32: bool,
    tuning: Cell<bool>,
    plans: RefCell<HashMap<Key, Plan>>,
}

impl Dnn {
    /// Opens the library for a card's queue.
    pub fn open(stream: &Stream, card: &str, number: Number, tf32: bool) -> Result<(Self, Found), CudaError> {
        let (api, found) = Api::open()?;
        let handle = api.create(stream)?;
        let dnn = Self {
            api,
            handle,
            workspace: Block::new(WORKSPACE_BYTES)?,
            card: card.to_owned(),
            number,
            tf32,
            tuning: Cell::new(false),
            plans: RefCell::default(),
        };
        Ok((dnn, found))
    }

    pub fn tune(&self, on: bool) {
        self.tuning.set(on);
    }

    pub fn run(
        &self,
        stream: &Stream,
        op: &Conv2d,
        direction: Direction,
        tensors: Tensors,
    ) -> Result<(), CudaError> {
        let key = Key {
            direction,
            number: self.number,
            tf32: self.tf32,
            images: [op.batch, op.height, op.width, op.channels],
            filters: op.filters,
            size: op.window.size,
            stride: op.window.stride,
            padding: op.window.padding,
            output: [op.output_height(), op.output_width()],
        };
        let mut plans = self.plans.borrow_mut();
        let plan = match plans.entry(key) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(self.choose(stream, &key, tensors)?),
        };
        self.execute(plan, tensors)
    }

    fn execute(&self, plan: &Plan, tensors: Tensors) -> Result<(), CudaError> {
        plan.execute(&self.api, &self.handle, tensors, self.workspace.address())
    }
}
