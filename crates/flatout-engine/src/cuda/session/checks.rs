//! What is looked at before anything goes to the card: names, lengths, types, and indices, which would only make it read somewhere else.

use super::CudaSession;
use crate::EngineError;
use crate::ops::Op;
use crate::plan::{Buffer, BufferId, DataType, Role};
use crate::session::Table;

impl CudaSession {
    pub(super) fn check_ready(&self) -> Result<(), EngineError> {
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
    pub(super) fn check_indices(&self, id: BufferId, values: &[i32]) -> Result<(), EngineError> {
        for node in self.plan.nodes() {
            let (operation, rows, length) = match &node.op {
                Op::Gather(gather) if node.inputs.get(1) == Some(&id) => {
                    ("gather", self.memory.place(node.inputs[0]).rows, gather.length())
                }
                Op::Embedding(embedding) if node.inputs.first() == Some(&id) => {
                    ("embedding", embedding.entries, 1)
                }
                Op::CrossEntropy(loss) if node.inputs.get(1) == Some(&id) => {
                    ("cross_entropy", loss.classes, 1)
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

    pub(super) fn find(
        &self,
        name: &str,
        data_type: DataType,
        length: usize,
    ) -> Result<BufferId, EngineError> {
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

    /// Classes and categories that come out of a table are looked at when it is attached.
    pub(super) fn check_table(&self, id: BufferId, table: &Table) -> Result<(), EngineError> {
        let Table::I32(values) = table else { return Ok(()) };
        for node in self.plan.nodes() {
            if matches!(node.op, Op::Gather(_)) && node.inputs.first() == Some(&id) {
                self.check_indices(node.outputs[0], (**values).as_ref())?;
            }
        }
        Ok(())
    }
}
