//! Layers as a wave: the steps are divided among a few launches, and while a layer is at one of them, the layer above is at the
//! one before. One layer alone leaves half of the card idle at usual batches.

use super::layout::Layout;
use super::persistent::Persistent;
use crate::cuda::io::Io;
use crate::cuda::{CudaError, Event, Machine};
use crate::ops::recurrent::{Layers, SequenceOutput};
use std::ops::Range;

/// Launches of a layer where one leaves room for another. Measured on an H200 (2026-11-15, 3 layers of 256 units, 60 steps):
/// 1.27 ms a step with one, 1.23 with two, 1.17 with three, 1.20 with four at batch 512; at 4,096, where one layer fills the
/// card, one is best.
const LAUNCHES: usize = 3;
/// Shorter pieces are not worth a launch.
const LEAST_STEPS: usize = 8;

impl Layers {
    /// The steps of each launch.
    pub(super) fn launches(&self, machine: &Machine) -> Vec<Range<usize>> {
        let room = |persistent: Persistent| {
            2 * persistent.blocks(self.batch) <= machine.device.multiprocessors as usize
        };
        let divided = self.stack.layers > 1 && self.persistent(machine).is_some_and(room);
        let count = if divided {
            (self.steps / LEAST_STEPS).clamp(1, LAUNCHES)
        } else {
            1
        };
        let bound = |number: usize| self.steps * number / count;
        (0..count)
            .map(|number| bound(number)..bound(number + 1))
            .collect()
    }

    /// The whole stack, forward.
    pub(crate) fn persistent_forward(&self, io: &Io, persistent: &Persistent) -> Result<(), CudaError> {
        self.join_on_card(io, io.scratch(Layout::JOINED), self.stride(0, io.machine))?;
        (0..self.stack.layers).try_for_each(|layer| self.prepare(io, layer))?;
        self.wave_forward(io, persistent)?;
        self.output_on_card(io)
    }

    /// The whole stack, backward.
    pub(crate) fn persistent_backward(
        &self,
        io: &Io,
        persistent: &Persistent,
        gradient: u64,
    ) -> Result<(), CudaError> {
        let upstream = self.upstream_on_card(io, gradient)?;
        self.wave_backward(io, persistent, upstream)?;
        self.input_gradients_on_card(io)
    }

    fn wave_forward(&self, io: &Io, persistent: &Persistent) -> Result<(), CudaError> {
        let (machine, launches) = (io.machine, self.launches(io.machine));
        (0..self.stack.layers).try_for_each(|layer| persistent.pack(self, io, layer))?;
        let start = machine.mark()?;
        let mut below: Vec<Event> = Vec::new();
        for layer in 0..self.stack.layers {
            let mut done = Vec::new();
            machine.on_lane(layer, || {
                machine.wait_for(&start)?;
                for (number, steps) in launches.iter().enumerate() {
                    below.get(number).map_or(Ok(()), |mark| machine.wait_for(mark))?;
                    self.project_on_card(io, layer, steps)?;
                    persistent.forward(self, io, layer, steps)?;
                    self.drop_on_card(io, layer, steps)?;
                    done.push(machine.mark()?);
                }
                Ok(())
            })?;
            below = done;
        }
        below.last().map_or(Ok(()), |mark| machine.wait_for(mark))
    }

    /// `upstream`: the gradient of the last layer's states.
    fn wave_backward(&self, io: &Io, persistent: &Persistent, upstream: u64) -> Result<(), CudaError> {
        let (machine, launches) = (io.machine, self.launches(io.machine));
        let (top, last) = (self.stack.layers - 1, self.stack.output == SequenceOutput::Last);
        let start = machine.mark()?;
        // In the order of the launches going back.
        let mut above: Vec<Event> = Vec::new();
        for layer in (0..=top).rev() {
            let (given, last_only) = match layer == top {
                true => (upstream, last),
                false => (io.scratch(self.layout_on_card().upstream()), false),
            };
            let mut done = Vec::new();
            machine.on_lane(top - layer, || {
                machine.wait_for(&start)?;
                for (number, (part, steps)) in launches.iter().enumerate().rev().enumerate() {
                    above.get(number).map_or(Ok(()), |mark| machine.wait_for(mark))?;
                    persistent.backward(self, io, layer, (part, steps), given, last_only)?;
                    self.pass_down_on_card(io, layer, steps)?;
                    done.push(machine.mark()?);
                }
                machine.aside(|| self.weight_gradients_on_card(io, layer))
            })?;
            above = done;
        }
        above.last().map_or(Ok(()), |mark| machine.wait_for(mark))
    }
}
