//! What every back end offers: fill the batch, run a step, read what was asked for. The trainer speaks to this alone.

use crate::EngineError;
use crate::plan::{BufferId, Plan, Role};
use std::fmt;
use std::sync::Arc;

/// A table that stays where it is (memory, a mapped file): row-major, any number of rows.
#[derive(Clone)]
pub enum Table {
    F32(Arc<dyn AsRef<[f32]> + Send + Sync>),
    I32(Arc<dyn AsRef<[i32]> + Send + Sync>),
    U8(Arc<dyn AsRef<[u8]> + Send + Sync>),
}

impl Table {
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::F32(_) => "f32",
            Self::I32(_) => "i32",
            Self::U8(_) => "u8",
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::F32(values) => (**values).as_ref().len(),
            Self::I32(values) => (**values).as_ref().len(),
            Self::U8(values) => (**values).as_ref().len(),
        }
    }

    /// The table of a plan that these values are for; an error where type or width do not fit.
    pub(crate) fn place_in(&self, plan: &Plan, name: &str) -> Result<BufferId, EngineError> {
        let id = plan.find(name)?;
        let buffer = plan.buffer(id);
        let expected = buffer.data_type.name();
        if buffer.role != Role::Table || expected != self.type_name() {
            return Err(EngineError::ValueType {
                name: name.to_owned(),
                expected,
                found: self.type_name(),
            });
        }
        let width = buffer.len().max(1);
        if !self.len().is_multiple_of(width) {
            return Err(EngineError::Length {
                name: name.to_owned(),
                expected: self.len() / width * width,
                found: self.len(),
            });
        }
        Ok(id)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn value_bytes(&self) -> usize {
        match self {
            Self::F32(_) | Self::I32(_) => 4,
            Self::U8(_) => 1,
        }
    }

    /// Its values as they lie in memory.
    pub fn bytes(&self) -> &[u8] {
        // Each slice is taken once: nothing says that a second `as_ref` returns the same one.
        let (first, bytes) = match self {
            Self::F32(values) => span((**values).as_ref()),
            Self::I32(values) => span((**values).as_ref()),
            Self::U8(values) => span((**values).as_ref()),
        };
        // SAFETY: the plain numbers of one slice that is borrowed from `self`, as bytes; any bit pattern is a valid `u8`.
        unsafe { std::slice::from_raw_parts(first, bytes) }
    }
}

/// The address and the size in bytes of a slice.
fn span<T>(values: &[T]) -> (*const u8, usize) {
    (values.as_ptr().cast(), size_of_val(values))
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.type_name(), self.len())
    }
}

/// A parameter or state as it was when it was asked for.
#[derive(Clone, Debug)]
pub struct KeptTensor {
    pub name: String,
    pub shape: Vec<usize>,
    pub values: Vec<f32>,
}

/// A value that a device computes after the steps issued so far and copies to the host.
pub trait Readback<T>: Send {
    /// Whether the value has arrived, so that [`Self::wait`] returns at once.
    fn is_ready(&self) -> bool;

    /// Waits for the value. May be called on another thread than the session's.
    fn wait(self: Box<Self>) -> Result<T, EngineError>;
}

/// A value that is on the host already.
pub struct Ready<T>(pub T);

impl<T: Send> Readback<T> for Ready<T> {
    fn is_ready(&self) -> bool {
        true
    }

    fn wait(self: Box<Self>) -> Result<T, EngineError> {
        Ok(self.0)
    }
}

/// Everything that is kept from step to step, on its way to the host.
pub type Snapshot = Box<dyn Readback<Vec<KeptTensor>>>;

/// The training loss since [`Session::set_loss`], or since the session began. The sum is built batch by batch in the order of the
/// steps, so it does not depend on when or how often it is read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Loss {
    /// Over rows.
    pub sum: f64,
    pub rows: u64,
    /// The first update whose loss was no finite number, counted from 1, since the session began; `None` where none was, or where the
    /// device does not keep it.
    pub first_bad_update: Option<u64>,
}

/// A plan on a device.
pub trait Session: Send {
    fn plan(&self) -> &Plan;

    /// `CPU, 2 threads, AVX-512`: what the trainer prints.
    fn device(&self) -> String;

    /// Gives a table to the plan; it may be exchanged between steps.
    fn attach(&mut self, name: &str, table: Table) -> Result<(), EngineError>;

    /// Fills an input of real numbers.
    fn set(&mut self, name: &str, values: &[f32]) -> Result<(), EngineError>;

    /// Fills an input of indices.
    fn set_indices(&mut self, name: &str, values: &[i32]) -> Result<(), EngineError>;

    /// How many rows of the batch are real (default: all). Losses count only these. For the last batch of an evaluation.
    fn set_valid_rows(&mut self, rows: usize);

    /// Which epoch the next steps belong to: what happens at random to a sample's picture depends on it, the seed and the sample.
    fn set_epoch(&mut self, epoch: u64);

    /// Forward and backward of one micro-batch. Gradients add up until [`Session::update`]; `weight` is this micro-batch's
    /// share of the loss (one over their number).
    fn accumulate(&mut self, weight: f64) -> Result<(), EngineError>;

    /// Clips, and moves the parameters along the gradients.
    fn update(&mut self, learning_rate: f64) -> Result<(), EngineError>;

    /// A whole step of one micro-batch.
    fn step(&mut self, learning_rate: f64) -> Result<(), EngineError> {
        self.accumulate(1.0)?;
        self.update(learning_rate)
    }

    /// The running averages begin with the parameters as they are now.
    fn begin_averages(&mut self) -> Result<(), EngineError> {
        for (parameter, average, length) in averages(self.plan()) {
            let mut values = vec![0f32; length];
            self.read(&parameter, &mut values)?;
            self.write(&average, &values)?;
        }
        Ok(())
    }

    /// Puts the parameters and their running averages into each other's place, for an evaluation of the averages; a second call puts
    /// them back.
    fn exchange_averages(&mut self) -> Result<(), EngineError> {
        for (parameter, average, length) in averages(self.plan()) {
            let (mut one, mut other) = (vec![0f32; length], vec![0f32; length]);
            self.read(&parameter, &mut one)?;
            self.read(&average, &mut other)?;
            self.write(&parameter, &other)?;
            self.write(&average, &one)?;
        }
        Ok(())
    }

    /// Forward only, dropout off, running statistics in place of the batch's.
    fn evaluate(&mut self) -> Result<(), EngineError>;

    /// An evaluation whose result is not waited for: the valid rows of a named output are kept on the device behind those of
    /// the evaluations before, until [`Session::take_kept`].
    fn evaluate_keeping(&mut self, name: &str) -> Result<(), EngineError>;

    /// What was kept, in order; nothing is kept afterwards.
    fn take_kept(&mut self) -> Result<Vec<f32>, EngineError>;

    /// The same, not waited for.
    fn ask_kept(&mut self) -> Result<Box<dyn Readback<Vec<f32>>>, EngineError> {
        Ok(Box::new(Ready(self.take_kept()?)))
    }

    /// Whether tables stay with the host and the rows of each batch are carried over while the device computes.
    fn is_streaming(&self) -> bool {
        false
    }

    /// Milliseconds in which the device has worked on what it was given, measured by the device itself; `None` where that
    /// is not measured. What is still in the queue is not in it yet.
    fn busy_ms(&mut self) -> Option<f64> {
        None
    }

    /// Operations a second that the device reached in large products, where that has been measured (`flatout bench`).
    fn peak_flops(&self) -> Option<f64> {
        None
    }

    /// The mean training loss since the last call, in rows; `None` without a step. Waits for the device and resets the sum.
    fn take_loss(&mut self) -> Option<f64>;

    /// The running sum after the steps so far, not waited for and not reset.
    fn ask_loss(&mut self) -> Result<Box<dyn Readback<Loss>>, EngineError>;

    /// The sum that the next steps add to: zero at the start of an epoch, the checkpoint's sum after a resume.
    fn set_loss(&mut self, sum: f64, rows: u64) -> Result<(), EngineError>;

    /// The mean evaluation loss since the last call.
    fn take_evaluation_loss(&mut self) -> Option<f64>;

    /// The global norm of the gradients of the last update, before the clip.
    fn gradient_norm(&mut self) -> f64;

    /// Reads any named buffer of real numbers: parameter, state, output.
    fn read(&mut self, name: &str, values: &mut [f32]) -> Result<(), EngineError>;

    /// All parameters and state as they are after the steps so far. Where the device can, it copies them beside the steps that
    /// follow.
    fn snapshot(&mut self) -> Result<Snapshot, EngineError> {
        let buffers = self.plan().buffers().iter();
        let kept = buffers.filter(|buffer| matches!(buffer.role, Role::Parameter | Role::State));
        let kept: Vec<_> = kept
            .map(|buffer| (buffer.name.clone(), buffer.shape.clone()))
            .collect();
        let read = kept.into_iter().map(|(name, shape)| {
            let mut values = vec![0f32; shape.iter().product()];
            self.read(&name, &mut values)?;
            Ok(KeptTensor { name, shape, values })
        });
        Ok(Box::new(Ready(read.collect::<Result<Vec<_>, EngineError>>()?)))
    }

    /// Writes a parameter or state.
    fn write(&mut self, name: &str, values: &[f32]) -> Result<(), EngineError>;

    /// The gradient of a parameter as the last [`Session::accumulate`] left it.
    fn read_gradient(&mut self, name: &str, values: &mut [f32]) -> Result<(), EngineError>;

    /// Updates so far (the optimizer's bias correction counts them) and micro-batches so far (the key of dropout's random
    /// numbers): with parameters and state, all that resuming needs.
    fn position(&self) -> Position;

    fn set_position(&mut self, position: Position);

    /// Memory the plan holds on the device, in bytes, tables not counted.
    fn memory_bytes(&self) -> u64;

    /// Memory of the device: free now, and in all, in bytes. `None` where the device is the machine itself, whose memory is
    /// everybody's.
    fn device_memory(&self) -> Option<(u64, u64)> {
        None
    }
}

/// Name of each parameter with a running average, name of the average, values.
fn averages(plan: &Plan) -> Vec<(String, String, usize)> {
    if plan.optimizer().average.is_none() {
        return Vec::new();
    }
    let each = plan.trained().iter().filter_map(|trained| {
        let parameter = plan.buffer(trained.parameter);
        let average = plan.buffer(*trained.moments.last()?);
        Some((parameter.name.clone(), average.name.clone(), parameter.len()))
    });
    each.collect()
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    pub updates: u64,
    pub micro_batches: u64,
}
