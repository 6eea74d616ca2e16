//! A plan on a card. The first step runs through the queue once to time the matrix products; from then on a step is one
//! copy of the batch's indices and one graph. The host never waits but when it is asked for a number.

mod busy;
mod checks;
mod kept;
mod profile;
mod readback;
mod slots;
mod snapshot;
mod streaming;
mod tables;
mod values;
mod work;

use super::driver::{Block, Graph};
use super::error::CudaError;
use super::fusion::Fusion;
use super::io::Site;
use super::libraries::Found;
use super::machine::{Machine, Precision};
use super::memory::Memory;
use super::recording_lock::exclusive;
use crate::EngineError;
use crate::ops::optimizer;
use crate::plan::{BufferId, DataType, Plan};
use crate::session::{Loss, Position, Readback, Session, Snapshot, Table};
use busy::Busy;
use kept::Kept;
use readback::Reply;
use slots::Slots;
use snapshot::Carrier;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use streaming::Streaming;
use work::Work;

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
        exclusive(|| Self::open(plan, ordinal, precision, seed))
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
        exclusive(|| self.attach_table(name, table))
    }

    fn set(&mut self, name: &str, values: &[f32]) -> Result<(), EngineError> {
        self.fill_input(name, values)
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

    fn exchange_averages(&mut self) -> Result<(), EngineError> {
        self.exchange()
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
        self.ask_for_kept()?.wait()
    }

    fn ask_kept(&mut self) -> Result<Box<dyn Readback<Vec<f32>>>, EngineError> {
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
        self.take_mean(0).ok()?
    }

    fn ask_loss(&mut self) -> Result<Box<dyn Readback<Loss>>, EngineError> {
        self.ask_sum(0)
    }

    fn set_loss(&mut self, sum: f64, rows: u64) -> Result<(), EngineError> {
        self.set_sum(0, sum, rows)
    }

    fn take_evaluation_loss(&mut self) -> Option<f64> {
        self.take_mean(1).ok()?
    }

    fn gradient_norm(&mut self) -> f64 {
        self.norm().unwrap_or(f64::NAN)
    }

    fn read(&mut self, name: &str, values: &mut [f32]) -> Result<(), EngineError> {
        let id = self.find(name, DataType::Real, values.len())?;
        self.read_place(id, values)
    }

    fn snapshot(&mut self) -> Result<Snapshot, EngineError> {
        self.leave()
    }

    fn write(&mut self, name: &str, values: &[f32]) -> Result<(), EngineError> {
        self.write_place(name, values)
    }

    fn read_gradient(&mut self, name: &str, values: &mut [f32]) -> Result<(), EngineError> {
        self.read_unscaled(name, values)
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
