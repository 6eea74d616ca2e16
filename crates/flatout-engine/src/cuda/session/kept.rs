//! Outputs of evaluations, kept on the card one behind the other until somebody asks: an evaluation then never waits.

use super::CudaSession;
use crate::EngineError;
use crate::cuda::blas::Number;
use crate::cuda::driver::Block;
use crate::cuda::memory::Kind;
use crate::plan::BufferId;

/// The least that is allocated: a million predictions of two bytes.
const LEAST_BYTES: usize = 2 << 20;

#[derive(Default)]
pub(super) struct Kept {
    block: Option<Block>,
    bytes: usize,
    /// What the values are; the same for all that is kept at a time.
    number: Option<Number>,
}

impl Kept {
    /// Where what is kept lies, its bytes and what they are; what comes next begins anew.
    pub(super) fn take(&mut self) -> (u64, usize, Number) {
        let address = self.block.as_ref().map_or(0, Block::address);
        let number = self.number.take().unwrap_or(Number::F32);
        (address, std::mem::take(&mut self.bytes), number)
    }
}

impl CudaSession {
    /// Puts the valid rows of an output behind what is kept.
    pub(super) fn keep(&mut self, id: BufferId) -> Result<(), EngineError> {
        let place = self.memory.place(id);
        let number = match place.kind {
            Kind::Real => self.machine.precision.number(),
            _ => Number::F32,
        };
        let width = self.plan.buffer(id).len() / self.plan.batch().max(1);
        let bytes = self.valid_rows * width * number.bytes();
        let end = self.kept.bytes + bytes;
        let stream = &self.machine.stream;
        if self.kept.block.as_ref().is_none_or(|block| block.bytes() < end) {
            let larger = Block::new((2 * end).max(LEAST_BYTES))?;
            if let Some(block) = &self.kept.block {
                stream.copy(larger.address(), block.address(), self.kept.bytes)?;
                stream.wait()?;
            }
            self.kept.block = Some(larger);
        }
        if let Some(block) = &self.kept.block {
            stream.copy(block.address() + self.kept.bytes as u64, place.address, bytes)?;
        }
        self.kept.bytes = end;
        self.kept.number = Some(number);
        Ok(())
    }
}
