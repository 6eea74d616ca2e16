//! A plan in this machine's memory.

use super::aligned::Aligned;
use super::gemm::GemmSpace;
use super::guarded::Guarded;
use super::io::{Context, Io};
use super::memory::Memory;
use super::pool::Pool;
use super::real::Real;
use super::vectorised::level;
use crate::EngineError;
use crate::ops::{clip, optimizer};
use crate::plan::{BufferId, DataType, Plan, Role};
use crate::session::{Loss, Position, Readback, Ready, Session, Table};

/// Losses added up in the order of the batches.
#[derive(Default)]
struct LossMeter {
    sum: f64,
    rows: usize,
}

impl LossMeter {
    fn add(&mut self, loss: f64, rows: usize) {
        self.sum += loss * rows as f64;
        self.rows += rows;
    }

    fn take(&mut self) -> Option<f64> {
        let taken = std::mem::take(self);
        (taken.rows > 0).then(|| taken.sum / taken.rows as f64)
    }
}

/// Trains in f32, checks gradients in f64.
pub struct CpuSession<T: Real = f32> {
    plan: Plan,
    memory: Memory<T>,
    scratch: Vec<Vec<Guarded<Aligned<T>>>>,
    pool: Pool,
    gemm: GemmSpace<T>,
    norm_space: clip::NormSpace,
    seed: u64,
    epoch: u64,
    position: Position,
    valid_rows: usize,
    gradients_are_old: bool,
    last_norm: f64,
    training_loss: LossMeter,
    evaluation_loss: LossMeter,
    first_bad_update: Option<u64>,
    kept: Vec<f32>,
}

impl<T: Real> CpuSession<T> {
    /// Allocates everything and draws the parameters from the seed.
    pub fn new(plan: Plan, threads: usize, seed: u64) -> Result<Self, EngineError> {
        let pool = Pool::new(threads);
        let gemm = GemmSpace::new(pool.workers())?;
        let memory = Memory::new(&plan, seed)?;
        let scratch_of = |node: &crate::plan::Node| {
            let sizes = node.op.cpu_scratch(&gemm, pool.workers());
            let allocated = sizes
                .into_iter()
                .map(|size| Ok(Guarded::new(Aligned::zeroed(size)?)));
            allocated.collect::<Result<Vec<_>, EngineError>>()
        };
        let scratch = plan.nodes().iter().map(scratch_of).collect::<Result<_, _>>()?;
        Ok(Self {
            norm_space: clip::NormSpace::new(&plan),
            valid_rows: plan.batch(),
            plan,
            memory,
            scratch,
            pool,
            gemm,
            seed,
            epoch: 0,
            position: Position::default(),
            gradients_are_old: true,
            last_norm: 0.0,
            training_loss: LossMeter::default(),
            evaluation_loss: LossMeter::default(),
            first_bad_update: None,
            kept: Vec::new(),
        })
    }

    fn context(&self, training: bool, loss_weight: f64) -> Context<'_, T> {
        Context {
            memory: &self.memory,
            pool: &self.pool,
            gemm: &self.gemm,
            training,
            seed: self.seed,
            epoch: self.epoch,
            tick: self.position.micro_batches,
            valid_rows: self.valid_rows,
            loss_weight,
        }
    }

    fn io<'a>(&'a self, context: &'a Context<'a, T>, index: usize) -> Io<'a, T> {
        Io {
            context,
            node: &self.plan.nodes()[index],
            index,
            scratch: &self.scratch[index],
        }
    }

    fn forward(&self, context: &Context<T>) -> Result<(), EngineError> {
        for (index, node) in self.plan.nodes().iter().enumerate() {
            node.op.cpu_forward(&self.io(context, index))?;
        }
        Ok(())
    }

    /// The loss of the last forward.
    fn loss(&self) -> Option<f64> {
        Some(self.memory.read(self.plan.loss()?)[0].to_f64())
    }

    /// A named buffer that must have this type and, when given, this length.
    fn find(&self, name: &str, data_type: DataType, length: Option<usize>) -> Result<BufferId, EngineError> {
        let id = self.plan.find(name)?;
        let buffer = self.plan.buffer(id);
        if buffer.role == Role::Table || buffer.data_type != data_type {
            return Err(EngineError::ValueType {
                name: name.to_owned(),
                expected: buffer.data_type.name(),
                found: data_type.name(),
            });
        }
        match length {
            Some(found) if found != buffer.len() => Err(EngineError::Length {
                name: name.to_owned(),
                expected: buffer.len(),
                found,
            }),
            _ => Ok(id),
        }
    }

    /// Writes any named buffer in the session's own precision.
    pub fn write_real(&mut self, name: &str, values: &[T]) -> Result<(), EngineError> {
        let id = self.find(name, DataType::Real, Some(values.len()))?;
        self.memory.write(id).copy_from_slice(values);
        Ok(())
    }

    /// Reads any named buffer in the session's own precision.
    pub fn read_real(&self, name: &str) -> Result<Vec<T>, EngineError> {
        Ok(self.memory.read(self.find(name, DataType::Real, None)?).to_vec())
    }

    /// The gradient of a parameter in the session's own precision.
    pub fn gradient_real(&self, name: &str) -> Result<Vec<T>, EngineError> {
        Ok(self.memory.read(self.gradient(name)?).to_vec())
    }

    fn gradient(&self, name: &str) -> Result<BufferId, EngineError> {
        let id = self.plan.find(name)?;
        let trained = self.plan.trained().iter().find(|trained| trained.parameter == id);
        trained
            .map(|trained| trained.gradient)
            .ok_or_else(|| EngineError::UnknownName {
                name: name.to_owned(),
                nearest: None,
            })
    }
}

impl<T: Real> Session for CpuSession<T> {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn device(&self) -> String {
        let threads = match self.pool.workers() {
            1 => "1 thread".to_owned(),
            several => format!("{several} threads"),
        };
        format!("CPU, {threads}, {}", level().name())
    }

    fn attach(&mut self, name: &str, table: Table) -> Result<(), EngineError> {
        let id = table.place_in(&self.plan, name)?;
        self.memory.attach(id, table);
        Ok(())
    }

    fn set(&mut self, name: &str, values: &[f32]) -> Result<(), EngineError> {
        self.write(name, values)
    }

    fn set_indices(&mut self, name: &str, values: &[i32]) -> Result<(), EngineError> {
        let id = self.find(name, DataType::I32, Some(values.len()))?;
        self.memory.write_indices(id).copy_from_slice(values);
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
        if self.gradients_are_old {
            for trained in self.plan.trained() {
                self.memory.write(trained.gradient).fill(T::ZERO);
            }
            self.gradients_are_old = false;
        }
        let context = self.context(true, weight);
        self.forward(&context)?;
        for &index in self.plan.backward() {
            self.plan.nodes()[index]
                .op
                .cpu_backward(&self.io(&context, index));
        }
        if let Some(loss) = self.loss() {
            self.training_loss.add(loss, self.valid_rows);
            if !loss.is_finite() {
                self.first_bad_update.get_or_insert(self.position.updates + 1);
            }
        }
        self.position.micro_batches += 1;
        Ok(())
    }

    fn update(&mut self, learning_rate: f64) -> Result<(), EngineError> {
        self.position.updates += 1;
        let limit = self.plan.optimizer().clip_norm;
        if limit.is_some() {
            self.last_norm = clip::norm(&self.plan, &self.memory, &self.pool, &mut self.norm_space);
        }
        let factor = clip::factor(self.last_norm, limit);
        optimizer::update(
            &self.plan,
            &self.memory,
            &self.pool,
            learning_rate,
            factor,
            self.position.updates,
        );
        self.gradients_are_old = true;
        Ok(())
    }

    fn evaluate(&mut self) -> Result<(), EngineError> {
        let context = self.context(false, 1.0);
        self.forward(&context)?;
        if let Some(loss) = self.loss() {
            self.evaluation_loss.add(loss, self.valid_rows);
        }
        Ok(())
    }

    fn evaluate_keeping(&mut self, name: &str) -> Result<(), EngineError> {
        let id = self.find(name, DataType::Real, None)?;
        self.evaluate()?;
        let source = self.memory.read(id);
        let rows = source.len() / self.plan.batch().max(1) * self.valid_rows;
        self.kept
            .extend(source[..rows].iter().map(|value| value.to_f32()));
        Ok(())
    }

    fn take_kept(&mut self) -> Result<Vec<f32>, EngineError> {
        Ok(std::mem::take(&mut self.kept))
    }

    fn take_loss(&mut self) -> Option<f64> {
        self.training_loss.take()
    }

    fn take_evaluation_loss(&mut self) -> Option<f64> {
        self.evaluation_loss.take()
    }

    fn ask_loss(&mut self) -> Result<Box<dyn Readback<Loss>>, EngineError> {
        Ok(Box::new(Ready(Loss {
            sum: self.training_loss.sum,
            rows: self.training_loss.rows as u64,
            first_bad_update: self.first_bad_update,
        })))
    }

    fn set_loss(&mut self, sum: f64, rows: u64) -> Result<(), EngineError> {
        self.training_loss = LossMeter {
            sum,
            rows: rows as usize,
        };
        Ok(())
    }

    fn gradient_norm(&mut self) -> f64 {
        if self.plan.optimizer().clip_norm.is_none() {
            self.last_norm = clip::norm(&self.plan, &self.memory, &self.pool, &mut self.norm_space);
        }
        self.last_norm
    }

    fn read(&mut self, name: &str, values: &mut [f32]) -> Result<(), EngineError> {
        let id = self.find(name, DataType::Real, Some(values.len()))?;
        let source = self.memory.read(id);
        values
            .iter_mut()
            .zip(&*source)
            .for_each(|(value, source)| *value = source.to_f32());
        Ok(())
    }

    fn write(&mut self, name: &str, values: &[f32]) -> Result<(), EngineError> {
        let id = self.find(name, DataType::Real, Some(values.len()))?;
        let mut target = self.memory.write(id);
        target
            .iter_mut()
            .zip(values)
            .for_each(|(target, &value)| *target = T::from_f32(value));
        Ok(())
    }

    fn read_gradient(&mut self, name: &str, values: &mut [f32]) -> Result<(), EngineError> {
        let source = self.memory.read(self.gradient(name)?);
        if source.len() != values.len() {
            return Err(EngineError::Length {
                name: name.to_owned(),
                expected: source.len(),
                found: values.len(),
            });
        }
        values
            .iter_mut()
            .zip(&*source)
            .for_each(|(value, source)| *value = source.to_f32());
        Ok(())
    }

    fn position(&self) -> Position {
        self.position
    }

    fn set_position(&mut self, position: Position) {
        self.position = position;
    }

    fn memory_bytes(&self) -> u64 {
        let scratch = self.scratch.iter().flatten().map(|part| part.borrow().len());
        let buffers = self
            .plan
            .buffers()
            .iter()
            .filter(|buffer| buffer.role != Role::Table);
        let values = scratch.sum::<usize>() + buffers.map(crate::plan::Buffer::len).sum::<usize>();
        (values * size_of::<T>()) as u64
    }
}
