//! Batches on their way to the card: pinned memory that the card reads by itself while the host fills the next.

use crate::cuda::driver::{Event, Pinned, Stream};
use crate::cuda::error::CudaError;

/// Batches that may be on their way at once.
const SLOTS: usize = 8;

struct Slot {
    memory: Pinned,
    sent: Event,
    used: bool,
}

pub(super) struct Slots {
    slots: Vec<Slot>,
    current: usize,
}

impl Slots {
    pub fn new(bytes: usize) -> Result<Self, CudaError> {
        let slot = |_| {
            Ok(Slot {
                memory: Pinned::new(bytes)?,
                sent: Event::new()?,
                used: false,
            })
        };
        Ok(Self {
            slots: (0..SLOTS).map(slot).collect::<Result<_, CudaError>>()?,
            current: 0,
        })
    }

    /// The batch that is being filled.
    pub fn filling(&mut self) -> &mut [u8] {
        self.slots[self.current].memory.bytes_mut()
    }

    /// Sends the batch to `address` and goes on to the next slot, which begins as a copy: what the caller does not set anew
    /// stays as it was.
    pub fn send(&mut self, stream: &Stream, address: u64) -> Result<(), CudaError> {
        let next = (self.current + 1) % SLOTS;
        let Ok([slot, following]) = self.slots.get_disjoint_mut([self.current, next]) else {
            return Ok(());
        };
        let bytes = slot.memory.bytes_mut().len();
        // SAFETY: a slot is written again only after its event has been waited for.
        unsafe { stream.upload(address, slot.memory.as_ptr(), bytes)? };
        slot.sent.record(stream)?;
        slot.used = true;
        if following.used {
            following.sent.wait()?;
        }
        following
            .memory
            .bytes_mut()
            .copy_from_slice(slot.memory.bytes_mut());
        self.current = next;
        Ok(())
    }
}
