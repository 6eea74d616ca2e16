//! From a model to a plan: which values need gradients, where these go and in what order they are added, and what the
//! optimizer keeps. Everything a step will touch is decided here.

use crate::EngineError;
use crate::initialise::Initialiser;
use crate::model::{Draft, Model, Tensor};
use crate::ops::optimizer::Optimizer;
use crate::plan::{Buffer, BufferId, DataType, GradientSlot, Node, Plan, Role, Trained};

impl Model {
    /// The plan that trains on `loss`.
    pub fn compile(self, loss: Tensor, optimizer: Optimizer) -> Result<Plan, EngineError> {
        self.build(Some(loss), optimizer)
    }

    /// A plan without a loss, for predictions.
    pub fn compile_for_evaluation(self) -> Result<Plan, EngineError> {
        self.build(None, Optimizer::default())
    }

    fn build(mut self, loss: Option<Tensor>, optimizer: Optimizer) -> Result<Plan, EngineError> {
        if self.buffers.iter().any(|buffer| buffer.shape.contains(&0)) {
            return Err(EngineError::Setting {
                operation: "model",
                setting: "a size",
                value: 0.0,
                allowed: "1 or more",
            });
        }
        let needed = self.gradients_needed(loss);
        let mut gradients: Vec<Option<BufferId>> = vec![None; self.buffers.len()];
        let mut trained = Vec::new();
        for (index, gradient) in gradients.iter_mut().enumerate() {
            if loss.is_some() && self.buffers[index].role == Role::Parameter {
                let entry = self.trained(BufferId(index), &optimizer);
                *gradient = Some(entry.gradient);
                trained.push(entry);
            }
        }
        if loss.is_some_and(|loss| !needed[loss.0]) {
            return Err(EngineError::NothingToTrain);
        }
        let drafts = std::mem::take(&mut self.drafts);
        let mut nodes: Vec<Node> = drafts.into_iter().map(forward_node).collect();
        let mut readers = vec![0usize; needed.len()];
        for input in nodes.iter().flat_map(|node| &node.inputs) {
            readers[input.0] += 1;
        }
        let mut backward = Vec::new();
        let mut written = vec![false; needed.len()];
        for index in (0..nodes.len()).rev() {
            let reached = nodes[index]
                .outputs
                .iter()
                .any(|output| Some(*output) == loss || written[output.0]);
            if reached && nodes[index].outputs.iter().any(|output| needed[output.0]) {
                self.wire(&mut nodes[index], &needed, &readers, &mut gradients, &mut written);
                backward.push(index);
            }
        }
        Ok(Plan {
            buffers: self.buffers,
            nodes,
            backward,
            trained,
            optimizer,
            loss,
            batch: self.batch,
        })
    }

    /// Buffers that depend on a parameter.
    fn gradients_needed(&self, loss: Option<Tensor>) -> Vec<bool> {
        let is_parameter = |buffer: &Buffer| buffer.role == Role::Parameter && loss.is_some();
        let mut needed: Vec<bool> = self.buffers.iter().map(is_parameter).collect();
        for draft in &self.drafts {
            let touched = draft
                .inputs
                .iter()
                .chain(&draft.parameters)
                .any(|id| needed[id.0]);
            for output in &draft.outputs {
                needed[output.0] |= touched && self.buffers[output.0].data_type == DataType::Real;
            }
        }
        needed
    }

    fn trained(&mut self, parameter: BufferId, optimizer: &Optimizer) -> Trained {
        let gradient = self.gradient_of(parameter);
        let (name, shape) = (
            self.buffers[parameter.0].name.clone(),
            self.buffers[parameter.0].shape.clone(),
        );
        let moments = optimizer.moment_names().iter().map(|moment| {
            self.buffer(Buffer {
                name: format!("optimizer.{moment}.{name}"),
                shape: shape.clone(),
                data_type: DataType::Real,
                role: Role::State,
                initialiser: Initialiser::Constant(0.0),
            })
        });
        Trained {
            parameter,
            gradient,
            moments: moments.collect(),
        }
    }

    fn gradient_of(&mut self, id: BufferId) -> BufferId {
        let buffer = Buffer {
            name: String::new(),
            shape: self.buffers[id.0].shape.clone(),
            data_type: DataType::Real,
            role: Role::Gradient,
            initialiser: Initialiser::Constant(0.0),
        };
        self.buffer(buffer)
    }

    /// Gives a node of the backward list its gradient buffers. Parameter gradients count as written from the start: the
    /// back end clears them, and everybody adds.
    fn wire(
        &mut self,
        node: &mut Node,
        needed: &[bool],
        readers: &[usize],
        gradients: &mut [Option<BufferId>],
        written: &mut [bool],
    ) {
        node.output_gradients = node.outputs.iter().map(|id| gradients[id.0]).collect();
        for (position, input) in node.inputs.iter().enumerate() {
            if !needed[input.0] {
                continue;
            }
            let is_parameter = self.buffers[input.0].role == Role::Parameter;
            let passed = node.output_gradients.first().copied().flatten();
            if node.op.passes_gradient() && readers[input.0] == 1 && !is_parameter && passed.is_some() {
                // Nobody else adds to it, so the output's gradient is the input's, and stays what it is.
                gradients[input.0] = passed;
                written[input.0] = true;
                continue;
            }
            let buffer = *gradients[input.0].get_or_insert_with(|| self.gradient_of(*input));
            node.input_gradients[position] = Some(GradientSlot {
                buffer,
                accumulate: is_parameter || written[input.0],
            });
            written[input.0] = true;
        }
        node.parameter_gradients = node.parameters.iter().filter_map(|id| gradients[id.0]).collect();
    }
}

fn forward_node(draft: Draft) -> Node {
    Node {
        input_gradients: vec![None; draft.inputs.len()],
        output_gradients: vec![None; draft.outputs.len()],
        parameter_gradients: Vec::new(),
        op: draft.op,
        inputs: draft.inputs,
        outputs: draft.outputs,
        parameters: draft.parameters,
        states: draft.states,
    }
}
