//! The operations of a plan as those of ONNX, with the weights of a session. Images stay `[batch, height, width, channels]` between them: a
//! runtime removes the transpositions that meet.

use super::Tables;
use super::graph::{Graph, Value};
use crate::TrainError;
use flatout_core::message;
use flatout_engine::ops::Op;
use flatout_engine::ops::recurrent::Layers;
use flatout_engine::plan::Node;
use flatout_engine::{Activation, BufferId, EngineError, Plan, SequenceOutput, Session};
use std::collections::HashMap;

pub enum Failure {
    /// An operation that ONNX is not written for.
    Operation(&'static str),
    Engine(EngineError),
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

impl Failure {
    pub fn told(self, model: &str) -> TrainError {
        match self {
            Self::Engine(error) => error.into(),
            Self::Operation(name) => TrainError::Export {
                reason: message!(en: "the model `{model}` uses an operation that cannot be exported: `{name}`", zh: "模型 `{model}` 含有无法导出的操作：`{name}`"),
            },
        }
    }
}

struct Walk<'a> {
    plan: &'a Plan,
    session: &'a mut dyn Session,
    graph: &'a mut Graph,
    /// The graph's name of each buffer that is there.
    names: HashMap<BufferId, String>,
}

/// Adds everything up to the prediction; gives its name.
pub fn walk(
    plan: &Plan,
    tables: &Tables,
    session: &mut dyn Session,
    graph: &mut Graph,
) -> Result<String, Failure> {
    let prediction = plan.find("prediction")?;
    let mut names = HashMap::new();
    for (name, value) in tables {
        if let Ok(buffer) = plan.find(name) {
            names.insert(buffer, value.clone());
        }
    }
    let mut walk = Walk {
        plan,
        session,
        graph,
        names,
    };
    for node in plan.nodes() {
        // Labels, and what is made of them: no table of theirs is there.
        if node
            .inputs
            .first()
            .is_none_or(|input| !walk.names.contains_key(input))
        {
            continue;
        }
        let value = walk.node(node)?;
        if let Some(&output) = node.outputs.first() {
            walk.names.insert(output, value);
        }
        if walk.names.contains_key(&prediction) {
            break;
        }
    }
    let found = walk.names.remove(&prediction);
    found.ok_or(Failure::Operation("prediction"))
}

impl Walk<'_> {
    fn input(&self, node: &Node, place: usize) -> Result<String, Failure> {
        let name = node.inputs.get(place).and_then(|input| self.names.get(input));
        name.cloned().ok_or(Failure::Operation(node.op.name()))
    }

    fn read(&mut self, buffer: BufferId) -> Result<(Vec<f32>, Vec<usize>), Failure> {
        let buffer = self.plan.buffer(buffer);
        let (name, shape) = (buffer.name.clone(), buffer.shape.clone());
        let mut values = vec![0.0; buffer.len()];
        self.session.read(&name, &mut values)?;
        Ok((values, shape))
    }

    fn node(&mut self, node: &Node) -> Result<String, Failure> {
        let input = self.input(node, 0)?;
        Ok(match &node.op {
            // The table is the batch: what an index would pick is what the caller gives.
            Op::Gather(_) | Op::Dropout(_) => input,
            Op::Activate(activate) => self.activated(input, activate.activation),
            Op::Concat(_) => {
                let places = 0..node.inputs.len();
                let parts: Vec<String> = places
                    .map(|place| self.input(node, place))
                    .collect::<Result<_, _>>()?;
                let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
                self.graph.node("Concat", &parts, &[("axis", (-1i64).into())])
            }
            Op::Embedding(_) => {
                let (values, shape) = self.read(node.parameters[0])?;
                let table = self.graph.floats(&values, &shape);
                self.graph
                    .node("Gather", &[&table, &input], &[("axis", 0i64.into())])
            }
            Op::Linear(linear) => {
                let (weight, _) = self.read(node.parameters[0])?;
                let (bias, _) = self.read(node.parameters[1])?;
                let (inputs, outputs) = (linear.inputs, linear.outputs);
                let mut turned = vec![0.0; weight.len()];
                for (place, value) in turned.iter_mut().enumerate() {
                    *value = weight[place % outputs * inputs + place / outputs];
                }
                let weight = self.graph.floats(&turned, &[inputs, outputs]);
                let bias = self.graph.floats(&bias, &[outputs]);
                let product = self.graph.node("MatMul", &[&input, &weight], &[]);
                let sum = self.graph.node("Add", &[&product, &bias], &[]);
                self.activated(sum, linear.activation)
            }
            Op::Lstm(lstm) => self.recurrent(node, lstm, "LSTM", &[0, 3, 1, 2])?,
            Op::Gru(gru) => self.recurrent(node, gru, "GRU", &[1, 0, 2])?,
            Op::Conv2d(conv) => {
                let (weight, shape) = self.read(node.parameters[0])?;
                let (bias, sides) = self.read(node.parameters[1])?;
                let (weight, bias) = (
                    self.graph.floats(&weight, &shape),
                    self.graph.floats(&bias, &sides),
                );
                let window = conv.window;
                let twice = |value: usize| vec![value as i64; 2];
                let attributes = [
                    ("kernel_shape", twice(window.size).into()),
                    ("strides", twice(window.stride).into()),
                    ("pads", Value::Ints(vec![window.padding as i64; 4])),
                ];
                let image = self.channels_first(&input);
                let result = self.graph.node("Conv", &[&image, &weight, &bias], &attributes);
                let result = self.channels_last(&result);
                self.activated(result, conv.activation)
            }
            Op::BatchNorm(norm) => {
                let [(weight, _), (bias, _)] =
                    [self.read(node.parameters[0])?, self.read(node.parameters[1])?];
                let [(mean, _), (variance, _)] = [self.read(node.states[0])?, self.read(node.states[1])?];
                let (mut factors, mut shifts) = (Vec::new(), Vec::new());
                for channel in 0..norm.channels {
                    let spread = (f64::from(variance[channel]) + norm.epsilon).sqrt();
                    let factor = f64::from(weight[channel]) / spread;
                    factors.push(factor as f32);
                    shifts.push((f64::from(bias[channel]) - f64::from(mean[channel]) * factor) as f32);
                }
                let (factors, shifts) = (
                    self.graph.floats(&factors, &[norm.channels]),
                    self.graph.floats(&shifts, &[norm.channels]),
                );
                let scaled = self.graph.node("Mul", &[&input, &factors], &[]);
                let moved = self.graph.node("Add", &[&scaled, &shifts], &[]);
                self.activated(moved, norm.activation)
            }
            Op::MaxPool(pool) => {
                let twice = vec![pool.size as i64; 2];
                let attributes = [("kernel_shape", twice.clone().into()), ("strides", twice.into())];
                let image = self.channels_first(&input);
                let result = self.graph.node("MaxPool", &[&image], &attributes);
                self.channels_last(&result)
            }
            Op::AveragePool(_) => self.graph.node(
                "ReduceMean",
                &[&input],
                &[("axes", vec![1, 2].into()), ("keepdims", 0i64.into())],
            ),
            Op::Flatten(_) => {
                let image = self.channels_first(&input);
                self.graph.node("Flatten", &[&image], &[("axis", 1i64.into())])
            }
            other => return Err(Failure::Operation(other.name())),
        })
    }

    fn channels_first(&mut self, image: &str) -> String {
        self.graph
            .node("Transpose", &[image], &[("perm", vec![0, 3, 1, 2].into())])
    }

    fn channels_last(&mut self, image: &str) -> String {
        self.graph
            .node("Transpose", &[image], &[("perm", vec![0, 2, 3, 1].into())])
    }

    fn activated(&mut self, value: String, activation: Activation) -> String {
        let op = match activation {
            Activation::None => return value,
            Activation::Relu => "Relu",
            Activation::Tanh => "Tanh",
            Activation::Sigmoid => "Sigmoid",
        };
        self.graph.node(op, &[&value], &[])
    }

    /// Layers of PyTorch's cells; `order` is where each of ONNX's gates is among PyTorch's.
    fn recurrent(
        &mut self,
        node: &Node,
        layers: &Layers,
        op: &'static str,
        order: &[usize],
    ) -> Result<String, Failure> {
        let mut values = self.input(node, 0)?;
        if layers.constants > 0 {
            let constant = self.input(node, 1)?;
            let (axis, times) = (
                self.graph.ints(&[0]),
                self.graph.ints(&[layers.steps as i64, 1, 1]),
            );
            let one = self.graph.node("Unsqueeze", &[&constant, &axis], &[]);
            let all = self.graph.node("Tile", &[&one, &times], &[]);
            values = self
                .graph
                .node("Concat", &[&values, &all], &[("axis", 2i64.into())]);
        }
        let hidden = layers.stack.hidden;
        let mut last = String::new();
        for layer in 0..layers.stack.layers {
            let mut part = |place: usize| -> Result<(Vec<f32>, usize), Failure> {
                let (values, shape) = self.read(node.parameters[4 * layer + place])?;
                let width = shape.get(1).copied().unwrap_or(1);
                let gate = |gate: &usize| values[gate * hidden * width..(gate + 1) * hidden * width].to_vec();
                Ok((order.iter().flat_map(gate).collect(), width))
            };
            let ((input_weights, width), (state_weights, _)) = (part(0)?, part(1)?);
            let bias = [part(2)?.0, part(3)?.0].concat();
            let rows = order.len() * hidden;
            let weights = [
                self.graph.floats(&input_weights, &[1, rows, width]),
                self.graph.floats(&state_weights, &[1, rows, hidden]),
                self.graph.floats(&bias, &[1, 2 * rows]),
            ];
            let mut attributes = vec![
                ("hidden_size", Value::Int(hidden as i64)),
                ("direction", Value::Word("forward")),
            ];
            if op == "GRU" {
                attributes.push(("linear_before_reset", Value::Int(1)));
            }
            let (all, end) = (self.graph.result(), self.graph.result());
            let inputs = [values.as_str(), &weights[0], &weights[1], &weights[2]];
            self.graph.named_node(op, &inputs, &[&all, &end], &attributes);
            // [steps, directions, batch, hidden] and [directions, batch, hidden].
            let (second, first) = (self.graph.ints(&[1]), self.graph.ints(&[0]));
            values = self.graph.node("Squeeze", &[&all, &second], &[]);
            last = self.graph.node("Squeeze", &[&end, &first], &[]);
        }
        Ok(match layers.stack.output {
            SequenceOutput::Last => last,
            SequenceOutput::All => values,
        })
    }
}
