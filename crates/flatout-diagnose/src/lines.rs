//! The lines that rules and generic findings speak of: the costly ones of the training loop outside of the model's own work,
//! those that prepare batches, and those of the loader's workers.

use crate::account::activity::Activity;
use crate::account::center::{
    Center, centers, helpers, in_backward, in_optimizer, loops, single_lines, worker_centers,
};
use crate::account::frame::Frame;
use crate::account::{Account, Span, gpu_idle_share};
use flatout_record::{Phase, RunData};

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
    /// Lines of the model's forward that run Python, not operators.
    pub in_forward: Vec<Center>,
    /// Single lines that call operators of torch directly, not through a module.
    pub operators: Vec<Center>,
    /// Functions beside the model, the loss and the optimizer that the loop calls.
    pub helpers: Vec<Center>,
    /// Loops of the source inside forward, loss or the step that run many operators.
    pub looped: Vec<Center>,
    /// In the data set, the sampler or the collate function, in the training process.
    pub data: Vec<Center>,
    /// The same in a loader's worker; seconds are those of the worker.
    pub worker: Vec<Center>,
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
        let of_the_step = |span: &Span| in_step(span) && !in_backward(span) && !in_optimizer(span);
        let starves = gpu_idle_share(data).is_some_and(|idle| idle >= STARVED);
        let looped = loops(account, data, of_the_step);
        Self {
            aside: all(&|span| in_step(span) && is_aside(span)),
            in_forward: single_lines(account, data, |span| {
                of_the_step(span)
                    && span.activity == Activity::Python
                    && in_module(span)
                    && matches!(library_below(span), Library::None)
            }),
            operators: single_lines(account, data, |span| {
                let computes = matches!(span.activity, Activity::Operators | Activity::GpuComputing);
                of_the_step(span) && computes && !calls_module(span)
            }),
            helpers: helpers(account, data, |span| {
                of_the_step(span) && !in_module(span) && is_work(span)
            })
            .into_iter()
            .filter(|center| !is_the_step(center))
            .collect(),
            looped: looped
                .into_iter()
                .filter(|center| is_small_work(center) || starves && launches_one_by_one(center))
                .collect(),
            data: all(&|span| span.activity == Activity::PreparingBatch),
            worker,
        }
    }
}

/// A loop that spends more than this in modules is the model's.
const MODULES_IN_LOOP: f64 = 0.3;
/// A loop whose rounds do little: the interpreter is seen at work. One over large layers is all operators.
const PYTHON_IN_LOOP: f64 = 0.12;

fn is_small_work(center: &Center) -> bool {
    let python: f64 = center
        .activities
        .iter()
        .filter(|(activity, _)| *activity == Activity::Python)
        .map(|(_, seconds)| seconds)
        .sum();
    let Some(inner) = &center.inner_loop else {
        return false;
    };
    let over_data =
        is_over_data(&inner.text) && (center.share_of_modules < MODULES_IN_LOOP || is_over_time(&inner.text));
    python >= center.seconds * PYTHON_IN_LOOP || over_data
}

/// A GPU that is idle this much is fed too slowly.
const STARVED: f64 = 0.5;

/// A loop over numbers or over what a batch contains: each of its rounds launches small kernels.
fn launches_one_by_one(center: &Center) -> bool {
    let Some(inner) = &center.inner_loop else {
        return false;
    };
    inner.text.contains("range(") || is_over_data(&inner.text)
}

/// A loop over what a batch contains.
fn is_over_data(header: &str) -> bool {
    const OVER: [&str; 7] = [
        "zip(",
        ".tolist()",
        ".size(",
        ".shape[",
        "len(",
        "batch",
        "unbind",
    ];
    let over = header.split_once(" in ").map_or("", |(_, over)| over);
    OVER.iter().any(|mark| over.contains(mark))
}

/// A loop that takes a tensor apart along one of its dimensions: a module called for each part could take the whole.
fn is_over_time(header: &str) -> bool {
    const OVER: [&str; 6] = ["unbind(", ".size(", ".shape[", ".split(", ".chunk(", "seq_len"];
    let over = header.split_once(" in ").map_or("", |(_, over)| over);
    OVER.iter().any(|mark| over.contains(mark))
}

fn is_work(span: &Span) -> bool {
    matches!(
        span.activity,
        Activity::Python
            | Activity::Operators
            | Activity::FileAccess
            | Activity::Sleeping
            | Activity::Waiting
    )
}

/// A function that is the step or the loss by its name: its operators are the training.
fn is_the_step(center: &Center) -> bool {
    const NAMES: [&str; 16] = [
        "loss",
        "criterion",
        "forward",
        "objective",
        "elbo",
        "step",
        "train",
        "fit",
        "epoch",
        "logits",
        "predict",
        "model",
        "closure",
        "likelihood",
        "divergence",
        "log_prob",
    ];
    let own = [&center.hot].into_iter().chain(&center.path);
    let mut names = own.map(|frame| frame.function.to_lowercase());
    let operators = center.activity() == Activity::Operators;
    operators && names.any(|name| NAMES.iter().any(|part| name.contains(part)))
}

/// Between the batch and the next one, in no phase with rules of its own.
fn in_step(span: &Span) -> bool {
    matches!(
        span.phase,
        Some(Phase::Compute | Phase::Other | Phase::Sync) | None
    ) && span.activity != Activity::Descheduled
        && !keeps_stacks(span)
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
        // A module's forward is Python, too, a little at each of its lines.
        Activity::Python => !in_module(span),
        _ => span.phase == Some(Phase::Other),
    }
}

/// Whether the user's innermost line called a module, whose forward then runs below it.
fn calls_module(span: &Span) -> bool {
    span.called().any(Frame::is_module_call)
}

/// Anomaly detection keeps the Python stack of every operator: the lines that call operators are not to blame.
pub fn keeps_stacks(span: &Span) -> bool {
    span.frames
        .iter()
        .any(|frame| frame.function == "format_stack" || frame.in_file("torch/fx/traceback.py"))
}

/// Inside the forward of a module.
pub fn in_module(span: &Span) -> bool {
    span.frames.iter().any(Frame::is_module_call)
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
