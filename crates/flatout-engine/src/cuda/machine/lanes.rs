//! Queues beside the main one: lanes for work that is divided, and a side for what only the update waits for.

use super::super::driver::{Event, Stream};
use super::super::error::CudaError;
use super::Machine;
use std::cell::Cell;

/// Queues beside the main one for work that is divided into lanes.
pub(super) const LANES: usize = 3;

impl Machine {
    /// The queue that work goes into now.
    pub(crate) fn queue(&self) -> &Stream {
        match self.lane.get() {
            _ if self.side.active.get() => &self.side.stream,
            0 => &self.stream,
            lane => &self.lanes[(lane - 1) % LANES],
        }
    }

    /// Puts work into a lane: a queue of its own beside the others, 0 being the main one. The caller marks what depends on
    /// what, and lets the main queue wait for the end of every lane.
    pub(crate) fn on_lane(
        &self,
        lane: usize,
        work: impl FnOnce() -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        let before = self.lane.replace(lane);
        let done = work();
        self.lane.set(before);
        done
    }

    /// A mark at the end of the present queue.
    pub(crate) fn mark(&self) -> Result<Event, CudaError> {
        let event = Event::new()?;
        event.record(self.queue())?;
        Ok(event)
    }

    /// The present queue goes on when the mark has been reached.
    pub(crate) fn wait_for(&self, mark: &Event) -> Result<(), CudaError> {
        self.queue().wait_for(mark)
    }

    /// Puts work beside the queue, behind all that is in it now: for what nobody needs before [`Machine::rejoin`]. It must
    /// not write what later work of the queue reads or writes, and uses no convolution of the library.
    pub(crate) fn aside(&self, work: impl FnOnce() -> Result<(), CudaError>) -> Result<(), CudaError> {
        self.side.fork.record(self.queue())?;
        self.side.stream.wait_for(&self.side.fork)?;
        self.side.active.set(true);
        let done = work();
        self.side.active.set(false);
        self.side.forked.set(true);
        done
    }

    /// What comes next in the queue waits for everything beside it.
    pub(crate) fn rejoin(&self) -> Result<(), CudaError> {
        if self.side.forked.replace(false) {
            self.side.join.record(&self.side.stream)?;
            self.stream.wait_for(&self.side.join)?;
        }
        Ok(())
    }
}

/// The second queue with the marks that bind it to the first.
pub(super) struct Side {
    stream: Stream,
    fork: Event,
    join: Event,
    active: Cell<bool>,
    forked: Cell<bool>,
}

impl Side {
    pub(super) fn new() -> Result<Self, CudaError> {
        Ok(Self {
            stream: Stream::new(false)?,
            fork: Event::new()?,
            join: Event::new()?,
            active: Cell::new(false),
            forked: Cell::new(false),
        })
    }
}
