//! The lines that rules and generic findings speak of: the costly ones of the training loop outside of the model's own work,
//! those that prepare batches, and those of the loader's workers.

use crate::account::activity::Activity;
use crate::account::center::{Center, centers, in_backward, in_optimizer, worker_centers};
use crate::account::frame::Frame;
use crate::account::{Account, Span};
use flatout_telemetry::Phase;
use flatout_telemetry::record::RunData;

/// Packages whose code between the user's frames is the training itself, not an addition to it.
const TRAINERS: [&str; 14] = [
    "torch",
    "transformers",
    "lightning",
    "lightning_fabric",
    "pytorch_lightning",
    "accelerate",
    "timm",
    "torchvision",
    "deepspeed",
    "einops",
    "functorch",
    "triton",
    "peft",
    "trl",
];

/// Costly lines by where they are.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// In the loop, outside of forward, backward and the optimizer.
    pub aside: Vec<Center>,
    /// Loops of the source inside forward, loss or the step that run many operators.
    pub looped: Vec<Center>,
    /// Whatever computes: forward, backward, the optimizer.
    pub model: Vec<Center>,
    /// In the data set, the sampler or the collate function, in the training process.
    pub data: Vec<Center>,
    /// The same in a loader's worker; seconds are those of the worker.
    pub worker: Vec<Center>,
    pub evaluation: Vec<Center>,
    pub saving: Vec<Center>,
}

impl Lines {
    pub fn of(data: &RunData, account: Option<&Account>, range: (f64, f64)) -> Self {
        let worker = worker_centers(data, range);
        let Some(account) = account else {
            return Self {
                worker,
                ..Self::default()
            };
        };
        let all = |keep: &dyn Fn(&Span) -> bool| centers(account, data, keep);
        let phase = |phase: Phase| move |span: &Span| span.phase == Some(phase);
        let looped = all(&|span| in_step(span) && !in_backward(span) && !in_optimizer(span));
        Self {
            aside: all(&|span| in_step(span) && is_aside(span)),
            looped: looped
                .into_iter()
                .filter(|center| center.inner_loop.is_some())
                .collect(),
            model: all(&|span| in_step(span) && !is_aside(span)),
            data: all(&|span| span.activity == Activity::PreparingBatch),
            worker,
            evaluation: all(&phase(Phase::Eval)),
            saving: all(&phase(Phase::Checkpoint)),
        }
    }
}

/// Between the batch and the next one, in no phase with rules of its own.
fn in_step(span: &Span) -> bool {
    matches!(span.phase, Some(Phase::Compute | Phase::Other) | None) && span.activity != Activity::Descheduled
}

/// Whether the span is something beside the training of the model: the user's own Python, another library, files, waiting.
pub fn is_aside(span: &Span) -> bool {
    match span.activity {
        Activity::FileAccess | Activity::Sleeping | Activity::Waiting => true,
        Activity::Python | Activity::Operators => match library_below(span) {
            Library::Other => true,
            Library::Trainer => is_service(span),
            Library::None => own_work(span),
        },
        _ => false,
    }
}

enum Library {
    /// The user's own line runs.
    None,
    Trainer,
    Other,
}

/// Whose code the user's innermost line called.
fn library_below(span: &Span) -> Library {
    let last = span.frames.iter().rposition(Frame::is_users);
    let below = &span.frames[last.map_or(0, |at| at + 1)..];
    match below.iter().find_map(Frame::package) {
        None => Library::None,
        Some(package) if TRAINERS.contains(&package) => {
            // A framework's callback may end in another library: what runs innermost counts.
            match below.last().and_then(Frame::package) {
                Some(inner) if !TRAINERS.contains(&inner) && !is_plumbing(inner) => Library::Other,
                _ => Library::Trainer,
            }
        }
        Some(_) => Library::Other,
    }
}

/// Standard library modules that a trainer's own code passes through.
fn is_plumbing(package: &str) -> bool {
    const PLUMBING: [&str; 8] = [
        "contextlib",
        "functools",
        "typing",
        "abc",
        "weakref",
        "collections",
        "enum",
        "inspect",
    ];
    PLUMBING.contains(&package)
}

/// The user's own line: Python is aside unless it is the model's forward; operators are the model's work during the step.
fn own_work(span: &Span) -> bool {
    match span.activity {
        Activity::Python => !in_module(span),
        _ => span.phase == Some(Phase::Other),
    }
}

/// Inside the forward of a module.
pub fn in_module(span: &Span) -> bool {
    span.frames
        .iter()
        .any(|frame| frame.in_file("torch/nn/modules/module.py") && frame.function.ends_with("_call_impl"))
}

/// Parts of torch that serve the program, not the step: saving, writing events, freeing caches, checks.
fn is_service(span: &Span) -> bool {
    const SERVICES: [&str; 8] = [
        "torch/serialization.py",
        "torch/cuda/memory.py",
        "torch/autograd/gradcheck.py",
        "torch/autograd/anomaly_mode.py",
        "torch/nn/parallel/data_parallel.py",
        "torch/_tensor_str.py",
        "torch/random.py",
        "torch/cuda/random.py",
    ];
    let serves = |frame: &Frame| {
        SERVICES.iter().any(|end| frame.in_file(end)) || frame.file.contains("torch/utils/tensorboard/")
    };
    span.frames.iter().any(serves)
}
