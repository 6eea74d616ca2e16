//! The step plan as data: buffers, and the list of operations over them. It knows no device; a back end allocates the
//! buffers once and walks the lists.

use crate::EngineError;
use crate::initialise::Initialiser;
use crate::ops::Op;
use flatout_core::spelling::distance;

/// A buffer of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferId(pub(crate) usize);

impl BufferId {
    pub fn index(self) -> usize {
        self.0
    }
}

/// What a buffer's values are. `Real` is the precision the back end computes in (f32, bf16 with f32 masters …).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataType {
    Real,
    I32,
    U8,
}

impl DataType {
    pub fn name(self) -> &'static str {
        match self {
            Self::Real => "f32",
            Self::I32 => "i32",
            Self::U8 => "u8",
        }
    }
}

/// Why a buffer exists: who fills it, and how long its contents live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A table of any number of rows that stays where it is; the shape is that of one row. Attached, never copied in a step.
    Table,
    /// Filled by the caller before each step.
    Input,
    /// Trained; read and written by name.
    Parameter,
    /// Kept from step to step but not trained (running statistics, optimizer moments); read and written by name.
    State,
    /// Written by a forward operation.
    Activation,
    /// Written by a backward operation.
    Gradient,
}

#[derive(Clone, Debug)]
pub struct Buffer {
    /// Empty for activations and gradients nobody named.
    pub name: String,
    pub shape: Vec<usize>,
    pub data_type: DataType,
    pub role: Role,
    /// Parameters and state have one; everything else starts at zero.
    pub initialiser: Initialiser,
}

impl Buffer {
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The gradient of an operation's input: where it goes, and whether an operation that ran earlier in the backward list has
/// already written there, so that this one must add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GradientSlot {
    pub buffer: BufferId,
    pub accumulate: bool,
}

/// One operation of the plan with everything it touches.
#[derive(Clone, Debug)]
pub struct Node {
    pub op: Op,
    pub inputs: Vec<BufferId>,
    pub outputs: Vec<BufferId>,
    pub parameters: Vec<BufferId>,
    /// Kept from step to step: running statistics.
    pub states: Vec<BufferId>,
    /// `None` where nothing upstream is trained.
    pub input_gradients: Vec<Option<GradientSlot>>,
    pub output_gradients: Vec<Option<BufferId>>,
    /// Always added to: the back end clears them when a new step begins, so that micro-batches add up.
    pub parameter_gradients: Vec<BufferId>,
}

/// One trained tensor with what the optimizer keeps for it.
#[derive(Clone, Debug)]
pub struct Trained {
    pub parameter: BufferId,
    pub gradient: BufferId,
    pub moments: Vec<BufferId>,
}

/// A model compiled for one batch size: forward is `nodes` in order, backward is `backward`, indices into `nodes`; then
/// global-norm clip and one multi-tensor optimizer over `trained`.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) backward: Vec<usize>,
    pub(crate) trained: Vec<Trained>,
    pub(crate) optimizer: crate::ops::optimizer::Optimizer,
    pub(crate) loss: Option<BufferId>,
    pub(crate) batch: usize,
}

impl Plan {
    pub fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    pub fn buffer(&self, id: BufferId) -> &Buffer {
        &self.buffers[id.0]
    }

    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Indices into [`Plan::nodes`], in the order in which backward runs.
    pub fn backward(&self) -> &[usize] {
        &self.backward
    }

    pub fn trained(&self) -> &[Trained] {
        &self.trained
    }

    pub fn optimizer(&self) -> &crate::ops::optimizer::Optimizer {
        &self.optimizer
    }

    pub fn loss(&self) -> Option<BufferId> {
        self.loss
    }

    /// Rows in one (micro-)batch.
    pub fn batch(&self) -> usize {
        self.batch
    }

    pub fn find(&self, name: &str) -> Result<BufferId, EngineError> {
        let found = self
            .buffers
            .iter()
            .position(|buffer| !name.is_empty() && buffer.name == name);
        found.map(BufferId).ok_or_else(|| EngineError::UnknownName {
            name: name.to_owned(),
            nearest: self.nearest(name),
        })
    }

    /// The names of all buffers of one role, in the order in which the model made them.
    pub fn names(&self, role: Role) -> impl Iterator<Item = &str> {
        let of_role = self
            .buffers
            .iter()
            .filter(move |buffer| buffer.role == role && !buffer.name.is_empty());
        of_role.map(|buffer| buffer.name.as_str())
    }

    pub fn parameter_count(&self) -> usize {
        let parameters = self
            .buffers
            .iter()
            .filter(|buffer| buffer.role == Role::Parameter);
        parameters.map(Buffer::len).sum()
    }

    /// Multiply-adds count two. Forward and backward of one batch, matrix products and convolutions only.
    pub fn flops_per_step(&self) -> f64 {
        let forward = |node: &Node| node.op.forward_flops();
        let backward = self
            .backward
            .iter()
            .map(|&index| 2.0 * forward(&self.nodes[index]));
        self.nodes.iter().map(forward).sum::<f64>() + backward.sum::<f64>()
    }

    fn nearest(&self, name: &str) -> Option<String> {
        let named = self.buffers.iter().filter(|buffer| !buffer.name.is_empty());
        let scored = named.map(|buffer| (distance(name, &buffer.name), &buffer.name));
        let (score, nearest) = scored.min_by_key(|(score, _)| *score)?;
        (score <= name.len() / 2).then(|| nearest.clone())
    }
}
