//! Describes a model: each method adds one operation, checks the shapes, makes its parameters under PyTorch's names.
//! [`Model::compile`] turns the description into a [`Plan`](crate::plan::Plan).

use crate::EngineError;
use crate::initialise::Initialiser;
use crate::ops::Op;
use crate::plan::{Buffer, BufferId, DataType, Role};

/// A value in the model.
pub type Tensor = BufferId;

pub(crate) struct Draft {
    pub op: Op,
    pub inputs: Vec<BufferId>,
    pub outputs: Vec<BufferId>,
    pub parameters: Vec<BufferId>,
    pub states: Vec<BufferId>,
}

/// A model under construction, for one batch size.
pub struct Model {
    pub(crate) batch: usize,
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) drafts: Vec<Draft>,
}

impl Model {
    pub fn new(batch: usize) -> Self {
        Self {
            batch,
            buffers: Vec::new(),
            drafts: Vec::new(),
        }
    }

    pub fn batch(&self) -> usize {
        self.batch
    }

    /// A table attached to the session; `row` is the shape of one row.
    pub fn table(&mut self, name: &str, data_type: DataType, row: &[usize]) -> Result<Tensor, EngineError> {
        self.named(name, row, data_type, Role::Table, Initialiser::Constant(0.0))
    }

    /// A batch of real numbers, `[batch, …row]`, filled by the caller.
    pub fn input(&mut self, name: &str, row: &[usize]) -> Result<Tensor, EngineError> {
        let shape = [&[self.batch], row].concat();
        self.named(
            name,
            &shape,
            DataType::Real,
            Role::Input,
            Initialiser::Constant(0.0),
        )
    }

    /// A batch of sequences, time-major `[steps, batch, width]`, filled by the caller.
    pub fn sequence_input(&mut self, name: &str, steps: usize, width: usize) -> Result<Tensor, EngineError> {
        let shape = [steps, self.batch, width];
        self.named(
            name,
            &shape,
            DataType::Real,
            Role::Input,
            Initialiser::Constant(0.0),
        )
    }

    /// A batch of indices, `[batch]`, filled by the caller: rows of a table, categories, classes.
    pub fn index_input(&mut self, name: &str) -> Result<Tensor, EngineError> {
        let shape = [self.batch];
        self.named(
            name,
            &shape,
            DataType::I32,
            Role::Input,
            Initialiser::Constant(0.0),
        )
    }

    /// Several indices a sample, `[batch, width]`, filled by the caller: the characters of a captcha.
    pub fn index_rows_input(&mut self, name: &str, width: usize) -> Result<Tensor, EngineError> {
        let shape = [self.batch, width];
        self.named(
            name,
            &shape,
            DataType::I32,
            Role::Input,
            Initialiser::Constant(0.0),
        )
    }

    /// A trained tensor that belongs to no layer.
    pub fn parameter(
        &mut self,
        name: &str,
        shape: &[usize],
        initialiser: Initialiser,
    ) -> Result<Tensor, EngineError> {
        self.named(name, shape, DataType::Real, Role::Parameter, initialiser)
    }

    /// Gives a tensor a name, so that [`Session::read`](crate::Session::read) finds it.
    pub fn name(&mut self, tensor: Tensor, name: &str) -> Result<(), EngineError> {
        self.refuse_duplicate(name)?;
        name.clone_into(&mut self.buffers[tensor.0].name);
        Ok(())
    }

    pub fn shape(&self, tensor: Tensor) -> &[usize] {
        &self.buffers[tensor.0].shape
    }

    pub(crate) fn data_type(&self, tensor: Tensor) -> DataType {
        self.buffers[tensor.0].data_type
    }

    pub(crate) fn named(
        &mut self,
        name: &str,
        shape: &[usize],
        data_type: DataType,
        role: Role,
        initialiser: Initialiser,
    ) -> Result<BufferId, EngineError> {
        self.refuse_duplicate(name)?;
        Ok(self.buffer(Buffer {
            name: name.to_owned(),
            shape: shape.to_vec(),
            data_type,
            role,
            initialiser,
        }))
    }

    fn refuse_duplicate(&self, name: &str) -> Result<(), EngineError> {
        if self.buffers.iter().any(|buffer| buffer.name == name) {
            return Err(EngineError::DuplicateName {
                name: name.to_owned(),
            });
        }
        Ok(())
    }

    pub(crate) fn buffer(&mut self, buffer: Buffer) -> BufferId {
        self.buffers.push(buffer);
        BufferId(self.buffers.len() - 1)
    }

    /// A buffer that an operation writes.
    pub(crate) fn activation(&mut self, shape: &[usize], data_type: DataType) -> BufferId {
        self.buffer(Buffer {
            name: String::new(),
            shape: shape.to_vec(),
            data_type,
            role: Role::Activation,
            initialiser: Initialiser::Constant(0.0),
        })
    }

    /// Adds an operation with one output of real numbers.
    pub(crate) fn add(
        &mut self,
        op: impl Into<Op>,
        inputs: &[Tensor],
        parameters: Vec<Tensor>,
        shape: &[usize],
    ) -> Tensor {
        let output = self.activation(shape, DataType::Real);
        self.drafts.push(Draft {
            op: op.into(),
            inputs: inputs.to_vec(),
            outputs: vec![output],
            parameters,
            states: Vec::new(),
        });
        output
    }

    /// The shape of a tensor that must have so many dimensions.
    pub(crate) fn dimensions<const N: usize>(
        &self,
        operation: &'static str,
        tensor: Tensor,
        expected: &str,
    ) -> Result<[usize; N], EngineError> {
        let found = self.shape(tensor);
        <[usize; N]>::try_from(found).map_err(|_| EngineError::Shape {
            operation,
            expected: expected.to_owned(),
            found: found.to_vec(),
        })
    }

    /// Fails unless a tensor holds values of this type.
    pub(crate) fn require(&self, tensor: Tensor, data_type: DataType) -> Result<(), EngineError> {
        let found = self.data_type(tensor);
        if found == data_type {
            return Ok(());
        }
        Err(EngineError::ValueType {
            name: self.buffers[tensor.0].name.clone(),
            expected: data_type.name(),
            found: found.name(),
        })
    }
}
