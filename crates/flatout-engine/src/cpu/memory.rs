//! The buffers of a plan in this machine's memory, allocated once. Borrowing is checked at run time: an operation that read
//! and wrote one buffer at once would be a mistake in the plan and stops at once.

use super::aligned::Aligned;
use super::guarded::{Guarded, Reading, Writing};
use super::real::Real;
use crate::EngineError;
use crate::plan::{Buffer, BufferId, DataType, Plan, Role};
use crate::session::Table;

pub enum Slot<T: Real> {
    Real(Aligned<T>),
    Index(Aligned<i32>),
    Table(Option<Table>),
}

pub struct Memory<T: Real> {
    slots: Vec<Guarded<Slot<T>>>,
}

impl<T: Real> Memory<T> {
    /// Allocates every buffer and draws the parameters from the seed.
    pub fn new(plan: &Plan, seed: u64) -> Result<Self, EngineError> {
        let allocated = plan.buffers().iter().enumerate().map(|(number, buffer)| {
            let slot = allocate(buffer)?;
            Ok(Guarded::new(initialised(slot, buffer, seed, number as u64)))
        });
        Ok(Self {
            slots: allocated.collect::<Result<_, EngineError>>()?,
        })
    }

    /// Panics where the plan's types disagree with the operation, which compiling the plan excludes.
    pub fn read(&self, id: BufferId) -> Reading<'_, [T]> {
        self.slots[id.index()].borrow().map(|slot| match slot {
            Slot::Real(values) => &**values,
            _ => unreachable!("buffer {} holds no real numbers", id.index()),
        })
    }

    pub fn write(&self, id: BufferId) -> Writing<'_, [T]> {
        self.slots[id.index()].borrow_mut().map(|slot| match slot {
            Slot::Real(values) => &mut **values,
            _ => unreachable!("buffer {} holds no real numbers", id.index()),
        })
    }

    pub fn read_indices(&self, id: BufferId) -> Reading<'_, [i32]> {
        self.slots[id.index()].borrow().map(|slot| match slot {
            Slot::Index(values) => &**values,
            _ => unreachable!("buffer {} holds no indices", id.index()),
        })
    }

    pub fn write_indices(&self, id: BufferId) -> Writing<'_, [i32]> {
        self.slots[id.index()].borrow_mut().map(|slot| match slot {
            Slot::Index(values) => &mut **values,
            _ => unreachable!("buffer {} holds no indices", id.index()),
        })
    }

    /// The table attached to a buffer, if any.
    pub fn table(&self, id: BufferId) -> Option<Table> {
        match &*self.slots[id.index()].borrow() {
            Slot::Table(table) => table.clone(),
            _ => None,
        }
    }

    pub fn attach(&self, id: BufferId, table: Table) {
        *self.slots[id.index()].borrow_mut() = Slot::Table(Some(table));
    }
}

fn allocate<T: Real>(buffer: &Buffer) -> Result<Slot<T>, EngineError> {
    if buffer.role == Role::Table {
        return Ok(Slot::Table(None));
    }
    let length = buffer
        .shape
        .iter()
        .try_fold(1usize, |length, &size| length.checked_mul(size))
        .ok_or(EngineError::OutOfMemory {
            wanted_bytes: u64::MAX,
        })?;
    Ok(match buffer.data_type {
        DataType::Real => Slot::Real(Aligned::zeroed(length)?),
        DataType::I32 | DataType::U8 => Slot::Index(Aligned::zeroed(length)?),
    })
}

fn initialised<T: Real>(mut slot: Slot<T>, buffer: &Buffer, seed: u64, number: u64) -> Slot<T> {
    if let (Slot::Real(values), Role::Parameter | Role::State) = (&mut slot, buffer.role) {
        for (index, value) in values.iter_mut().enumerate() {
            *value = T::of(buffer.initialiser.value(seed, number, index as u64));
        }
    }
    slot
}
