//! Numbers that are asked for behind the steps so far and read when they are here: asking never waits, and the card goes on.

use super::CudaSession;
use crate::EngineError;
use crate::cuda::blas::Number;
use crate::cuda::control::Results;
use crate::cuda::driver::{Device, Event, Pinned};
use crate::cuda::error::CudaError;
use crate::cuda::half;
use crate::session::{Loss, Readback};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where an answer arrives; used again by a later one.
pub(super) struct Reply {
    pinned: Pinned,
    arrived: Event,
}

/// Makes an answer of its bytes.
type Read<T> = Box<dyn Fn(&[u8]) -> T + Send>;

/// An answer on its way: how its bytes are read when they are here.
struct Asked<T> {
    device: Device,
    reply: Arc<Mutex<Reply>>,
    read: Read<T>,
}

impl<T> Asked<T> {
    fn reply(&self) -> MutexGuard<'_, Reply> {
        self.reply.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Readback<T> for Asked<T> {
    fn is_ready(&self) -> bool {
        self.device.bind().is_ok() && self.reply().arrived.is_reached()
    }

    fn wait(self: Box<Self>) -> Result<T, EngineError> {
        self.device.bind()?;
        let reply = self.reply();
        reply.arrived.wait()?;
        Ok((self.read)(reply.pinned.bytes()))
    }
}

impl CudaSession {
    /// The running sum of the training (0) or evaluation (1) loss.
    pub(super) fn ask_sum(&mut self, which: usize) -> Result<Box<dyn Readback<Loss>>, EngineError> {
        let address = self.memory.results.address();
        let read = move |bytes: &[u8]| {
            let results = Results::from_bytes(bytes);
            Loss {
                sum: results.loss[which],
                rows: results.rows[which] as u64,
                first_bad_update: Some(results.first_bad).filter(|update| *update > 0),
            }
        };
        self.ask(address, size_of::<Results>(), Box::new(read))
    }

    /// The mean since the last call; resets the sum.
    pub(super) fn take_mean(&mut self, which: usize) -> Result<Option<f64>, EngineError> {
        let asked = self.ask_sum(which)?;
        self.set_sum(which, 0.0, 0)?;
        let Loss { sum, rows, .. } = asked.wait()?;
        Ok((rows > 0).then(|| sum / rows as f64))
    }

    /// Sets a running sum after the steps so far. Waits for the device only where the sum is not zero.
    pub(super) fn set_sum(&mut self, which: usize, sum: f64, rows: u64) -> Result<(), EngineError> {
        self.machine.device.bind()?;
        self.flush()?;
        let address = self.memory.results.address();
        for (index, value) in [(which, sum), (2 + which, rows as f64)] {
            let target = address + 8 * index as u64;
            if value == 0.0 {
                self.machine.stream.clear(target, 8)?;
            } else {
                self.machine.stream.write(target, &[value])?;
            }
        }
        Ok(())
    }

    /// What evaluations have kept; the next ones begin anew.
    pub(super) fn ask_for_kept(&mut self) -> Result<Box<dyn Readback<Vec<f32>>>, EngineError> {
        let (address, bytes, number) = self.kept.take();
        let read = move |all: &[u8]| match number {
            Number::F32 => all[..bytes]
                .chunks_exact(4)
                .map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]]))
                .collect(),
            half => all[..bytes]
                .chunks_exact(2)
                .map(|word| half::to_f32(u16::from_le_bytes([word[0], word[1]]), half))
                .collect(),
        };
        self.ask(address, bytes, Box::new(read))
    }

    fn ask<T: 'static>(
        &mut self,
        address: u64,
        bytes: usize,
        read: Read<T>,
    ) -> Result<Box<dyn Readback<T>>, EngineError> {
        self.machine.device.bind()?;
        self.flush()?;
        let reply = self.free_reply(bytes)?;
        {
            let reply = reply.lock().unwrap_or_else(PoisonError::into_inner);
            if bytes > 0 {
                // SAFETY: the pinned memory is read after `arrived`, and the reply lives as long as somebody waits for it.
                unsafe {
                    self.machine
                        .stream
                        .fetch(reply.pinned.as_ptr().cast_mut(), address, bytes)?;
                }
            }
            reply.arrived.record(&self.machine.stream)?;
        }
        let device = self.machine.device.clone();
        Ok(Box::new(Asked { device, reply, read }))
    }

    /// A reply with room that nobody waits for, else a new one. One that nobody waited for to its end is still written to: it is
    /// free when it has arrived.
    fn free_reply(&mut self, bytes: usize) -> Result<Arc<Mutex<Reply>>, CudaError> {
        let is_free = |reply: &&Arc<Mutex<Reply>>| {
            Arc::strong_count(reply) == 1 && {
                let reply = reply.lock().unwrap_or_else(PoisonError::into_inner);
                reply.pinned.bytes().len() >= bytes && reply.arrived.is_reached()
            }
        };
        if let Some(reply) = self.replies.iter().find(is_free) {
            return Ok(Arc::clone(reply));
        }
        let reply = Arc::new(Mutex::new(Reply {
            pinned: Pinned::new(bytes.next_power_of_two())?,
            arrived: Event::new()?,
        }));
        self.replies.push(Arc::clone(&reply));
        Ok(reply)
    }
}
