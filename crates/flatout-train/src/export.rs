//! A checkpoint for other programs. The ONNX graph is made from the step plan, operation by operation, with what comes before (scaling,
//! codes of categories and entities) and after (probabilities, the label's own units): it takes raw values and gives what `predict` writes.

mod graph;
mod layers;
mod protobuf;

use crate::checkpoint;
use crate::data::{Preparation, Shape};
use crate::settings::Values;
use crate::target::{Target, Task};
use crate::{Configuration, TrainError, device, models};
use flatout_core::error::FileError;
use flatout_core::files::write_atomically;
use flatout_core::message;
use graph::{Graph, Kind};
use std::path::{Path, PathBuf};

/// One message of protobuf has at most this many bytes, less some room for its head.
const MOST_BYTES: usize = (1 << 31) - (1 << 20);

/// What an exported model takes and gives: name, type, shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    pub name: String,
    pub kind: &'static str,
    pub shape: String,
}

/// What was written.
#[derive(Clone, Debug)]
pub struct Exported {
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
    pub bytes: usize,
}

/// Writes a checkpoint (or the best one of an output folder) as an ONNX model.
pub fn onnx(checkpoint: &Path, out: &Path) -> Result<Exported, TrainError> {
    let path = checkpoint::find_best(checkpoint);
    let described = checkpoint::describe(&path)?;
    let preparation = checkpoint::preparation(&path)?;
    let flags: Values = [("device", "cpu".to_owned())].into();
    let configuration = Configuration::of(&path, &described.configuration, &flags)?;
    let phase = described.progress.phase.min(configuration.phases.len() - 1);
    let settings = &checkpoint::without_averages(&configuration.phases[phase].settings);
    let plan = models::plan(settings, &preparation, 1)?;
    let mut session = device::open(settings, || models::plan(settings, &preparation, 1))?.session;
    checkpoint::load(&path, &mut *session)?;
    let mut graph = Graph::new();
    let with_entity = plan.find("entity").is_ok();
    let tables = inputs(&preparation, (settings.sequence_length, with_entity), &mut graph);
    let prediction = layers::walk(&plan, &tables, &mut *session, &mut graph)
        .map_err(|failure| failure.told(models::chosen(settings, &preparation.shape)))?;
    outputs(&preparation.target, &prediction, &mut graph);
    let (inputs, outputs) = (graph.ports(true), graph.ports(false));
    let bytes = graph.model(&[
        ("flatout.label", &preparation.label),
        ("flatout.features", &preparation.features.join(",")),
        ("flatout.classes", &classes(&preparation.target)),
    ]);
    if bytes.len() > MOST_BYTES {
        let size = flatout_core::units::bytes(bytes.len() as f64);
        return Err(TrainError::Export {
            reason: message!(en: "the model takes {size}, but an ONNX file is limited to 2 GiB; shrink the \
            embeddings with --hash-size or --min-count", zh: "模型需要 {size}，而 ONNX 文件最多 2 GiB；可用 --hash-size 或 --min-count 缩小嵌入"),
        });
    }
    write_atomically(out, &bytes)?;
    Ok(Exported {
        inputs,
        outputs,
        bytes: bytes.len(),
    })
}

/// PyTorch's side: the model, what prepares raw values for it, and what names its outputs.
const MODULE: &str = include_str!("../../../examples/load_in_pytorch.py");

/// Writes a checkpoint (or the best one of an output folder) as a Python module for PyTorch, with the weights beside it. Gives their path.
pub fn pytorch(checkpoint: &Path, out: &Path) -> Result<PathBuf, TrainError> {
    let path = checkpoint::find_best(checkpoint);
    let weights = out.with_extension("safetensors");
    // Reads it whole: what is no checkpoint writes nothing.
    checkpoint::preparation(&path)?;
    let bytes = std::fs::read(&path).map_err(|source| FileError::reading(&path, source))?;
    write_atomically(&weights, &bytes)?;
    write_atomically(out, MODULE.as_bytes())?;
    Ok(weights)
}

/// The classes of each label that has some, as JSON.
fn classes(target: &Target) -> String {
    let heads = target.heads().iter();
    let names: Vec<&[String]> = heads
        .map(|head| match head.task {
            Task::Binary | Task::Classes => head.names.as_slice(),
            _ => &[],
        })
        .collect();
    serde_json::to_string(&names).unwrap_or_default()
}

/// What the plan finds in its tables and indices, by their names.
type Tables = Vec<(String, String)>;

/// Declares the inputs, prepares them, and says under which name each table of the plan is there.
fn inputs(preparation: &Preparation, (length, with_entity): (usize, bool), graph: &mut Graph) -> Tables {
    let mut tables = Tables::new();
    let features = preparation.features.len();
    match &preparation.shape {
        Shape::Rows { .. } => {
            if features > 0 {
                let raw = graph.input("features", Kind::Float, &[features]);
                tables.push(("features".to_owned(), standardised(preparation, &raw, graph)));
            }
        }
        Shape::Sequence {
            entities, unknown, ..
        } => {
            let raw = graph.input("features", Kind::Float, &[length, features]);
            let scaled = standardised(preparation, &raw, graph);
            // The plan's windows are time-major.
            let windows = graph.node("Transpose", &[&scaled], &[("perm", vec![1, 0, 2].into())]);
            tables.push(("features".to_owned(), windows));
            if !with_entity {
                return with_categories(preparation, tables, graph);
            }
            let names = &preparation.entities;
            let text = graph.input("entity", Kind::Text, &[]);
            let default = if *unknown { *entities as i64 } else { 0 };
            let numbers = (0..names.len() as i64).collect();
            tables.push(("entity".to_owned(), graph.lookup(&text, names, numbers, default)));
        }
        &Shape::Pictures {
            height,
            width,
            channels,
            scale,
            shift,
        } => {
            let raw = graph.input("pixels", Kind::Byte, &[height, width, channels]);
            let real = graph.node("Cast", &[&raw], &[("to", 1i64.into())]);
            let (scale, shift) = (graph.scalar(scale as f32), graph.scalar(shift as f32));
            let scaled = graph.node("Mul", &[&real, &scale], &[]);
            tables.push(("features".to_owned(), graph.node("Add", &[&scaled, &shift], &[])));
        }
    }
    with_categories(preparation, tables, graph)
}

fn with_categories(preparation: &Preparation, mut tables: Tables, graph: &mut Graph) -> Tables {
    for (place, codes) in preparation.categories.iter().enumerate() {
        let name = crate::data::rows::codes_name(place);
        if codes.buckets > 0 {
            // Hashing is left to the caller: ONNX has no operator for it.
            let code = graph.input(&codes.name, Kind::Whole, &[]);
            tables.push((name, code));
            continue;
        }
        let text = graph.input(&codes.name, Kind::Text, &[]);
        let numbers = (1..=codes.values.len() as i64).collect();
        tables.push((name, graph.lookup(&text, &codes.values, numbers, 0)));
    }
    tables
}

/// `(x − mean) / std`; what is missing has the mean.
fn standardised(preparation: &Preparation, raw: &str, graph: &mut Graph) -> String {
    let mean = graph.floats(&preparation.mean, &[preparation.mean.len()]);
    let std = graph.floats(&preparation.std, &[preparation.std.len()]);
    let moved = graph.node("Sub", &[raw, &mean], &[]);
    let scaled = graph.node("Div", &[&moved, &std], &[]);
    let missing = graph.node("IsNaN", &[&scaled], &[]);
    let zero = graph.scalar(0.0);
    graph.node("Where", &[&missing, &zero, &scaled], &[])
}

/// From the plan's outputs to what a person asked for: one output per label.
fn outputs(target: &Target, prediction: &str, graph: &mut Graph) {
    let mut first = 0;
    for (place, head) in target.heads().iter().enumerate() {
        let name = match (target.task, head.task) {
            (Task::Several, _) => target.names[place].clone(),
            (_, Task::Regression) => "prediction".to_owned(),
            (_, Task::Binary) => "probability".to_owned(),
            _ => "probabilities".to_owned(),
        };
        let width = head.outputs();
        let own = match target.task {
            Task::Several => graph.columns(prediction, first, width),
            _ => prediction.to_owned(),
        };
        first += width;
        let value = match head.task {
            Task::Regression => {
                let count = head.quantiles.len().max(1);
                let mean: Vec<f32> = (0..width).map(|output| head.mean[output / count]).collect();
                let (scale, mean) = (graph.scalar(head.scale), graph.floats(&mean, &[width]));
                let scaled = graph.node("Mul", &[&own, &scale], &[]);
                graph.node("Add", &[&scaled, &mean], &[])
            }
            Task::Binary | Task::Labels => graph.node("Sigmoid", &[&own], &[]),
            Task::Classes | Task::Several => graph.node("Softmax", &[&own], &[("axis", 1i64.into())]),
        };
        graph.output(&name, &value, width);
    }
}
