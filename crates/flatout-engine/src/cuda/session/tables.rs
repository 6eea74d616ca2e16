//! Tables: onto the card where they fit, else streamed from the host.

use super::CudaSession;
use super::streaming::{Streaming, ask_for_large_pages};
use crate::EngineError;
use crate::cuda::error::CudaError;
use crate::cuda::memory::Memory;
use crate::session::Table;

/// What tables leave free on the card, for libraries and for plans that are made anew.
const RESERVE_BYTES: u64 = 1 << 30;

impl CudaSession {
    pub(super) fn attach_table(&mut self, name: &str, table: Table) -> Result<(), EngineError> {
        let id = table.place_in(&self.plan, name)?;
        let width = self.plan.buffer(id).len().max(1);
        self.check_table(id, &table)?;
        self.machine.device.bind()?;
        self.wait()?;
        // Recorded work holds the old table's address.
        self.graphs.clear();
        self.memory.detach(id);
        self.host_tables.remove(&id);
        let resident = match self.fits(&table)? || !self.can_stream(id) {
            true => self
                .memory
                .attach(id, width, &table, &self.machine)
                .map(|()| true),
            false => Ok(false),
        };
        // Somebody else may have taken what was free a moment ago.
        let resident = match resident {
            Err(CudaError::OutOfMemory { .. }) if self.can_stream(id) => false,
            other => other?,
        };
        if !resident {
            ask_for_large_pages(&table);
            self.memory.attach_streamed(id, width, &table);
            self.host_tables.insert(id, table);
        }
        let (together, bytes) = (self.slots.together(), self.slots.bytes());
        self.streaming = Streaming::new(&self.plan, &self.host_tables, together, bytes)?;
        Ok(())
    }

    /// Whether a table may go onto the card.
    fn fits(&self, table: &Table) -> Result<bool, EngineError> {
        let bytes = Memory::table_bytes_of(table, self.machine.precision.number()) as u64;
        let room = match self.table_budget_bytes {
            Some(budget) => budget.saturating_sub(self.memory.table_bytes()),
            None => self.machine.device.memory()?.0.saturating_sub(RESERVE_BYTES),
        };
        Ok(bytes <= room)
    }
}
