//! Which way the recurrence goes: the persistent kernel, or one product and one kernel a step. Measured in the rehearsal of a
//! training, kept on disk.

use super::persistent::{Persistent, RECURRENCE};
use crate::cuda::compiler::fingerprint;
use crate::cuda::io::Io;
use crate::cuda::{CudaError, Machine, Number};
use crate::ops::recurrent::Layers;
use std::cell::Cell;

/// A way of the recurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Persistent,
    StepByStep,
}

thread_local! {
    static FORCED: Cell<Option<Way>> = const { Cell::new(None) };
}

/// Has sessions that this thread opens and runs go one way, whatever measurement says: for tests and benchmarks of each.
pub fn force_recurrence(way: Option<Way>) {
    FORCED.set(way);
}

const KIND: &str = "recurrence";
const PERSISTENT: usize = 0;
const STEPWISE: usize = 1;
/// How often each way is timed.
const ROUNDS: usize = 4;

impl Layers {
    /// The persistent kernel, where this card has it for this size and precision.
    fn available(&self, machine: &Machine) -> Option<Persistent> {
        let allowed = machine.precision.number() != Number::F32 && machine.architecture() >= 90;
        allowed
            .then(|| Persistent::of(self.stack.hidden, self.gates))
            .flatten()
    }

    /// The same unless measurement preferred the other way.
    pub(crate) fn persistent(&self, machine: &Machine) -> Option<Persistent> {
        let available = self.available(machine)?;
        (self.chosen(machine) != Some(STEPWISE)).then_some(available)
    }

    fn chosen(&self, machine: &Machine) -> Option<usize> {
        match FORCED.get() {
            Some(Way::Persistent) => Some(PERSISTENT),
            Some(Way::StepByStep) => Some(STEPWISE),
            None => machine.choice(KIND, &self.described(machine)),
        }
    }

    fn described(&self, machine: &Machine) -> String {
        let (steps, batch, gates, hidden) = (self.steps, self.batch, self.gates, self.stack.hidden);
        let (card, precision) = (&machine.device.name, machine.precision.name());
        let kernel = fingerprint(RECURRENCE.as_bytes());
        format!(
            "{card} {precision} {steps}x{batch} {gates}x{hidden}x{} {kernel:x}",
            self.stack.layers
        )
    }

    /// The scratch blocks' sizes: large enough for both ways as long as none has been chosen.
    pub(crate) fn either_way(
        &self,
        machine: &Machine,
        sizes: impl Fn(Option<Persistent>) -> Vec<usize>,
    ) -> Result<Vec<usize>, CudaError> {
        let Some(persistent) = self.available(machine) else {
            return Ok(sizes(None));
        };
        let name = self.described(machine);
        let kept = self.chosen(machine);
        if kept != Some(STEPWISE) {
            persistent.load(machine)?;
        }
        let mut largest: Vec<usize> = Vec::new();
        for choice in [PERSISTENT, STEPWISE] {
            if kept.is_some_and(|kept| kept != choice) {
                continue;
            }
            machine.set_choice(KIND, &name, Some(choice));
            let found = sizes(self.persistent(machine));
            largest.resize(largest.len().max(found.len()), 0);
            for (large, size) in largest.iter_mut().zip(found) {
                *large = size.max(*large);
            }
        }
        if FORCED.get().is_none() {
            machine.set_choice(KIND, &name, kept);
        }
        Ok(largest)
    }

    /// In the rehearsal, and where nothing is known yet: times both ways forward and keeps the faster one.
    pub(crate) fn choose_on_card(
        &self,
        io: &Io,
        forward: &dyn Fn() -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        let (machine, name) = (io.machine, self.described(io.machine));
        if !machine.is_tuning() || self.available(machine).is_none() || self.chosen(machine).is_some() {
            return Ok(());
        }
        let mut best = (f64::INFINITY, PERSISTENT);
        // In turn, more than once: a card that was idle is slow at first, and somebody else may use it for a moment.
        for choice in [PERSISTENT, STEPWISE].repeat(ROUNDS) {
            machine.set_choice(KIND, &name, Some(choice));
            // Once outside of a recording: products choose their algorithms.
            forward()?;
            let time = machine.time(1, forward)?;
            log::debug!("{name}: way {choice} takes {:.1} µs", time * 1e3);
            if time < best.0 {
                best = (time, choice);
            }
        }
        machine.keep_choice(KIND, &name, best.1);
        Ok(())
    }
}
