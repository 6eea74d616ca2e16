//! A plan on a card. The first step runs through the queue once to time the matrix products; from then on a step is one
//! copy of the batch's indices and one graph. The host never waits but when it is asked for a number.

mod answers;
mod busy;
mod checks;
mod kept;
mod leaving;
mod profile;
mod slots;
mod streaming;
mod tables;
mod work;

use super::blas::Number;
use super::control::Results;
use super::driver::{Argument, Block, Graph};
use super::error::CudaError;
use super::fusion::Fusion;
use super::io::Site;
use super::libraries::Found;
use super::machine::{Machine, Precision};
use super::memory::{Kind, Memory};
use super::turn::alone;
use crate::EngineError;
use crate::ops::optimizer;
use crate::plan::{BufferId, DataType, Plan, Role};
use crate::session::{Answer, Leaving, Loss, Position, Session, Table};
use answers::Reply;
use busy::Busy;
use kept::Kept;
use leaving::Carrier;
use slots::Slots;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use streaming::Streaming;
use work::Work;

/// Where the scale of f16 begins. It doubles by itself; one that begins too large leaves out the first updates, when there is
/// most to learn (PyTorch's 65,536 left out several in the parity tests' convolutions).
const FIRST_SCALE: f32 = 1024.0;

pub struct CudaSession {
    plan: Plan,
    // Dropped in this order: graphs and blocks before the machine they live on.
    /// By the work, and by the stage that holds the batch's rows.
    graphs: HashMap<(Work, usize), Graph>,
    streaming: Option<Streaming>,
    /// Tables that stay with the host.
    host_tables: HashMap<BufferId, Table>,
    /// What resident tables may take together; without it, what is free.
    table_budget_bytes: Option<u64>,
    scratch: Vec<Vec<Block>>,
    memory: Memory,
    slots: Slots,
    kept: Kept,
    carriers: Vec<Arc<Mutex<Carrier>>>,
    replies: Vec<Arc<Mutex<Reply>>>,
    busy: Busy,
    norm_parts: Block,
    fusion: Fusion,
    seed: u64,
    epoch: u64,
    position: Position,
    valid_rows: usize,
    gradients_are_old: bool,
    rehearsed: bool,
    machine: Machine,
}

impl CudaSession {
    /// Opens the card, compiles kernels, allocates everything and draws the parameters from the seed.
    pub fn new(plan: Plan, ordinal: usize, precision: Precision, seed: u64) -> Result<Self, EngineError> {
        alone(|| Self::open(plan, ordinal, precision, seed))
    }

    fn open(plan: Plan, ordinal: usize, precision: Precision, seed: u64) -> Result<Self, EngineError> {
        let machine = Machine::open(ordinal, precision)?;
        let memory = Memory::new(&plan, precision.number(), &machine.stream)?;
        let fusion = Fusion::of(&plan);
        let mut scratch = Vec::new();
        for (index, node) in plan.nodes().iter().enumerate() {
            let site = Site {
                node,
                pool: fusion.pool(&plan, index),
            };
            let sizes = match fusion.is_done(index) {
                true => Vec::new(),
                false => node.op.cuda_scratch(&machine, &site)?,
            };
            let blocks = sizes.into_iter().map(Block::new);
            scratch.push(blocks.collect::<Result<Vec<_>, CudaError>>()?);
        }
        let slots = Slots::new(memory.inputs.bytes())?;
        let norm_parts = Block::new(optimizer::NORM_PARTS * 8)?;
        let mut session = Self {
            valid_rows: plan.batch(),
            plan,
            graphs: HashMap::new(),
            streaming: None,
            host_tables: HashMap::new(),
            table_budget_bytes: None,
            scratch,
            memory,
            slots,
            kept: Kept::default(),
            carriers: Vec::new(),
            replies: Vec::new(),
            busy: Busy::default(),
            norm_parts,
            fusion,
            seed,
            epoch: 0,
            position: Position::default(),
            gradients_are_old: true,
            rehearsed: false,
            machine,
        };
        session.initialise()?;
        Ok(session)
    }

    pub fn precision(&self) -> Precision {
        self.machine.precision
    }

    /// CUDA's libraries that were opened, and where they were found.
    pub fn libraries(&self) -> &[Found] {
        &self.machine.libraries
    }

    /// How many bytes tables may take on the card together; those that do not fit stay with the host and are streamed.
    pub fn set_table_budget(&mut self, bytes: u64) {
        self.table_budget_bytes = Some(bytes);
    }

    /// Waits until everything put into the queue has run.
    pub fn wait(&mut self) -> Result<(), EngineError> {
        self.flush()?;
        Ok(self.machine.stream.wait()?)
    }

    fn initialise(&mut self) -> Result<(), EngineError> {
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
    fn refresh_computing(&self) -> Result<(), EngineError> {
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
    fn input_bytes(&mut self, id: BufferId, bytes: usize) -> &mut [u8] {
        let offset = (self.memory.place(id).address - self.memory.inputs.address()) as usize;
        &mut self.slots.filling()[offset..offset + bytes]
    }

    fn results(&mut self) -> Result<Results, EngineError> {
        self.flush()?;
        let mut results = [Results::default()];
        self.machine.device.bind()?;
        self.machine
            .stream
            .download(&mut results, self.memory.results.address())?;
        Ok(results[0])
    }

    fn read_place(&mut self, id: BufferId, values: &mut [f32]) -> Result<(), EngineError> {
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
                    *value = super::half::to_f32(half, number);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl Session for CudaSession {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn device(&self) -> String {
        let (major, minor) = self.machine.device.capability;
        format!(
            "{} (sm_{major}{minor}), {}",
            self.machine.device.name,
            self.machine.precision.name()
        )
    }

    fn attach(&mut self, name: &str, table: Table) -> Result<(), EngineError> {
        alone(|| self.attach_table(name, table))
    }

    fn set(&mut self, name: &str, values: &[f32]) -> Result<(), EngineError> {
        let id = self.find(name, DataType::Real, values.len())?;
        let number = self.machine.precision.number();
        let target = self.input_bytes(id, values.len() * number.bytes());
        for (target, &value) in target.chunks_exact_mut(number.bytes()).zip(values) {
            match number {
                Number::F32 => target.copy_from_slice(&value.to_le_bytes()),
                half => target.copy_from_slice(&super::half::from_f32(value, half).to_le_bytes()),
            }
        }
        Ok(())
    }

    fn set_indices(&mut self, name: &str, values: &[i32]) -> Result<(), EngineError> {
        let id = self.find(name, DataType::I32, values.len())?;
        self.check_indices(id, values)?;
        let target = self.input_bytes(id, values.len() * 4);
        for (target, value) in target.chunks_exact_mut(4).zip(values) {
            target.copy_from_slice(&value.to_le_bytes());
        }
        Ok(())
    }

    fn set_valid_rows(&mut self, rows: usize) {
        self.valid_rows = rows.min(self.plan.batch());
    }

    fn set_epoch(&mut self, epoch: u64) {
        self.epoch = epoch;
    }

    fn accumulate(&mut self, weight: f64) -> Result<(), EngineError> {
        if self.plan.loss().is_none() {
            return Err(EngineError::NoLoss);
        }
        self.run(
            Work::Accumulate {
                first: self.gradients_are_old,
            },
            weight,
            0.0,
        )?;
        self.gradients_are_old = false;
        self.position.micro_batches += 1;
        Ok(())
    }

    fn update(&mut self, learning_rate: f64) -> Result<(), EngineError> {
        self.position.updates += 1;
        self.run(Work::Update, 1.0, learning_rate)?;
        self.gradients_are_old = true;
        Ok(())
    }

    fn step(&mut self, learning_rate: f64) -> Result<(), EngineError> {
        if self.plan.loss().is_none() {
            return Err(EngineError::NoLoss);
        }
        self.position.updates += 1;
        self.run(Work::Step, 1.0, learning_rate)?;
        self.position.micro_batches += 1;
        self.gradients_are_old = true;
        Ok(())
    }

    fn evaluate(&mut self) -> Result<(), EngineError> {
        self.run(Work::Evaluate, 1.0, 0.0)
    }

    fn evaluate_keeping(&mut self, name: &str) -> Result<(), EngineError> {
        let id = self.plan.find(name)?;
        let id = self.find(name, DataType::Real, self.plan.buffer(id).len())?;
        self.evaluate()?;
        self.keep(id)
    }

    fn take_kept(&mut self) -> Result<Vec<f32>, EngineError> {
        self.ask_for_kept()?.arrive()
    }

    fn ask_kept(&mut self) -> Result<Box<dyn Answer<Vec<f32>>>, EngineError> {
        self.ask_for_kept()
    }

    fn is_streaming(&self) -> bool {
        self.streaming.is_some()
    }

    fn busy_ms(&mut self) -> Option<f64> {
        self.machine.device.bind().ok()?;
        self.flush().ok()?;
        Some(self.busy.total_ms())
    }

    fn peak_flops(&self) -> Option<f64> {
        super::ceilings::kept_peak(&self.machine.device.name, self.machine.precision)
    }

    fn take_loss(&mut self) -> Option<f64> {
        self.ask_mean(0).ok()?.arrive().ok()?.mean
    }

    fn ask_loss(&mut self) -> Result<Box<dyn Answer<Loss>>, EngineError> {
        self.ask_mean(0)
    }

    fn take_evaluation_loss(&mut self) -> Option<f64> {
        self.ask_mean(1).ok()?.arrive().ok()?.mean
    }

    fn gradient_norm(&mut self) -> f64 {
        if self.flush().is_err() {
            return f64::NAN;
        }
        if self.plan.optimizer().clip_norm.is_none() && self.precision() != Precision::F16 {
            let (plan, memory) = (&self.plan, &self.memory);
            let asked = optimizer::enqueue_norm(plan, &self.machine, memory, &self.norm_parts);
            if asked.is_err() {
                return f64::NAN;
            }
        }
        self.results().map_or(f64::NAN, |results| f64::from(results.norm))
    }

    fn read(&mut self, name: &str, values: &mut [f32]) -> Result<(), EngineError> {
        let id = self.find(name, DataType::Real, values.len())?;
        self.read_place(id, values)
    }

    fn snapshot(&mut self) -> Result<Leaving, EngineError> {
        self.leave()
    }

    fn write(&mut self, name: &str, values: &[f32]) -> Result<(), EngineError> {
        let id = self.find(name, DataType::Real, values.len())?;
        if self.plan.buffer(id).role == Role::Input {
            return self.set(name, values);
        }
        self.machine.device.bind()?;
        self.flush()?;
        self.machine.stream.write(self.memory.place(id).address, values)?;
        self.refresh_computing()
    }

    fn read_gradient(&mut self, name: &str, values: &mut [f32]) -> Result<(), EngineError> {
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

    fn position(&self) -> Position {
        self.position
    }

    fn set_position(&mut self, position: Position) {
        self.position = position;
    }

    fn memory_bytes(&self) -> u64 {
        let scratch: u64 = self
            .scratch
            .iter()
            .flatten()
            .map(|block| block.bytes() as u64)
            .sum();
        scratch + self.memory.bytes()
    }

    fn device_memory(&self) -> Option<(u64, u64)> {
        self.machine.device.bind().ok()?;
        self.machine.device.memory().ok()
    }
}
