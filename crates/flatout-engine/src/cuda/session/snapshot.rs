//! Parameters and state on their way to the host: copied within the card behind the steps so far, which takes microseconds, then
//! carried over by a queue of their own while training goes on.

use super::CudaSession;
use crate::EngineError;
use crate::cuda::driver::{Block, Device, Event, Pinned, Stream};
use crate::cuda::error::CudaError;
use crate::plan::Role;
use crate::session::{KeptTensor, Readback, Snapshot};
use std::sync::{Arc, Mutex, PoisonError};

/// What one copy travels through; used again by the next one.
pub(super) struct Carrier {
    /// `None`: the card has no room for a copy. Then the next steps wait until the values have left.
    staging: Option<Block>,
    pinned: Pinned,
    copied: Event,
    arrived: Event,
    queue: Stream,
}

impl Carrier {
    fn new(bytes: usize) -> Result<Self, CudaError> {
        let staging = match Block::new(bytes) {
            Ok(block) => Some(block),
            Err(CudaError::OutOfMemory { .. }) => None,
            Err(error) => return Err(error),
        };
        Ok(Self {
            staging,
            pinned: Pinned::new(bytes)?,
            copied: Event::new()?,
            arrived: Event::new()?,
            queue: Stream::new(false)?,
        })
    }

    /// Brings stretches of the card's memory over, as they are behind what is in the queue now.
    fn fetch(&self, stream: &Stream, stretches: &[(u64, usize)]) -> Result<(), CudaError> {
        let mut offset = 0;
        for (address, length) in stretches {
            match &self.staging {
                Some(staging) => stream.copy(staging.address() + offset as u64, *address, *length)?,
                // SAFETY: the pinned memory has room for all of them and is read after `arrived`.
                None => unsafe {
                    let target = self.pinned.as_ptr().cast_mut().add(offset);
                    stream.fetch(target, *address, *length)?
                },
            }
            offset += length;
        }
        let Some(staging) = &self.staging else {
            return self.arrived.record(stream);
        };
        self.copied.record(stream)?;
        self.queue.wait_for(&self.copied)?;
        // SAFETY: the pinned memory is read after `arrived`, and the carrier lives as long as somebody waits for it.
        unsafe {
            self.queue
                .fetch(self.pinned.as_ptr().cast_mut(), staging.address(), offset)?
        };
        self.arrived.record(&self.queue)
    }
}

struct OnTheWay {
    device: Device,
    carrier: Arc<Mutex<Carrier>>,
    /// Name, shape, and where its bytes begin.
    tensors: Vec<(String, Vec<usize>, usize)>,
}

impl Readback<Vec<KeptTensor>> for OnTheWay {
    fn is_ready(&self) -> bool {
        let carrier = self.carrier.lock().unwrap_or_else(PoisonError::into_inner);
        self.device.bind().is_ok() && carrier.arrived.is_reached()
    }

    fn wait(self: Box<Self>) -> Result<Vec<KeptTensor>, EngineError> {
        self.device.bind()?;
        let carrier = self.carrier.lock().unwrap_or_else(PoisonError::into_inner);
        carrier.arrived.wait()?;
        let bytes = carrier.pinned.bytes();
        let tensor = |(name, shape, first): &(String, Vec<usize>, usize)| {
            let count: usize = shape.iter().product();
            let words = bytes[*first..first + 4 * count].chunks_exact(4);
            KeptTensor {
                name: name.clone(),
                shape: shape.clone(),
                values: words
                    .map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]]))
                    .collect(),
            }
        };
        Ok(self.tensors.iter().map(tensor).collect())
    }
}

impl CudaSession {
    pub(super) fn leave(&mut self) -> Result<Snapshot, EngineError> {
        self.machine.device.bind()?;
        self.flush()?;
        let mut stretches: Vec<(u64, usize)> = Vec::new();
        for block in std::iter::once(&self.memory.parameters).chain(&self.memory.moments) {
            stretches.push((block.address(), block.bytes()));
        }
        let mut tensors = Vec::new();
        for (number, buffer) in self.plan.buffers().iter().enumerate() {
            if !matches!(buffer.role, Role::Parameter | Role::State) {
                continue;
            }
            let (address, bytes) = (self.memory.places[number].address, buffer.len() * 4);
            let within = |(first, length): &(u64, usize)| {
                address >= *first && address + bytes as u64 <= first + *length as u64
            };
            if !stretches.iter().any(within) {
                stretches.push((address, bytes.next_multiple_of(16)));
            }
            let before = stretches.iter().take_while(|stretch| !within(stretch));
            let first = before.map(|(_, length)| length).sum::<usize>();
            let inside = stretches.iter().find(|stretch| within(stretch));
            let offset = inside.map_or(0, |(first, _)| (address - first) as usize);
            tensors.push((buffer.name.clone(), buffer.shape.clone(), first + offset));
        }
        let total = stretches.iter().map(|(_, length)| length).sum();
        let carrier = self.free_carrier(total)?;
        {
            let carrier = carrier.lock().unwrap_or_else(PoisonError::into_inner);
            carrier.fetch(&self.machine.stream, &stretches)?;
        }
        let device = self.machine.device.clone();
        Ok(Box::new(OnTheWay {
            device,
            carrier,
            tensors,
        }))
    }

    /// A carrier that nobody waits for, else a new one.
    fn free_carrier(&mut self, bytes: usize) -> Result<Arc<Mutex<Carrier>>, CudaError> {
        let free = self
            .carriers
            .iter()
            .find(|carrier| Arc::strong_count(carrier) == 1);
        if let Some(carrier) = free {
            return Ok(Arc::clone(carrier));
        }
        let carrier = Arc::new(Mutex::new(Carrier::new(bytes)?));
        self.carriers.push(Arc::clone(&carrier));
        Ok(carrier)
    }
}
