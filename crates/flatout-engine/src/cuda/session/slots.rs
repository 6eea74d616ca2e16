//! Batches on their way to the card: pinned memory that the card reads by itself while the host fills the next. Several may be
//! sent together, when steps are so short that starting each of them would cost a good part of it.

use crate::cuda::driver::{Block, Event, Pinned, Stream};
use crate::cuda::error::CudaError;

/// Steps that may be sent together, where a batch is small: indices, not values.
const TOGETHER: usize = 8;
const SMALL_BYTES: usize = 256 << 10;
/// Groups of them: enough that the host never waits for one to be read.
const GROUPS: usize = 4;

struct Group {
    memory: Pinned,
    sent: Event,
    used: bool,
}

pub(super) struct Slots {
    groups: Vec<Group>,
    current: usize,
    /// Batches of the current group that are complete.
    held: usize,
    /// Bytes of a batch.
    bytes: usize,
    together: usize,
    /// Where batches that were sent together wait on the card.
    staging: Block,
}

impl Slots {
    pub fn new(bytes: usize) -> Result<Self, CudaError> {
        let together = if bytes <= SMALL_BYTES { TOGETHER } else { 1 };
        let group = |_| {
            Ok(Group {
                memory: Pinned::new(together * bytes)?,
                sent: Event::new()?,
                used: false,
            })
        };
        Ok(Self {
            groups: (0..GROUPS).map(group).collect::<Result<_, CudaError>>()?,
            current: 0,
            held: 0,
            bytes,
            together,
            staging: Block::new(together * bytes)?,
        })
    }

    /// How many batches are sent together at most.
    pub fn together(&self) -> usize {
        self.together
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The batch that is being filled.
    pub fn filling(&mut self) -> &mut [u8] {
        let range = self.held * self.bytes..(self.held + 1) * self.bytes;
        &mut self.groups[self.current].memory.bytes_mut()[range]
    }

    /// A batch of the current group.
    pub fn batch(&self, number: usize) -> &[u8] {
        &self.groups[self.current].memory.bytes()[number * self.bytes..(number + 1) * self.bytes]
    }

    /// The batch is complete. The next one begins as a copy: what the caller does not set anew stays as it was.
    pub fn hold(&mut self) {
        let (from, to) = (self.held * self.bytes, (self.held + 1) * self.bytes);
        self.held += 1;
        if self.held < self.together {
            self.groups[self.current]
                .memory
                .bytes_mut()
                .copy_within(from..to, to);
        }
    }

    pub fn held(&self) -> usize {
        self.held
    }

    /// Where a batch of those sent together lies.
    pub fn staged(&self, number: usize) -> u64 {
        self.staging.address() + (number * self.bytes) as u64
    }

    /// Sends what is held: a single batch to `address`, more to the staging place. What the caller has filled since goes on in
    /// the next group.
    pub fn send(&mut self, stream: &Stream, address: u64) -> Result<(), CudaError> {
        let target = if self.held == 1 {
            address
        } else {
            self.staging.address()
        };
        let group = &mut self.groups[self.current];
        // SAFETY: a group is written again only after its event has been waited for.
        unsafe { stream.upload(target, group.memory.as_ptr(), self.held * self.bytes)? };
        group.sent.record(stream)?;
        group.used = true;
        self.go_on()
    }

    /// Begins the next group: the batches of this one have been sent, or copied by somebody who sends them.
    pub fn go_on(&mut self) -> Result<(), CudaError> {
        let next = (self.current + 1) % GROUPS;
        let Ok([group, following]) = self.groups.get_disjoint_mut([self.current, next]) else {
            return Ok(());
        };
        if following.used {
            following.sent.wait()?;
            following.used = false;
        }
        let filling = self.held.min(self.together - 1) * self.bytes;
        let kept = &group.memory.bytes_mut()[filling..filling + self.bytes];
        following.memory.bytes_mut()[..self.bytes].copy_from_slice(kept);
        (self.current, self.held) = (next, 0);
        Ok(())
    }
}
