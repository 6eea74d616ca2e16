//! An ONNX graph under construction: values have names, nodes are added in order. Field numbers are those of onnx.proto.

use super::Port;
use super::protobuf::Message;

/// Version of the operators, and of those for tables of texts.
const OPSET: i64 = 13;
const OPSET_ML: i64 = 2;
/// Of the file format; the first that goes with that version.
const IR: i64 = 7;

/// What a value holds, by ONNX's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Float = 1,
    Byte = 2,
    Whole = 7,
    Text = 8,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Float => "float32",
            Self::Byte => "uint8",
            Self::Whole => "int64",
            Self::Text => "string",
        }
    }
}

/// An attribute of a node.
pub enum Value {
    Int(i64),
    Ints(Vec<i64>),
    Texts(Vec<String>),
    Word(&'static str),
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<Vec<i64>> for Value {
    fn from(values: Vec<i64>) -> Self {
        Self::Ints(values)
    }
}

#[derive(Default)]
pub struct Graph {
    nodes: Vec<Message>,
    weights: Vec<Message>,
    inputs: Vec<(String, Kind, Vec<usize>)>,
    outputs: Vec<(String, Kind, Vec<usize>)>,
    values: usize,
}

impl Graph {
    pub fn new() -> Self {
        Self::default()
    }

    fn fresh(&mut self) -> String {
        self.values += 1;
        format!("flatout/value{}", self.values)
    }

    /// Of each sample of a batch.
    pub fn input(&mut self, name: &str, kind: Kind, shape: &[usize]) -> String {
        self.inputs.push((name.to_owned(), kind, shape.to_vec()));
        name.to_owned()
    }

    pub fn output(&mut self, name: &str, value: &str, width: usize) {
        let taken = self.inputs.iter().any(|(known, ..)| known == name);
        let name = &if taken {
            format!("{name}_out")
        } else {
            name.to_owned()
        };
        let node = Message::default()
            .text(1, value)
            .text(2, name)
            .text(3, name)
            .text(4, "Identity");
        self.nodes.push(node);
        self.outputs.push((name.to_owned(), Kind::Float, vec![width]));
    }

    /// Adds an operation; gives the name of its first result.
    pub fn node(&mut self, op: &str, inputs: &[&str], attributes: &[(&str, Value)]) -> String {
        let output = self.fresh();
        self.named_node(op, inputs, &[&output], attributes);
        output
    }

    /// Adds an operation with these results; an empty name is one that nobody reads.
    pub fn named_node(&mut self, op: &str, inputs: &[&str], outputs: &[&str], attributes: &[(&str, Value)]) {
        let domain = if op == "LabelEncoder" { "ai.onnx.ml" } else { "" };
        let node = Message::default()
            .each(inputs, |node, name| node.text(1, name))
            .each(outputs, |node, name| node.text(2, name))
            .text(3, &format!("node{}", self.nodes.len()))
            .text(4, op)
            .each(attributes, |node, attribute| {
                node.message(5, &attribute_of(attribute))
            })
            .text(7, domain);
        self.nodes.push(node);
    }

    pub fn result(&mut self) -> String {
        self.fresh()
    }

    pub fn scalar(&mut self, value: f32) -> String {
        self.floats(&[value], &[])
    }

    pub fn floats(&mut self, values: &[f32], shape: &[usize]) -> String {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.weight(Kind::Float, &bytes, shape)
    }

    pub fn ints(&mut self, values: &[i64]) -> String {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.weight(Kind::Whole, &bytes, &[values.len()])
    }

    fn weight(&mut self, kind: Kind, bytes: &[u8], shape: &[usize]) -> String {
        let name = format!("flatout/weight{}", self.weights.len());
        let tensor = Message::default()
            .each(shape, |tensor, side| tensor.int(1, *side as i64))
            .int(2, kind as i64)
            .text(8, &name)
            .bytes(9, bytes);
        self.weights.push(tensor);
        name
    }

    /// Numbers for texts, the default for a text that is not there.
    pub fn lookup(&mut self, text: &str, keys: &[String], numbers: Vec<i64>, default: i64) -> String {
        let attributes = [
            ("keys_strings", Value::Texts(keys.to_vec())),
            ("values_int64s", numbers.into()),
            ("default_int64", default.into()),
        ];
        self.node("LabelEncoder", &[text], &attributes)
    }

    /// Some columns of a matrix.
    pub fn columns(&mut self, matrix: &str, first: usize, count: usize) -> String {
        let (from, to) = (self.ints(&[first as i64]), self.ints(&[(first + count) as i64]));
        let axis = self.ints(&[1]);
        self.node("Slice", &[matrix, &from, &to, &axis], &[])
    }

    pub fn ports(&self, inputs: bool) -> Vec<Port> {
        let ports = if inputs { &self.inputs } else { &self.outputs };
        let shape = |sides: &[usize]| {
            let sides = sides.iter().map(ToString::to_string);
            let all: Vec<String> = std::iter::once("batch".to_owned()).chain(sides).collect();
            format!("[{}]", all.join(", "))
        };
        let each = ports.iter().map(|(name, kind, sides)| Port {
            name: name.clone(),
            kind: kind.name(),
            shape: shape(sides),
        });
        each.collect()
    }

    /// The whole file.
    pub fn model(self, about: &[(&str, &str)]) -> Vec<u8> {
        let graph = Message::default()
            .each(&self.nodes, |graph, node| graph.message(1, node))
            .text(2, "flatout")
            .each(&self.weights, |graph, weight| graph.message(5, weight))
            .each(&self.inputs, |graph, port| graph.message(11, &port_of(port)))
            .each(&self.outputs, |graph, port| graph.message(12, &port_of(port)));
        let opset = |domain: &str, version: i64| Message::default().text(1, domain).int(2, version);
        Message::default()
            .int(1, IR)
            .text(2, "flatout")
            .text(3, env!("CARGO_PKG_VERSION"))
            .message(7, &graph)
            .message(8, &opset("", OPSET))
            .message(8, &opset("ai.onnx.ml", OPSET_ML))
            .each(about, |model, (key, value)| {
                model.message(14, &Message::default().text(1, key).text(2, value))
            })
            .into_bytes()
    }
}

fn attribute_of((name, value): &(&str, Value)) -> Message {
    let attribute = Message::default().text(1, name);
    match value {
        Value::Int(value) => attribute.int(3, *value).int(20, 2),
        Value::Ints(values) => attribute
            .each(values, |attribute, value| attribute.int(8, *value))
            .int(20, 7),
        Value::Texts(values) => attribute
            .each(values, |attribute, value| attribute.text(9, value))
            .int(20, 8),
        Value::Word(word) => attribute.text(4, word).int(20, 3),
    }
}

fn port_of((name, kind, sides): &(String, Kind, Vec<usize>)) -> Message {
    let batch = Message::default().text(2, "batch");
    let shape = Message::default().message(1, &batch).each(sides, |shape, side| {
        shape.message(1, &Message::default().int(1, *side as i64))
    });
    let tensor = Message::default().int(1, *kind as i64).message(2, &shape);
    Message::default()
        .text(1, name)
        .message(2, &Message::default().message(1, &tensor))
}
