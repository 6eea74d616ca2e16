//! Values between host and card: drawn at the start, set for a step, read and written by name. Reading waits.

use super::super::blas::Number;
use super::super::control::Results;
use super::super::driver::Argument;
use super::super::half;
use super::super::machine::Precision;
use super::super::memory::Kind;
use super::super::recording_lock::exclusive;
use super::CudaSession;
use crate::EngineError;
use crate::ops::optimizer;
use crate::plan::{BufferId, DataType, Role};
use crate::session::Session;

/// Where the scale of f16 begins. It doubles by itself; one that begins too large leaves out the first updates, when there is
/// most to learn (PyTorch's 65,536 left out several in the parity tests' convolutions).
const FIRST_SCALE: f32 = 1024.0;

impl CudaSession {
    pub(super) fn initialise(&mut self) -> Result<(), EngineError> {
        let results = Results {
            factor: 1.0,
            scale: if self.precision() == Precision::F16 {
                FIRST_SCALE
            } else {
                1.0
            },
            ..Results::default()
        };
        self.machine
            .stream
            .write(self.memory.results.address(), &[results])?;
        let buffers = self.plan.buffers().to_vec();
        for (number, buffer) in buffers.iter().enumerate() {
            if matches!(buffer.role, Role::Parameter | Role::State) {
                let value =
                    |index: usize| buffer.initialiser.value(self.seed, number as u64, index as u64) as f32;
                let values: Vec<f32> = (0..buffer.len()).map(value).collect();
                self.machine
                    .stream
                    .write(self.memory.place(BufferId(number)).address, &values)?;
            }
        }
        self.refresh_computing()
    }

    /// The computing copies of all parameters.
    pub(super) fn refresh_computing(&self) -> Result<(), EngineError> {
        if let Some(computing) = &self.memory.computing {
            let count = self.memory.trained_values;
            let arguments = [
                Argument::Address(self.memory.parameters.address()),
                Argument::Address(computing.address()),
                Argument::Long(count as i64),
            ];
            self.machine.each("convert", count, &arguments)?;
        }
        Ok(())
    }

    /// The bytes of an input in the slot that is being filled.
    pub(super) fn input_bytes(&mut self, id: BufferId, bytes: usize) -> &mut [u8] {
        let offset = (self.memory.place(id).address - self.memory.inputs.address()) as usize;
        &mut self.slots.filling()[offset..offset + bytes]
    }

    pub(super) fn results(&mut self) -> Result<Results, EngineError> {
        self.flush()?;
        let mut results = [Results::default()];
        self.machine.device.bind()?;
        self.machine
            .stream
            .download(&mut results, self.memory.results.address())?;
        Ok(results[0])
    }

    pub(super) fn read_place(&mut self, id: BufferId, values: &mut [f32]) -> Result<(), EngineError> {
        self.machine.device.bind()?;
        self.flush()?;
        let place = self.memory.place(id);
        match (place.kind, self.machine.precision.number()) {
            (Kind::F32, _) | (Kind::Real, Number::F32) => {
                self.machine.stream.download(values, place.address)?
            }
            (Kind::Real, number) => {
                let mut halves = vec![0u16; values.len()];
                self.machine.stream.download(&mut halves, place.address)?;
                for (value, half) in values.iter_mut().zip(halves) {
                    *value = half::to_f32(half, number);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// An input of the next step, in the numbers the card computes in.
    pub(super) fn fill_input(&mut self, name: &str, values: &[f32]) -> Result<(), EngineError> {
        let id = self.find(name, DataType::Real, values.len())?;
        let number = self.machine.precision.number();
        let target = self.input_bytes(id, values.len() * number.bytes());
        for (target, &value) in target.chunks_exact_mut(number.bytes()).zip(values) {
            match number {
                Number::F32 => target.copy_from_slice(&value.to_le_bytes()),
                half => target.copy_from_slice(&half::from_f32(value, half).to_le_bytes()),
            }
        }
        Ok(())
    }

    pub(super) fn write_place(&mut self, name: &str, values: &[f32]) -> Result<(), EngineError> {
        let id = self.find(name, DataType::Real, values.len())?;
        if self.plan.buffer(id).role == Role::Input {
            return self.set(name, values);
        }
        self.machine.device.bind()?;
        self.flush()?;
        self.machine.stream.write(self.memory.place(id).address, values)?;
        self.refresh_computing()
    }

    pub(super) fn exchange(&mut self) -> Result<(), EngineError> {
        self.machine.device.bind()?;
        self.flush()?;
        // Kernels are loaded when they are started first.
        exclusive(|| optimizer::enqueue_exchange(&self.plan, &self.machine, &self.memory))?;
        Ok(())
    }

    /// A gradient as it is without the loss scale.
    pub(super) fn read_unscaled(&mut self, name: &str, values: &mut [f32]) -> Result<(), EngineError> {
        let id = self.plan.find(name)?;
        let trained = self.plan.trained().iter().find(|trained| trained.parameter == id);
        let unknown = || EngineError::UnknownName {
            name: name.to_owned(),
            nearest: None,
        };
        let gradient = trained.map(|trained| trained.gradient).ok_or_else(unknown)?;
        let expected = self.plan.buffer(gradient).len();
        if expected != values.len() {
            return Err(EngineError::Length {
                name: name.to_owned(),
                expected,
                found: values.len(),
            });
        }
        self.read_place(gradient, values)?;
        let scale = self.results()?.scale;
        values.iter_mut().for_each(|value| *value /= scale);
        Ok(())
    }

    pub(super) fn norm(&mut self) -> Result<f64, EngineError> {
        self.flush()?;
        // Clipping and the loss scale leave the norm in the results; without them nobody has asked for it.
        if self.plan.optimizer().clip_norm.is_none() && self.precision() != Precision::F16 {
            // Kernels are loaded when they are started first.
            exclusive(|| optimizer::enqueue_norm(&self.plan, &self.machine, &self.memory, &self.norm_parts))?;
        }
        Ok(f64::from(self.results()?.norm))
    }
}
