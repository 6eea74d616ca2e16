//! A plan on a card. The first step runs through the queue once to time the matrix products; from then on a step is one
//! copy of the batch's indices and one graph. The host never waits but when it is asked for a number.

use super::blas::Number;
use super::control::{Control, Results};
use super::driver::{Argument, Block, Event, Graph, Pinned};
use super::error::CudaError;
use super::io::Io;
use super::machine::{Machine, Precision};
use super::memory::{Kind, Memory};
use crate::EngineError;
use crate::ops::{Op, optimizer};
use crate::plan::{Buffer, BufferId, DataType, Plan, Role};
use crate::session::{Position, Session, Table};
use std::collections::HashMap;

/// Work that is recorded once and then repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Work {
    /// Clear the gradients, forward, backward, update.
    Step,
    /// Forward and backward; `first` clears the gradients before.
    Accumulate {
        first: bool,
    },
    Update,
    Evaluate,
}

/// Batches that may be on their way to the card at once.
const SLOTS: usize = 8;

struct Slot {
    memory: Pinned,
    sent: Event,
    used: bool,
}

pub struct CudaSession {
    plan: Plan,
    // Dropped in this order: graphs and blocks before the machine they live on.
    graphs: HashMap<Work, Graph>,
    scratch: Vec<Vec<Block>>,
    memory: Memory,
    slots: Vec<Slot>,
    norm_parts: Block,
    slot: usize,
    seed: u64,
    position: Position,
    valid_rows: usize,
    gradients_are_old: bool,
    rehearsed: bool,
    machine: Machine,
}

impl CudaSession {
    /// Opens the card, compiles kernels, allocates everything and draws the parameters from the seed.
    pub fn new(plan: Plan, ordinal: usize, precision: Precision, seed: u64) -> Result<Self, EngineError> {
        let machine = Machine::open(ordinal, precision)?;
        let memory = Memory::new(&plan, precision.number(), &machine.stream)?;
        let scratch_of = |node: &crate::plan::Node| {
            let sizes = node.op.cuda_scratch(&machine)?;
            sizes
                .into_iter()
                .map(Block::new)
                .collect::<Result<Vec<_>, CudaError>>()
        };
        let scratch = plan
            .nodes()
            .iter()
            .map(scratch_of)
            .collect::<Result<Vec<_>, _>>()?;
        let slot = || {
            Ok(Slot {
                memory: Pinned::new(memory.inputs.bytes())?,
                sent: Event::new()?,
                used: false,
            })
        };
        let slots = (0..SLOTS)
            .map(|_| slot())
            .collect::<Result<Vec<_>, CudaError>>()?;
        let norm_parts = Block::new(optimizer::NORM_PARTS * 8)?;
        let mut session = Self {
            valid_rows: plan.batch(),
            plan,
            graphs: HashMap::new(),
            scratch,
            memory,
            slots,
            norm_parts,
            slot: 0,
            seed,
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

    /// Waits until everything put into the queue has run.
    pub fn wait(&self) -> Result<(), EngineError> {
        Ok(self.machine.stream.wait()?)
    }

    fn initialise(&mut self) -> Result<(), EngineError> {
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

    fn io(&self, index: usize, training: bool) -> Io<'_> {
        Io {
            machine: &self.machine,
            memory: &self.memory,
            node: &self.plan.nodes()[index],
            scratch: &self.scratch[index],
            index,
            training,
        }
    }

    fn forward(&self, training: bool) -> Result<(), EngineError> {
        for index in 0..self.plan.nodes().len() {
            let io = self.io(index, training);
            io.node.op.cuda_forward(&io)?;
        }
        if let Some(loss) = self.plan.loss() {
            let arguments = [
                Argument::Address(self.memory.place(loss).address),
                Argument::Address(self.memory.inputs.address()),
                Argument::Address(self.memory.results.address()),
                Argument::Word(i32::from(!training)),
            ];
            self.machine.blocks("meter", (1, 1), 1, &arguments)?;
        }
        Ok(())
    }

    fn enqueue(&self, work: Work) -> Result<(), EngineError> {
        if matches!(work, Work::Step | Work::Accumulate { first: true }) {
            self.machine
                .stream
                .clear(self.memory.gradients.address(), self.memory.gradients.bytes())?;
        }
        match work {
            Work::Step | Work::Accumulate { .. } => {
                self.forward(true)?;
                for &index in self.plan.backward() {
                    let io = self.io(index, true);
                    io.node.op.cuda_backward(&io)?;
                }
            }
            Work::Evaluate => self.forward(false)?,
            Work::Update => {}
        }
        if matches!(work, Work::Step | Work::Update) {
            optimizer::enqueue(&self.plan, &self.machine, &self.memory, &self.norm_parts)?;
        }
        Ok(())
    }

    /// Sends the batch and the step's numbers, then runs the recorded work, recording it first where that is still to do.
    fn run(&mut self, work: Work, weight: f64, rate: f64) -> Result<(), EngineError> {
        self.machine.device.bind()?;
        self.check_ready()?;
        self.send(weight, rate)?;
        if !self.rehearsed {
            self.rehearse(work)?;
        }
        if !self.graphs.contains_key(&work) {
            let graph = self.machine.stream.capture(|| self.enqueue(work))?;
            self.graphs.insert(work, graph);
        }
        if let Some(graph) = self.graphs.get(&work) {
            graph.launch(&self.machine.stream)?;
        }
        Ok(())
    }

    /// One pass whose results are thrown away: it chooses the algorithms of the products, which a recording must not do.
    fn rehearse(&mut self, work: Work) -> Result<(), EngineError> {
        let work = match work {
            Work::Evaluate => Work::Evaluate,
            _ => Work::Accumulate { first: true },
        };
        let results = self.results()?;
        self.machine.blas.tune(true);
        let done = self.enqueue(work);
        self.machine.blas.tune(false);
        done?;
        // Sums that nobody has asked for yet stay as they were; gradients are cleared by the first real pass.
        self.machine
            .stream
            .write(self.memory.results.address(), &[results])?;
        self.rehearsed = work != Work::Evaluate;
        Ok(())
    }

    fn send(&mut self, weight: f64, rate: f64) -> Result<(), EngineError> {
        let optimizer = self.plan.optimizer();
        let updates = i32::try_from(self.position.updates).unwrap_or(i32::MAX).max(1);
        let control = Control {
            valid_rows: self.valid_rows as i32,
            loss_weight: weight as f32,
            learning_rate: rate as f32,
            step_size: (rate / (1.0 - optimizer.beta1.powi(updates))) as f32,
            correction: (1.0 / (1.0 - optimizer.beta2.powi(updates)).sqrt()) as f32,
            keep: (1.0 - rate * optimizer.weight_decay) as f32,
            tick: self.position.micro_batches,
            seed: self.seed,
        };
        let next = (self.slot + 1) % SLOTS;
        let Ok([slot, following]) = self.slots.get_disjoint_mut([self.slot, next]) else {
            return Ok(());
        };
        slot.memory.bytes_mut()[..Control::BYTES].copy_from_slice(&control.bytes());
        let bytes = self.memory.inputs.bytes();
        // SAFETY: a slot is written again only after its event has been waited for.
        unsafe {
            self.machine
                .stream
                .upload(self.memory.inputs.address(), slot.memory.as_ptr(), bytes)?
        };
        slot.sent.record(&self.machine.stream)?;
        slot.used = true;
        if following.used {
            following.sent.wait()?;
        }
        // What the caller does not set anew stays as it was.
        following
            .memory
            .bytes_mut()
            .copy_from_slice(slot.memory.bytes_mut());
        self.slot = next;
        Ok(())
    }

    /// The bytes of an input in the slot that is being filled.
    fn input_bytes(&mut self, id: BufferId, bytes: usize) -> &mut [u8] {
        let offset = (self.memory.place(id).address - self.memory.inputs.address()) as usize;
        &mut self.slots[self.slot].memory.bytes_mut()[offset..offset + bytes]
    }

    fn check_ready(&self) -> Result<(), EngineError> {
        let missing = |(index, buffer): &(usize, &Buffer)| {
            buffer.role == Role::Table && self.memory.place(BufferId(*index)).address == 0
        };
        match self.plan.buffers().iter().enumerate().find(missing) {
            Some((_, buffer)) => Err(EngineError::NotAttached {
                name: buffer.name.clone(),
            }),
            None => Ok(()),
        }
    }

    /// Indices are checked here, on their way in: the card would only read somewhere else.
    fn check_indices(&self, id: BufferId, values: &[i32]) -> Result<(), EngineError> {
        for node in self.plan.nodes() {
            let (operation, rows, length) = match &node.op {
                Op::Gather(gather) if node.inputs.get(1) == Some(&id) => {
                    ("gather", self.memory.place(node.inputs[0]).rows, gather.length())
                }
                Op::Embedding(embedding) if node.inputs.first() == Some(&id) => {
                    ("embedding", embedding.entries, 1)
                }
                _ => continue,
            };
            let outside = |index: &i32| *index < 0 || *index as usize + length > rows;
            if let Some(index) = values.iter().find(|index| rows > 0 && outside(index)) {
                return Err(EngineError::Index {
                    operation,
                    index: i64::from(*index),
                    rows,
                });
            }
        }
        Ok(())
    }

    fn results(&self) -> Result<Results, EngineError> {
        let mut results = [Results::default()];
        self.machine.device.bind()?;
        self.machine
            .stream
            .download(&mut results, self.memory.results.address())?;
        Ok(results[0])
    }

    fn take(&mut self, which: usize) -> Option<f64> {
        let results = self.results().ok()?;
        let zero = [0f64];
        let base = self.memory.results.address();
        for offset in [which * 8, 16 + which * 8] {
            self.machine.stream.write(base + offset as u64, &zero).ok()?;
        }
        (results.rows[which] > 0.0).then(|| results.loss[which] / results.rows[which])
    }

    fn find(&self, name: &str, data_type: DataType, length: usize) -> Result<BufferId, EngineError> {
        let id = self.plan.find(name)?;
        let buffer = self.plan.buffer(id);
        let name = || name.to_owned();
        if buffer.role == Role::Table || buffer.data_type != data_type {
            return Err(EngineError::ValueType {
                name: name(),
                expected: buffer.data_type.name(),
                found: data_type.name(),
            });
        }
        if buffer.len() != length {
            return Err(EngineError::Length {
                name: name(),
                expected: buffer.len(),
                found: length,
            });
        }
        Ok(id)
    }

    fn read_place(&self, id: BufferId, values: &mut [f32]) -> Result<(), EngineError> {
        self.machine.device.bind()?;
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
        let id = self.plan.find(name)?;
        let buffer = self.plan.buffer(id);
        let expected = buffer.data_type.name();
        if buffer.role != Role::Table || expected != table.type_name() {
            return Err(EngineError::ValueType {
                name: name.to_owned(),
                expected,
                found: table.type_name(),
            });
        }
        let width = buffer.len().max(1);
        if !table.len().is_multiple_of(width) {
            let expected = table.len() / width * width;
            return Err(EngineError::Length {
                name: name.to_owned(),
                expected,
                found: table.len(),
            });
        }
        self.machine.device.bind()?;
        self.machine.stream.wait()?;
        // Recorded work holds the old table's address.
        self.graphs.clear();
        Ok(self.memory.attach(id, width, &table, &self.machine.stream)?)
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

    fn take_loss(&mut self) -> Option<f64> {
        self.take(0)
    }

    fn take_evaluation_loss(&mut self) -> Option<f64> {
        self.take(1)
    }

    fn gradient_norm(&mut self) -> f64 {
        self.results().map_or(f64::NAN, |results| f64::from(results.norm))
    }

    fn read(&mut self, name: &str, values: &mut [f32]) -> Result<(), EngineError> {
        let id = self.find(name, DataType::Real, values.len())?;
        self.read_place(id, values)
    }

    fn write(&mut self, name: &str, values: &[f32]) -> Result<(), EngineError> {
        let id = self.find(name, DataType::Real, values.len())?;
        if self.plan.buffer(id).role == Role::Input {
            return self.set(name, values);
        }
        self.machine.device.bind()?;
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
        self.read_place(gradient, values)
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
