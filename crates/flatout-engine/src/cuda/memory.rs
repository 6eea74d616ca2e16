//! The buffers of a plan on the card, allocated once: parameters, gradients and moments each as one stretch, so that the
//! optimizer and the norm are one kernel over all of them; activations and their gradients in another.

use super::blas::Number;
use super::control::{Control, Results};
use super::driver::{Argument, Block, Stream};
use super::error::CudaError;
use super::machine::Machine;
use crate::plan::{Buffer, BufferId, DataType, Plan, Role};
use crate::session::Table;

/// Where one buffer lies.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    pub address: u64,
    /// The computing copy of a parameter; otherwise the same address.
    pub computing: u64,
    pub kind: Kind,
    /// Rows of a table.
    pub rows: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Kind {
    /// The precision of activations.
    #[default]
    Real,
    F32,
    I32,
    U8,
}

/// Tensors begin at multiples of this many bytes: the widest access of any kernel, and a cache line.
const ALIGNMENT: usize = 256;

/// What stands in the place of a streamed table's address.
const STREAMED: u64 = u64::MAX;

pub struct Memory {
    pub places: Vec<Place>,
    /// Values in each of the stretches below.
    pub trained_values: usize,
    pub parameters: Block,
    pub computing: Option<Block>,
    pub gradients: Block,
    pub moments: Vec<Block>,
    /// Control, then all inputs: one copy a step fills it.
    pub inputs: Block,
    pub results: Block,
    _others: Block,
    tables: Vec<Option<Block>>,
}

/// Values that are rounded on the card at a time.
const ROUNDED: usize = 16 << 20;

/// A table of f32 in the precision of activations.
fn rounded(values: &[f32], machine: &Machine) -> Result<Block, CudaError> {
    let bytes = machine.precision.number().bytes();
    let (block, staging) = (
        Block::new(values.len() * bytes)?,
        Block::new(values.len().min(ROUNDED) * 4)?,
    );
    for (number, part) in values.chunks(ROUNDED).enumerate() {
        machine.stream.write(staging.address(), part)?;
        let arguments = [
            Argument::Address(staging.address()),
            Argument::Address(block.address() + (number * ROUNDED * bytes) as u64),
            Argument::Long(part.len() as i64),
        ];
        machine.each("convert", part.len(), &arguments)?;
    }
    machine.stream.wait()?;
    Ok(block)
}

fn aligned(bytes: usize) -> usize {
    bytes.div_ceil(ALIGNMENT) * ALIGNMENT
}

impl Memory {
    pub fn new(plan: &Plan, number: Number, stream: &Stream) -> Result<Self, CudaError> {
        let buffers = plan.buffers();
        let mut places = vec![Place::default(); buffers.len()];
        let is_parameter = |buffer: &Buffer| buffer.role == Role::Parameter;
        let trained_values = buffers
            .iter()
            .filter(|buffer| is_parameter(buffer))
            .map(|b| aligned(b.len() * 4) / 4)
            .sum();
        let (parameters, gradients) = (Block::new(trained_values * 4)?, Block::new(trained_values * 4)?);
        let computing = (number != Number::F32)
            .then(|| Block::new(trained_values * number.bytes()))
            .transpose()?;
        let names = plan.optimizer().moment_names().len();
        let count = if plan.trained().is_empty() { 0 } else { names };
        let moments = (0..count)
            .map(|_| Block::new(trained_values * 4))
            .collect::<Result<Vec<_>, _>>()?;
        let mut offset = 0;
        for (index, buffer) in buffers
            .iter()
            .enumerate()
            .filter(|(_, buffer)| is_parameter(buffer))
        {
            let address = parameters.address() + offset as u64 * 4;
            let shadow = computing.as_ref().map_or(address, |block| {
                block.address() + (offset * number.bytes()) as u64
            });
            places[index] = Place {
                address,
                computing: shadow,
                kind: Kind::F32,
                rows: 0,
            };
            if let Some(trained) = plan
                .trained()
                .iter()
                .find(|trained| trained.parameter.index() == index)
            {
                let at = |block: &Block| {
                    let address = block.address() + offset as u64 * 4;
                    Place {
                        address,
                        computing: address,
                        kind: Kind::F32,
                        rows: 0,
                    }
                };
                places[trained.gradient.index()] = at(&gradients);
                for (moment, block) in trained.moments.iter().zip(&moments) {
                    places[moment.index()] = at(block);
                }
            }
            offset += aligned(buffer.len() * 4) / 4;
        }
        let (inputs, others) = Self::rest(plan, number, &mut places)?;
        for block in [&parameters, &gradients, &inputs, &others]
            .into_iter()
            .chain(&moments)
        {
            stream.clear(block.address(), block.bytes())?;
        }
        let results = Block::new(size_of::<Results>())?;
        stream.clear(results.address(), results.bytes())?;
        stream.wait()?;
        Ok(Self {
            tables: buffers.iter().map(|_| None).collect(),
            places,
            trained_values,
            parameters,
            computing,
            gradients,
            moments,
            inputs,
            results,
            _others: others,
        })
    }

    /// Inputs behind the control block; activations, their gradients and other state in a block of their own.
    fn rest(plan: &Plan, number: Number, places: &mut [Place]) -> Result<(Block, Block), CudaError> {
        let kind = |id: usize, buffer: &Buffer| match buffer.data_type {
            DataType::I32 => Kind::I32,
            DataType::U8 => Kind::U8,
            DataType::Real if buffer.role == Role::State || plan.loss().map(BufferId::index) == Some(id) => {
                Kind::F32
            }
            DataType::Real => Kind::Real,
        };
        let bytes = |kind: Kind| match kind {
            Kind::Real => number.bytes(),
            Kind::F32 | Kind::I32 => 4,
            Kind::U8 => 1,
        };
        let mut sizes = [aligned(Control::BYTES), 0];
        let mut found = Vec::new();
        for (index, buffer) in plan.buffers().iter().enumerate() {
            if places[index].address != 0 || buffer.role == Role::Table {
                continue;
            }
            let which = usize::from(buffer.role != Role::Input);
            let kind = kind(index, buffer);
            found.push((index, which, sizes[which], kind));
            sizes[which] += aligned(buffer.len() * bytes(kind));
        }
        let blocks = (Block::new(sizes[0])?, Block::new(sizes[1])?);
        for (index, which, offset, kind) in found {
            let block = if which == 0 { &blocks.0 } else { &blocks.1 };
            let address = block.address() + offset as u64;
            places[index] = Place {
                address,
                computing: address,
                kind,
                rows: 0,
            };
        }
        Ok(blocks)
    }

    pub fn place(&self, id: BufferId) -> Place {
        self.places[id.index()]
    }

    /// Forgets a table: two of them might not fit.
    pub fn detach(&mut self, id: BufferId) {
        self.tables[id.index()] = None;
        self.places[id.index()] = Place::default();
    }

    /// A table that stays with the host: only its kind and length are known here.
    pub fn attach_streamed(&mut self, id: BufferId, width: usize, table: &Table) {
        let kind = match table {
            Table::F32(_) => Kind::F32,
            Table::I32(_) => Kind::I32,
            Table::U8(_) => Kind::U8,
        };
        // No address, but not "never attached" either; its gathers read the stages.
        self.places[id.index()] = Place {
            address: STREAMED,
            computing: STREAMED,
            kind,
            rows: table.len() / width.max(1),
        };
    }

    /// What a table takes on the card: numbers are kept in the precision of activations, which is what a gather makes of them.
    pub fn table_bytes_of(table: &Table, number: Number) -> usize {
        let value_bytes = match table {
            Table::F32(_) => number.bytes(),
            _ => table.value_bytes(),
        };
        table.len() * value_bytes
    }

    /// Copies a table onto the card.
    pub fn attach(
        &mut self,
        id: BufferId,
        width: usize,
        table: &Table,
        machine: &Machine,
    ) -> Result<(), CudaError> {
        let stream = &machine.stream;
        fn copy<T: Copy>(values: &[T], stream: &Stream) -> Result<Block, CudaError> {
            let block = Block::new(size_of_val(values))?;
            stream.write(block.address(), values)?;
            Ok(block)
        }
        let (block, kind) = match table {
            Table::F32(values) if machine.precision.number() == Number::F32 => {
                (copy((**values).as_ref(), stream)?, Kind::F32)
            }
            Table::F32(values) => (rounded((**values).as_ref(), machine)?, Kind::Real),
            Table::I32(values) => (copy((**values).as_ref(), stream)?, Kind::I32),
            Table::U8(values) => (copy((**values).as_ref(), stream)?, Kind::U8),
        };
        let address = block.address();
        self.places[id.index()] = Place {
            address,
            computing: address,
            kind,
            rows: table.len() / width.max(1),
        };
        self.tables[id.index()] = Some(block);
        Ok(())
    }

    /// What resident tables take.
    pub fn table_bytes(&self) -> u64 {
        self.tables
            .iter()
            .flatten()
            .map(|block| block.bytes() as u64)
            .sum()
    }

    pub fn bytes(&self) -> u64 {
        let blocks = [
            &self.parameters,
            &self.gradients,
            &self.inputs,
            &self._others,
            &self.results,
        ];
        let all = blocks.into_iter().chain(&self.computing).chain(&self.moments);
        all.map(|block| block.bytes() as u64).sum()
    }
}
